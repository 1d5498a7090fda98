"""Unproven nodes that choose lines: as good as the proven ones where they answer, else a refusal."""

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.engines.guess import epsilon_guesses, threshold_guesses
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.transform.composed import PrivacyLoss

LAWS = [
    (dn.SubsampledGaussian(1.0, 0.01, 5000),),
    (dn.SubsampledGaussian(0.3, 1e-4, 20000), dn.GaussianDP(0.3)),
    (dn.SubsampledGaussian(20.0, 0.3, 10**6), dn.SubsampledGaussian(0.7, 1e-6, 100), dn.PureDP(0.5)),
]


@pytest.mark.parametrize("parts", LAWS)
@pytest.mark.parametrize("c", [-3.0, 0.0, 0.3, 0.5, 1.0, 2.0])
def test_guessed_cumulants_are_the_cumulants(parts, c):
    loss = PrivacyLoss.of(parts)
    k, first, second = loss.cumulants(c)
    guessed = loss.guessed_cumulants(c)
    assert guessed[0] == pytest.approx(k, abs=1e-7)
    assert guessed[1] == pytest.approx(first, abs=1e-7 * np.sqrt(second))
    assert guessed[2] == pytest.approx(second, rel=1e-7)


def test_laws_tilted_beyond_the_nodes_are_refused():
    loss = PrivacyLoss.of([dn.SubsampledGaussian(1.0, 0.01, 10)])
    with pytest.raises(TooSlowError):
        loss.guide.cumulants(45.0)


@pytest.mark.parametrize("direction", ["add", "remove"])
def test_guesses_are_near_where_the_law_is_nearly_normal(direction):
    mechanism = dn.SubsampledGaussian(2.0, 0.01, 20_000)
    loss, curve = PrivacyLoss.of([mechanism]), dn.tradeoff(mechanism)
    delta = np.array([1e-3, 1e-6])
    assert epsilon_guesses(loss, delta, direction) == pytest.approx(curve.epsilon(delta, direction), rel=0.02)
    fpr = np.array([0.3, 1e-2, 1e-6])
    slope = np.exp(threshold_guesses(loss, fpr, "add"))  # of the ROC
    step = fpr * 1e-3
    assert slope == pytest.approx((curve.tpr(fpr + step) - curve.tpr(fpr - step)) / (2 * step), rel=0.05)


@pytest.mark.parametrize("direction", ["add", "remove"])
@pytest.mark.parametrize(
    "parts",
    [
        (dn.SubsampledGaussian(1.39, 1.2e-4, 46),),
        (dn.SubsampledGaussian(0.7, 3e-3, 1100), dn.SubsampledGaussian(2.5, 1e-3, 60)),
    ],
)
def test_guesses_are_nearer_where_records_are_drawn_rarely(parts, direction):
    loss, curve = PrivacyLoss.of(parts), dn.tradeoff(sum(parts[1:], parts[0]))
    fpr = np.array([1e-2, 1e-4, 1e-7])
    known = curve.inverted._tails(
        threshold_guesses(loss, fpr, direction), "out_above" if direction == "add" else "in_below"
    )
    rate = known.out_above if direction == "add" else known.in_below
    assert rate == pytest.approx(fpr, rel=0.1)
    delta = curve.delta(0.0, direction) * np.array([1e-1, 1e-4])
    assert epsilon_guesses(loss, delta, direction) == pytest.approx(curve.epsilon(delta, direction), rel=1e-3)


def test_what_a_lattice_cannot_tell_is_guessed_at_saddle_points():
    loss = PrivacyLoss.of([dn.SubsampledGaussian(1.0, 1e-3, 100)])
    both = threshold_guesses(loss, np.array([1e-3, 1e-20]), "add")
    assert np.all(np.isfinite(both))
    assert both[1] > both[0]
