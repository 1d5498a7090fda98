"""Likelihood-ratio attacks: laws by definition, and TPR and FPR at the known truth."""

from itertools import combinations

import numpy as np
import pytest
from scipy import integrate, stats

import deniable as dn
from deniable.audit import (
    attack_last_iterate,
    attack_output_perturbation,
    attack_random_subset,
    attack_transcript,
    ratio_advantage,
)
from deniable.audit.known import log_density, sample_noise


@pytest.mark.parametrize("noise", ["norm-laplace", "gaussian"])
def test_noise_densities_integrate_to_one(noise):
    in_line = integrate.quad(lambda x: np.exp(log_density(np.array([x]), noise, 0.7)), -40, 40, points=[0])[0]
    in_plane = integrate.quad(lambda r: 2 * np.pi * r * np.exp(log_density(np.array([r, 0.0]), noise, 0.7)), 0, 60)[0]
    assert (in_line, in_plane) == pytest.approx((1.0, 1.0))


def test_norm_laplace_radius_is_gamma():
    radius = np.linalg.norm(sample_noise((20_000, 7), "norm-laplace", 0.3, np.random.default_rng(0)), axis=1)
    assert stats.kstest(radius, stats.gamma(7, scale=0.3).cdf).pvalue > 1e-3


@pytest.mark.parametrize("noise", ["norm-laplace", "gaussian"])
@pytest.mark.parametrize("d", [1, 2, 9])
def test_distances_alone_have_the_law_of_whole_releases(noise, d):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=d), rng.normal(size=d)
    fast = attack_output_perturbation(a, b, noise, 0.8, n=20_000, rng=2)
    for centre, scores in ((a, fast.member_scores), (b, fast.nonmember_scores)):
        released = centre + sample_noise((5_000, d), noise, 0.8, rng)
        whole = log_density(released - a, noise, 0.8) - log_density(released - b, noise, 0.8)
        assert stats.ks_2samp(whole.round(9), scores).pvalue > 1e-3  # as ties are found


@pytest.mark.parametrize(
    ("d", "rho", "advantage"),
    [(2, 3, 0.68365), (3, 1, 0.24184), (5, 2, 0.35621), (10, 0.7, 0.09031), (100, 5, 0.19787)],
)
def test_output_perturbation_reaches_its_total_variation(d, rho, advantage):
    # design reference values of TV for norm-Laplace noise, rho = distance / scale
    centre = np.zeros(d)
    centre[0] = rho
    scores = attack_output_perturbation(centre, np.zeros(d), "norm-laplace", 1.0, n=200_000, rng=3)
    assert scores.advantage_at() == pytest.approx(advantage, abs=0.005)
    assert advantage in scores.audit(0.999).advantage()


def test_gaussian_output_perturbation_is_gaussian_dp():
    scores = attack_output_perturbation([0.0, 1.0], [0.6, 0.2], "gaussian", 0.5, n=50_000, rng=4)
    promise = dn.tradeoff(dn.GaussianDP(2.0))
    audit = scores.audit(0.999)
    assert promise.advantage() in audit.advantage()
    assert promise.tpr(0.01) in audit.tpr(0.01)
    assert not audit.compare(promise).violated
    assert audit.compare(dn.tradeoff(dn.GaussianDP(1.8))).violated


def test_transcripts_reach_the_bound():
    mechanism = dn.SubsampledGaussian(0.7, 0.1, 20) + dn.SubsampledGaussian(2.0, 1.0, 3)
    promise = dn.tradeoff(mechanism)
    scores = attack_transcript(mechanism, n=150_000, rng=5)
    assert scores.advantage_at() == pytest.approx(promise.advantage(), rel=0.01)
    audit = scores.audit(0.999)
    assert audit.tpr(0.01).low <= promise.tpr(0.01) <= audit.tpr(0.01).high
    assert audit.tpr(0.01).estimate == pytest.approx(promise.tpr(0.01), rel=0.02)
    assert not audit.compare(promise).violated


@pytest.mark.parametrize(("d", "rho", "advantage"), [(1, 1.0, 1 - np.exp(-0.5)), (100, 5.0, 0.19787)])
def test_ratio_advantage_is_precise_and_its_error_is_honest(d, rho, advantage):
    # d = 1 in closed form, d = 100 a design reference value
    far = np.zeros(d)
    far[0] = rho
    found = [
        ratio_advantage(attack_output_perturbation(far, np.zeros(d), "norm-laplace", 1.0, n=4_000, rng=seed))
        for seed in range(200)
    ]
    values, errors = np.transpose(found)
    assert values.mean() == pytest.approx(advantage, abs=5 * errors.mean() / np.sqrt(200) + 5e-6)
    assert values.std() == pytest.approx(errors.mean(), rel=0.2)
    assert errors.mean() < np.sqrt(2 / 4_000) / 3  # counting: √(2/n) when little leaks


def slow_accuracy(values, record, scale):
    """Bayes accuracy of Proposition 2 for the mean of half of ``values`` with Gaussian noise, by integration."""
    halves = list(combinations(range(len(values)), len(values) // 2))
    means = {member: [np.mean(values[list(s)]) for s in halves if (record in s) == member] for member in (True, False)}

    def larger(t):
        return max(np.mean(stats.norm.pdf(t, m, scale)) for m in means.values()) / 2

    return integrate.quad(larger, -8, 8, limit=500)[0]


def test_optimal_adversary_reaches_the_bayes_accuracy():
    values = np.random.default_rng(6).normal(size=8)
    record = int(np.argmax(np.abs(values)))
    scores = attack_random_subset(lambda rows: rows.mean(), values, record, "gaussian", 0.2, n=80_000, rng=7)
    assert scores.method == "optimal adversary"
    assert 0.5 + scores.advantage_at() / 2 == pytest.approx(slow_accuracy(values, record, 0.2), abs=0.004)


def test_sampled_mixtures_come_close_and_do_not_share_releases():
    values = np.random.default_rng(8).normal(size=30)
    values[0] = 6.0
    scores = attack_random_subset(
        lambda rows: rows.mean(), values, 0, "norm-laplace", 0.1, n=2_000, n_subsets=400, rng=9
    )
    assert scores.method == "likelihood ratio of sampled mixtures"
    assert scores.audit().advantage().low > 0.3


@pytest.mark.parametrize("descent", [(5.0, 50, 0.1, 1.0, 0.5), (2.0, 5, 1.0, 1.0, 0.1), (5.0, 50, 0.1, 1.0, 1.8)])
def test_the_last_iterate_of_a_quadratic_meets_its_bound(descent):
    promise = dn.NoisyGradientDescent(*descent)
    scores = attack_last_iterate(promise, n=20_000, rng=1)
    measured, error = ratio_advantage(scores)
    proven = dn.tradeoff(promise).advantage()
    assert abs(measured - proven) < 4 * error  # and so above 0.9 of it: the errors are below 1 %
    assert error < 0.01 * proven
    weaker = dn.NoisyGradientDescent(1.5 * descent[0], *descent[1:])
    assert scores.audit().compare(weaker).violated


def test_the_last_iterate_where_steps_overshoot_shows_less_than_the_bound():
    promise = dn.NoisyGradientDescent(5.0, 50, 0.1, 1.0, 1.95)
    measured, error = ratio_advantage(attack_last_iterate(promise, n=20_000, rng=1))
    assert measured < 0.7 * dn.tradeoff(promise).advantage()
    # the law of the iterate, written out: a sum of 50 pushes that shrink by 1 − ηm
    kept = (1 - 1.95 * 0.1) ** np.arange(50)
    mu = kept.sum() / np.sqrt((kept**2).sum()) / 5.0
    assert abs(measured - (2 * stats.norm.cdf(mu / 2) - 1)) < 4 * error
