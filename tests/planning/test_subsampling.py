"""The planner against closed forms at full batch, a reference run, and a simulated attacker."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import deniable as dn
from deniable import bounds


def full_batch_plan(**options):
    """A batch as large as the pool: full-batch steps, which are Gaussian DP with μ = √steps/σ."""
    asked = {"batch_size": 1000, "epochs": 10, "rates": [0.01, 0.05, 0.1, 0.4], "delta": 1e-6}
    return dn.planning.plan_subsampling(1000, 0.3, 1e-3, **(asked | options))


def test_full_batch_noise_is_the_closed_form():
    plan = full_batch_plan()
    assert np.all(plan.sample_rate == 1)
    assert np.all(plan.steps == 10)
    assert list(plan.feasible) == [True, True, True, False]  # guessing at T = 0.4 is already right too often
    for rate, noise in zip(plan.rate[:3], plan.noise_multiplier[:3], strict=True):
        tpr = 1e-3 * (0.3 / 0.7) * (1 - rate) / rate
        exact = np.sqrt(10) / (ndtri(tpr) - ndtri(1e-3))
        assert noise >= exact * (1 - 1e-12)  # rounded to the private side
        assert noise == pytest.approx(exact, rel=1e-5)
        assert dn.tradeoff(dn.SubsampledGaussian(noise, 1.0, 10)).precision(1e-3, rate) <= 0.3


def test_columns_mean_what_they_say():
    plan = full_batch_plan()
    assert list(plan.expected_size) == pytest.approx([10, 50, 100, 400])
    kept = pd.DataFrame(vars(plan))[plan.feasible]
    assert np.all(kept["precision"] <= 0.3)
    assert np.all(kept["precision_without_thinning"] > kept["precision"])
    assert np.all(kept["precision_from_dp"] > kept["precision"])  # the exact ROC is what lets the noise be this small
    for row in kept.itertuples():
        curve = dn.tradeoff(dn.SubsampledGaussian(row.noise_multiplier, 1.0, 10))
        assert row.epsilon == curve.epsilon(1e-6)
        assert row.precision_from_dp == pytest.approx(
            bounds.positive_accuracy(row.epsilon, prior=row.rate, delta=1e-6, fpr=1e-3)[1], rel=1e-9
        )
        assert row.pool_epsilon == pytest.approx(bounds.subsampled_epsilon(row.epsilon, rate=row.rate), rel=1e-9)
    # less data with more noise is beaten; here noise grows with the data, so all that is feasible is on the frontier
    assert np.array_equal(plan.efficient, plan.feasible)


def test_a_dp_sgd_run_of_known_leakage_is_found_again():
    """Noise 1, rate 0.01, 5000 steps: TPR 0.015836315 at FPR 1e-3 (design reference value)."""
    rate, tpr, fpr = 0.1, 0.015836315, 1e-3
    target = rate * tpr / (rate * tpr + (1 - rate) * fpr)
    plan = dn.planning.plan_subsampling(
        256_000, target, fpr, batch_size=256, epochs=50, rates=[rate], noise_multipliers=(0.8, 2.0)
    )
    assert plan.sample_rate[0] == pytest.approx(0.01)
    assert plan.steps[0] == 5000
    assert plan.noise_multiplier[0] == pytest.approx(1.0, abs=1e-5)
    assert plan.precision[0] <= target
    assert np.isnan(plan.epsilon[0])


def test_more_data_can_need_less_noise_and_beats_what_has_less_of_both():
    """A batch of fixed size is a smaller share of a larger set: thinning too far costs noise as well as data."""
    plan = dn.planning.plan_subsampling(
        100_000, 0.5, 1e-2, batch_size=500, epochs=20, rates=[0.02, 0.1, 0.3], noise_multipliers=(1.0, 20.0)
    )
    assert np.all(plan.feasible)
    beaten = ~plan.efficient
    for i in np.flatnonzero(beaten):
        assert np.any((plan.expected_size > plan.expected_size[i]) & (plan.noise_multiplier < plan.noise_multiplier[i]))
    for i in np.flatnonzero(plan.efficient):
        larger = plan.expected_size > plan.expected_size[i]
        assert np.all(plan.noise_multiplier[larger] >= plan.noise_multiplier[i])


def test_a_simulated_attacker_is_right_no_more_often_than_promised():
    """Full batch, T = 0.05: members shift the mean of one step's release; half the noise is the negative control."""
    plan = full_batch_plan(rates=[0.05], epochs=1)
    rng = np.random.default_rng(4)
    member = rng.random(3_000_000) < 0.05

    def precision(noise: float) -> float:
        seen = member + noise * rng.normal(size=member.size)
        accused = seen > -noise * ndtri(1e-3)  # false positive rate 1e-3
        return float(np.mean(member[accused]))

    noise = float(plan.noise_multiplier[0])
    accusations = 3_000_000 * (0.95 * 1e-3 + 0.05 * ndtr(ndtri(1e-3) + 1 / noise))
    margin = 5 * 0.5 / np.sqrt(accusations)
    assert precision(noise) == pytest.approx(0.3, abs=margin)
    assert precision(noise / 2) > 0.3 + margin
