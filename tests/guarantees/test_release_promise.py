"""What a release promises, against the optimal attack computed exactly and over many seeded repetitions."""

import itertools

import numpy as np
import pytest
from optimal_attack import exact_membership
from scipy.special import erf

import deniable as dn
from deniable.noise import GaussianNoise, NormLaplaceNoise
from deniable.releases import Mean, SecondMoment

RNG = np.random.default_rng(11)
COLUMN = RNG.normal(size=10)
SKEWED = RNG.lognormal(0, 1.5, size=9)
REGRESSION = (RNG.normal(size=(10, 1)), RNG.normal(size=10))


def slope(part):
    X, y = part
    return X.T @ y / (np.sum(X**2) + 0.5)


EXACT = [
    pytest.param("swap", Mean(), COLUMN, id="mean, exactly"),
    pytest.param("swap", Mean(), SKEWED, id="mean-skewed, exactly"),
    pytest.param("swap", Mean((-1, 1)), COLUMN, id="clipped mean, exactly"),
    pytest.param("swap", SecondMoment(), REGRESSION[0], id="second moment, exactly"),
]
CASES = [
    pytest.param("centre", np.mean, COLUMN, id="mean"),
    pytest.param("centre", np.median, COLUMN, id="median"),
    pytest.param("centre", np.max, COLUMN, id="max"),
    pytest.param("centre", np.mean, SKEWED, id="mean-skewed"),
    pytest.param("centre", slope, REGRESSION, id="ridge"),
]


def exact_eta(algorithm, data, law, k=None):
    return exact_membership(algorithm, data, law, k).worst / 2


@pytest.mark.parametrize(("bound", "algorithm", "data"), EXACT)
@pytest.mark.parametrize("eta", [0.02, 0.1])
def test_swap_gaussian_is_safe_and_tight(bound, algorithm, data, eta):
    r = dn.release(algorithm, data, advantage=2 * eta, bound=bound)
    scale = float(r.noise_scale.ravel()[0])
    best_attack = exact_eta(algorithm, data, GaussianNoise(scale, np.ones(1)))
    assert 0.7 * eta <= best_attack <= r.certificate.advantage / 2 <= eta
    # negative control: with half the noise the same attack breaks the promise
    assert exact_eta(algorithm, data, GaussianNoise(scale / 2, np.ones(1))) > eta


@pytest.mark.parametrize(("bound", "algorithm", "data"), CASES + EXACT)
@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.8])
def test_laplace_and_centre_are_safe_at_every_share(bound, algorithm, data, fraction):
    eta = 0.1
    r = dn.release(algorithm, data, advantage=2 * eta, bound=bound, noise="laplace", fraction=fraction)
    law = NormLaplaceNoise(float(r.noise_scale.ravel()[0]) / np.sqrt(2), np.ones(1))
    assert exact_eta(algorithm, data, law, r.certificate.n_train) <= r.certificate.advantage / 2 <= eta


@pytest.mark.parametrize("bound", ["centre", "swap"])
@pytest.mark.parametrize("fraction", [0.4, 0.5])
def test_the_certified_curve_holds_against_the_likelihood_ratio_attack(bound, fraction):
    """ROC of the optimal attack on each record, by integrating its two densities on a grid."""
    r = dn.release(Mean(), COLUMN, advantage=0.4, bound=bound, fraction=fraction)
    k, s = r.certificate.n_train, float(r.noise_scale)
    x = np.linspace(COLUMN.min() - 8 * s, COLUMN.max() + 8 * s, 20_001)
    cell = x[1] - x[0]
    sets = np.array(list(itertools.combinations(range(10), k)))
    densities = np.exp(-((x[:, None] - COLUMN[sets].mean(axis=1)) ** 2) / (2 * s**2)) / (s * np.sqrt(2 * np.pi))
    for record in range(10):
        member = (sets == record).any(axis=1)
        p, q = densities[:, member].mean(axis=1), densities[:, ~member].mean(axis=1)
        for world_in, world_out in ((p, q), (q, p)):
            order = np.argsort(-world_in / world_out)
            fpr, tpr = np.cumsum(world_out[order]) * cell, np.cumsum(world_in[order]) * cell
            chosen = np.searchsorted(fpr, [1e-4, 1e-3, 0.01, 0.1, 0.5])
            assert np.all(tpr[chosen] <= r.certificate.tradeoff.tpr(np.minimum(fpr[chosen], 1.0)) + 1e-6)


def test_norm_laplace_in_two_dimensions_is_safe():
    data = RNG.normal(size=(8, 2))
    r = dn.release(Mean(), data, advantage=0.2, bound="swap", noise="norm-laplace")
    law = NormLaplaceNoise(1.0, r.noise_scale / np.sqrt(3))
    found = exact_membership(Mean(), data, law)
    assert found.worst - found.error <= r.certificate.advantage <= 0.2


def test_certificates_fail_as_rarely_as_promised():
    """Every release is certified from samples; its scale is checked against the whole law of the coupling.

    That is E TV over all opposite pairs, which bounds η.
    250 releases that each fail with the 1 % that is allowed fail 2.5 times; more than 9 times with probability 2.5e-4.
    With 0.7 times the noise, the negative control, 51 of them fail (a fifth), and the test with them.
    """
    data = np.random.default_rng(5).lognormal(0, 1, size=14)
    sets = np.array(list(itertools.combinations(range(14), 7)))
    inside = data[sets].sum(axis=1)
    gaps = np.abs(2 * inside - data.sum()) / 7  # a set of 7 against the other 7

    def true_bound(scale):
        return erf(gaps / scale / np.sqrt(8)).mean() / 2

    eta, failures, fails_at_seventy_percent = 0.1, 0, 0
    for seed in range(250):
        r = dn.release(np.mean, data, advantage=2 * eta, n_resamples=96, confidence=0.99, rng=seed)
        assert r.certificate.kind == "sampled"
        assert r.certificate.advantage <= 2 * eta
        failures += true_bound(float(r.noise_scale)) > eta
        fails_at_seventy_percent += true_bound(0.7 * float(r.noise_scale)) > eta
    assert failures <= 9
    assert fails_at_seventy_percent > 25  # the scale has no large reserve; expected are 50, fewer than 26 in 1e-5
