"""Shuffled batches: attacks that are played out lie in the bracket; removal is another question, and shows."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import deniable as dn


def transcripts(rng, n, mechanism, member):
    """Outcomes (n, epochs, batches) when all other records contribute nothing."""
    x = rng.normal(0, mechanism.noise_multiplier, (n, mechanism.epochs, mechanism.batches))
    if member:
        place = rng.integers(mechanism.batches, size=(n, mechanism.epochs, 1))
        np.put_along_axis(x, place, np.take_along_axis(x, place, 2) + 1, 2)
    return x


def log_ratio(x, mechanism):
    sigma = mechanism.noise_multiplier
    return (logsumexp((2 * x - 1) / (2 * sigma**2), axis=2) - math.log(mechanism.batches)).sum(axis=1)


@pytest.mark.parametrize("mechanism", [dn.ShuffledBatches(0.8, 20, 1), dn.ShuffledBatches(1.5, 5, 8)])
def test_the_likelihood_ratio_attack_lies_in_the_bracket(mechanism):
    rng, n = np.random.default_rng(3), 20_000
    t = dn.tradeoff(mechanism)
    inside, outside = (log_ratio(transcripts(rng, n, mechanism, member), mechanism) for member in (True, False))
    error = 4 / math.sqrt(n)
    for fpr in (0.5, 0.1, 0.01):
        hits = float(np.mean(inside > np.quantile(outside, 1 - fpr)))
        assert t.tpr(fpr, "lower") <= hits + error
        assert hits - error <= t.tpr(fpr)
    assert t.advantage(side="lower") > 0.25 * t.advantage()
    assert "what one record" not in t.assumptions.adjacency
    assert t.assumptions.adjacency.startswith("the contribution of one record becomes 0")


def test_the_lower_side_is_that_of_random_allocation():
    """All other records contribute nothing: it was the test of the largest outcome."""
    t, allocated = (dn.tradeoff(kind(0.5, 30, 2)) for kind in (dn.ShuffledBatches, dn.RandomAllocation))
    assert t.advantage(side="lower") == allocated.advantage(side="lower")
    out, member = 1 - norm.cdf(2.0) ** 60, 1 - norm.cdf(2.0) ** 58 * norm.cdf(0.0) ** 2
    assert t.tpr(out, "lower") > member
    assert t.inverse().tpr(1e-3, "lower") == allocated.inverse().tpr(1e-3, "lower")


def test_the_cap_is_gaussian_and_one_batch_attains_it():
    t = dn.tradeoff(dn.ShuffledBatches(2.0, 1, 9))
    exact = dn.tradeoff(dn.GaussianDP(1.5))
    assert t.advantage() == pytest.approx(exact.advantage(), rel=1e-12)
    assert t.advantage(side="lower") == pytest.approx(exact.advantage(), rel=1e-9)
    swapped = dn.tradeoff(dn.ShuffledBatches(2.0, 10, 9), adjacency="replace")
    assert swapped.advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(3.0)).advantage(), rel=1e-12)
    assert swapped.assumptions.adjacency == "replace one record"
    both = dn.tradeoff(dn.ShuffledBatches(2.0, 10, 9) + dn.SubsampledGaussian(1.0, 1.0, 1))
    assert both.advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(math.sqrt(1.5**2 + 1))).advantage(), rel=1e-12)
    assert both.advantage(side="lower") >= dn.tradeoff(dn.GaussianDP(1.0)).advantage(side="lower")


def test_other_risks_use_the_cap():
    t = dn.tradeoff(dn.ShuffledBatches(2.0, 10, 9))
    assert t.group(2).advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(3.0)).advantage(), rel=1e-9)
    assert t.group(2).advantage(side="lower") <= t.group(2).advantage()
    assert t.reconstruction(0.01) == pytest.approx(dn.tradeoff(dn.GaussianDP(1.5)).tpr(0.01), rel=1e-9)
    assert t.renyi(3.0) == pytest.approx(3 * 1.5**2 / 2)


def test_removing_a_record_is_refused_because_it_can_show_more():
    """Four records, two batches, σ = 1: a removed record shifts the batches, advantage .43 above the cap's .383."""
    x = np.arange(-9, 12, 0.05)
    first, second = np.meshgrid(x, x, indexing="ij")

    def density(a, b):
        return norm.pdf(first, a) * norm.pdf(second, b)

    # the others contribute +1, this record −1; in: (0, 2) or (2, 0); removed: batches of two and one, (2, 1)
    inside, removed = (density(0, 2) + density(2, 0)) / 2, density(2, 1)
    advantage = float(np.sum(np.abs(inside - removed)) * 0.05**2 / 2)
    cap = dn.tradeoff(dn.ShuffledBatches(1.0, 2, 1)).advantage()
    assert advantage > cap + 0.04
    zeroed = (density(1, 2) + density(2, 1)) / 2
    assert np.sum(np.abs(inside - zeroed)) * 0.05**2 / 2 <= cap + 1e-6
    with pytest.raises(dn.InputError, match="adjacency must be 'zero-out' for this mechanism, got 'add-remove'"):
        dn.tradeoff(dn.ShuffledBatches(1.0, 2, 1), adjacency="add-remove")
