"""Batches of a fixed size: against enumerated batches, the definition of C_q, full batches, and an attack."""

import math

import numpy as np
import pytest

import deniable as dn
from faults import faults_shown


def test_a_run_that_is_played_out_stays_below_and_exceeds_what_is_too_small():
    """Four records, batches of two, three steps: +1 or −1, told apart by the exact likelihood ratio."""
    sigma, steps, size = 1.0, 3, 20_000
    rng = np.random.default_rng(174)

    def losses(mine):
        taken = np.argsort(rng.random((size, steps, 4)), axis=2)[:, :, :2]  # two of four, record 0 is ours
        seen = mine * np.any(taken == 0, axis=2) + sigma * rng.normal(size=(size, steps))
        odds = [np.exp((seen * value - 0.5) / sigma**2) for value in (1, -1)]
        return (np.log1p(odds[0]) - np.log1p(odds[1])).sum(axis=1)

    inside, replaced = losses(1), losses(-1)
    t = dn.tradeoff(dn.WithoutReplacement(sigma, 2, 4, steps))
    poisson = dn.tradeoff(dn.SubsampledGaussian(sigma, 0.5, steps))
    halved = dn.tradeoff(dn.WithoutReplacement(2 * sigma, 2, 4, steps))  # as if a replacement moved 1
    spread = 5 * math.sqrt(0.25 / size)
    for threshold in np.quantile(replaced, [0.5, 0.8, 0.95]):
        false, true = np.mean(replaced >= threshold), np.mean(inside >= threshold)
        assert true <= t.tpr(false + spread) + spread
        # negative controls: adding or removing is another question, and so is half of the sensitivity
        assert true > poisson.tpr(max(false - spread, 0.0)) + spread
        assert true > halved.tpr(max(false - spread, 0.0)) + spread


def test_full_batches_are_gaussian():
    t = dn.tradeoff(dn.WithoutReplacement(4.0, 7, 7, 9))
    assert t.advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(1.5)).advantage(), rel=1e-12)
    assert t.assumptions.adjacency == "replace one record"
    nearly = dn.tradeoff(dn.WithoutReplacement(4.0, 999_999, 1_000_000, 9))
    assert nearly.advantage(side="lower") <= t.advantage()
    assert nearly.advantage() == pytest.approx(t.advantage(), abs=1e-5)


def test_lines_far_out_whose_constants_overflow_bound_nothing():
    # C of A + C/t is beyond doubles at these tilts; an exception would make the bound trivial
    t = dn.tradeoff(dn.WithoutReplacement(1.472, 346, 548, 32))
    fpr = np.array([4e-10, 6e-8, 0.5, 1 - 1.6e-6])
    with faults_shown():
        assert np.all(t.tpr(fpr, side="lower") <= t.tpr(fpr))
