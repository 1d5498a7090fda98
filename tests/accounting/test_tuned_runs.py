"""Tuning counted in: finite mechanisms repeated a random number of times, enumerated."""

import itertools
import math

import numpy as np
import pytest

import deniable as dn

PAIR = (0.5, 0.3, 0.2), (0.3, 0.3, 0.4)  # one run: outcomes' probabilities in and out


def generating(trials, shape):
    """The probability generating function of K, from its definition."""
    if math.isinf(shape):
        return lambda x: np.exp(trials * (x - 1))
    stop = dn.mechanisms.tuned(dn.PureDP(1.0), trials=trials, shape=shape).stop
    if shape == 0:
        return lambda x: np.log1p(-(1 - stop) * x) / np.log(stop)
    return lambda x: ((1 - (1 - stop) * x) ** -shape - 1) / (stop**-shape - 1)


def selected(law, order, f):
    """The law of the best of K outputs, scored by their place in ``order``; nothing, if K = 0, comes first."""
    below = np.concatenate([[0.0], np.cumsum(np.array(law)[list(order)])])
    return np.concatenate([[f(0.0)], np.diff(f(np.minimum(below, 1.0)))])


CASES = [(5.0, 1.0), (20.0, 1.0), (5.0, 0.0), (5.0, 0.5), (8.0, -0.5), (3.0, math.inf), (0.5, math.inf)]


@pytest.mark.parametrize(("trials", "shape"), CASES)
def test_the_law_has_the_stated_mean(trials, shape):
    f = generating(trials, shape)
    assert f(1.0) == pytest.approx(1)
    assert (f(1.0) - f(1 - 1e-6)) / 1e-6 == pytest.approx(trials, rel=1e-3)
    if shape == 1.0:
        assert dn.mechanisms.tuned(dn.PureDP(1.0), trials=trials).stop == pytest.approx(1 / trials, rel=1e-12)


@pytest.mark.parametrize(("trials", "shape"), CASES)
def test_the_bound_holds_for_every_way_to_score(trials, shape):
    t = dn.tradeoff(dn.mechanisms.tuned(dn.mechanisms.FinitePair(*PAIR), trials=trials, shape=shape))
    f = generating(trials, shape)
    alpha = np.array([1.05, 2.0, 5.0, 30.0])
    remove, add = t.renyi(alpha, "remove"), t.renyi(alpha, "add")
    for order in itertools.permutations(range(3)):
        inside, out = (selected(law, order, f) for law in PAIR)
        kept = (inside > 0) & (out > 0)
        p, q = inside[kept], out[kept]
        assert np.all(np.log((p ** alpha[:, None] * q ** (1 - alpha[:, None])).sum(axis=1)) / (alpha - 1) <= remove)
        assert np.all(np.log((q ** alpha[:, None] * p ** (1 - alpha[:, None])).sum(axis=1)) / (alpha - 1) <= add)
        for gamma in (0.2, 0.7, 1.0, 1.6, 4.0):
            assert np.maximum(inside - gamma * out, 0).sum() <= t.hockey_stick(gamma) + 1e-15
            assert np.maximum(out - gamma * inside, 0).sum() <= t.hockey_stick(gamma, "add") + 1e-15


def test_without_counting_the_promise_is_broken():
    """Negative control: the best of K tells more than one run; a run's own curve is no bound."""
    rare = (0.1, 0.9), (0.05, 0.95)  # a telling outcome that scores best
    f = generating(20.0, 1.0)
    once = dn.tradeoff(dn.mechanisms.FinitePair(*rare)).advantage()
    best = np.abs(selected(rare[0], (1, 0), f) - selected(rare[1], (1, 0), f)).sum() / 2
    assert best > 3 * once
    assert best <= dn.tradeoff(dn.mechanisms.tuned(dn.mechanisms.FinitePair(*rare), trials=20.0)).advantage()
