"""The corrected sampling bound, and what the printed one would have given."""

from __future__ import annotations

import math

import numpy as np
import pytest

import deniable as dn
from deniable.accounting.engines.monte_carlo import MonteCarloTradeoff
from deniable.accounting.transform.composed import PrivacyLoss

MECHANISM = dn.SubsampledGaussian(1.0, 0.1, 40)


def sampled(seed: int, samples: int = 20_000) -> MonteCarloTradeoff:
    return MonteCarloTradeoff.sample(PrivacyLoss.of([MECHANISM]), samples, 0.99, np.random.default_rng(seed))


def test_bands_contain_the_exact_curve():
    exact = dn.tradeoff(MECHANISM)
    fpr = np.array([0.9, 0.5, 0.1, 0.01])
    epsilons = np.linspace(-1, 1, 9)
    for seed in range(5):
        found = sampled(seed)
        for direction in ("add", "remove"):
            assert np.all(found.delta(epsilons, direction, side="lower") <= exact.delta(epsilons, direction))
            assert np.all(found.delta(epsilons, direction) >= exact.delta(epsilons, direction, side="lower"))
        for mine, other in ((found, exact), (found.inverse(), exact.inverse())):
            assert np.all(mine.tpr(fpr, side="lower") <= other.tpr(fpr))
            assert np.all(mine.tpr(fpr) >= other.tpr(fpr, side="lower"))
    assert found.confidence == 0.99


def test_printed_algorithm_is_never_positive():
    """Erratum E8: with max(η, 0) in place of min(η, 0) the mean of 1 − e^η is at most 0."""
    found = sampled(1)
    eta = -found.in_losses
    printed = np.mean(1 - np.exp(np.maximum(eta, 0)))
    corrected = np.mean(1 - np.exp(np.minimum(eta, 0)))
    assert printed <= 0 < corrected
    assert corrected == pytest.approx(dn.tradeoff(MECHANISM).advantage(), abs=found.radius)


def test_hoeffding_needs_a_sixth_of_the_printed_samples():
    """Erratum E9: 2e^{−2mδ²} against 2e^{−mδ²/3}."""
    found = sampled(0, 1000)
    beta = (1 - found.confidence) / 2
    assert 2 * math.exp(-2 * 1000 * found.radius**2) == pytest.approx(beta)
    assert 2 * math.exp(-6000 * found.radius**2 / 3) == pytest.approx(beta)


def test_same_seed_same_band_and_rng_by_keyword():
    a = dn.tradeoff(MECHANISM, engine="monte-carlo", n_samples=500, rng=3)
    b = dn.tradeoff(MECHANISM, engine="monte-carlo", n_samples=500, rng=3)
    assert a.advantage() == b.advantage()
    with pytest.raises(TypeError):
        dn.tradeoff(MECHANISM, 3)
