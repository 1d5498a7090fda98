"""Bounds do not depend on what was asked before, and ε keeps its promise on any object of the same mechanism."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import deniable as dn

RUNS = [
    dn.SubsampledGaussian(1.0, 0.01, 5000),
    dn.SubsampledGaussian(0.5, 1e-3, 10_000),
    dn.SubsampledGaussian(150.0, 4.4e-8, 3901),
    dn.SubsampledGaussian(3.0, 1e-9, 2),
    dn.SubsampledGaussian(20.0, 0.9, 300) + dn.SubsampledGaussian(2.0, 1e-3, 50) + dn.GaussianDP(0.1),
    dn.SubsampledGaussian(1.5, 1e-5, 40) + dn.PureDP(0.05) + dn.ApproximateDP(0.1, 1e-6),
]


def ask(tradeoff, question):
    kind, value = question
    if kind == "delta":
        tradeoff.delta(value)
    elif kind == "tpr":
        tradeoff.tpr(10.0 ** -abs(value))
    elif kind == "sketch":
        tradeoff.sketch().tpr(10.0 ** -abs(value))
    else:
        tradeoff.inverse().delta(value, side="lower")


QUESTIONS = st.lists(
    st.tuples(st.sampled_from(["delta", "tpr", "sketch", "inverse"]), st.floats(-3.0, 6.0)), max_size=4
)


@given(run=st.sampled_from(RUNS), before=QUESTIONS, log_delta=st.floats(-12.0, -0.05), company=st.integers(1, 12))
@settings(max_examples=7)
def test_epsilon_keeps_its_promise_on_fresh_objects_and_in_any_order(run, before, log_delta, company):
    delta = 10.0**log_delta
    asked = dn.tradeoff(run)
    for question in before:
        ask(asked, question)
    epsilon = asked.epsilon(delta)
    assume(np.isfinite(epsilon))  # δ below the probability of a failure has no ε, δ near 1 needs none
    crowd = np.concatenate([[epsilon], np.linspace(epsilon - 1, epsilon + 1, company)])
    for fresh in (dn.tradeoff(run), dn.tradeoff(run)):
        assert fresh.delta(epsilon) <= delta
        assert fresh.delta(crowd)[0] <= delta
    assert asked.delta(epsilon) <= delta


@pytest.mark.parametrize("run", RUNS)
def test_bounds_agree_whatever_was_asked_before(run):
    points = np.linspace(-0.5, 3.0, 12)
    first, second = dn.tradeoff(run), dn.tradeoff(run)
    once = first.delta(points)
    second.tpr([1e-9, 1e-3, 0.3])
    second.epsilon(1e-7)
    again = np.array([second.delta(x) for x in points[::-1]])[::-1]
    assert np.array_equal(once, again)
