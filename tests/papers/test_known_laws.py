"""Likelihood-ratio attacks: laws by definition, and TPR and FPR at the known truth."""

from itertools import combinations

import numpy as np
import pytest
from known_laws import attack_random_subset, attack_transcript, log_density, ratio_advantage, sample_noise
from scipy import integrate, stats

import deniable as dn
from deniable.audit import AttackScores


@pytest.mark.parametrize("noise", ["norm-laplace", "gaussian"])
def test_noise_densities_integrate_to_one(noise):
    in_line = integrate.quad(lambda x: np.exp(log_density(np.array([x]), noise, 0.7)), -40, 40, points=[0])[0]
    in_plane = integrate.quad(lambda r: 2 * np.pi * r * np.exp(log_density(np.array([r, 0.0]), noise, 0.7)), 0, 60)[0]
    assert (in_line, in_plane) == pytest.approx((1.0, 1.0))


def test_norm_laplace_radius_is_gamma():
    radius = np.linalg.norm(sample_noise((20_000, 7), "norm-laplace", 0.3, np.random.default_rng(0)), axis=1)
    assert stats.kstest(radius, stats.gamma(7, scale=0.3).cdf).pvalue > 1e-3


def test_transcripts_reach_the_bound():
    mechanism = dn.SubsampledGaussian(0.7, 0.1, 20) + dn.SubsampledGaussian(2.0, 1.0, 3)
    promise = dn.tradeoff(mechanism)
    scores = attack_transcript(mechanism, n=150_000, rng=5)
    assert scores.advantage_at() == pytest.approx(promise.advantage(), rel=0.01)
    audit = scores.audit(0.999)
    assert audit.tpr(0.01).low <= promise.tpr(0.01) <= audit.tpr(0.01).high
    assert audit.tpr(0.01).estimate == pytest.approx(promise.tpr(0.01), rel=0.02)
    assert not audit.compare(promise).violated


def test_ratio_advantage_is_precise_and_its_error_is_honest():
    mechanism = dn.SubsampledGaussian(2.0, 1.0, 1)
    values, errors = np.transpose([ratio_advantage(attack_transcript(mechanism, n=4_000, rng=s)) for s in range(200)])
    assert values.mean() == pytest.approx(2 * stats.norm.cdf(0.25) - 1, abs=5 * errors.mean() / np.sqrt(200))
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


def last_iterates(promise, n, rng):
    """The best attack on the last iterate, where a record pushes each step of a quadratic by its full sensitivity."""
    step, left = promise.step_size, np.arange(promise.steps)

    def signal(curvature):
        kept = (1 - step * curvature) ** left  # what remains of each step's push in the last iterate
        return step * kept.sum(), step * promise.noise_multiplier * np.sqrt((kept**2).sum())

    ends = (promise.strong_convexity, promise.smoothness)
    curvature = max(ends, key=lambda h: abs(signal(h)[0]) / signal(h)[1])
    shift, spread = signal(curvature)

    def ratio(member):
        w = np.zeros(n)
        for _ in left:
            w = w - step * (curvature * w - member + promise.noise_multiplier * rng.standard_normal(n))
        return shift * (2 * w - shift) / (2 * spread**2)

    return AttackScores(ratio(True), ratio(False), "ratio", repr(promise), {"exact_ratio": True})


@pytest.mark.parametrize("descent", [(5.0, 50, 0.1, 1.0, 0.5), (2.0, 5, 1.0, 1.0, 0.1), (5.0, 50, 0.1, 1.0, 1.8)])
def test_the_last_iterate_of_a_quadratic_meets_its_bound(descent):
    promise = dn.NoisyGradientDescent(*descent)
    scores = last_iterates(promise, 20_000, np.random.default_rng(1))
    measured, error = ratio_advantage(scores)
    proven = dn.tradeoff(promise).advantage()
    assert abs(measured - proven) < 4 * error  # and so above 0.9 of it: the errors are below 1 %
    assert error < 0.01 * proven
    weaker = dn.NoisyGradientDescent(1.5 * descent[0], *descent[1:])
    assert scores.audit().compare(weaker).violated


def test_the_last_iterate_where_steps_overshoot_shows_less_than_the_bound():
    promise = dn.NoisyGradientDescent(5.0, 50, 0.1, 1.0, 1.95)
    measured, error = ratio_advantage(last_iterates(promise, 20_000, np.random.default_rng(1)))
    assert measured < 0.7 * dn.tradeoff(promise).advantage()
    # the law of the iterate, written out: a sum of 50 pushes that shrink by 1 − ηm
    kept = (1 - 1.95 * 0.1) ** np.arange(50)
    mu = kept.sum() / np.sqrt((kept**2).sum()) / 5.0
    assert abs(measured - (2 * stats.norm.cdf(mu / 2) - 1)) < 4 * error
