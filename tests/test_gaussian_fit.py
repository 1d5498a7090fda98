"""The best-fitting Gaussian curve: its regret bounds differences of accuracies everywhere, and no μ does better."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.curves import ApproximateTradeoff, GaussianTradeoff, gaussian_fit

CURVES = {
    "Gaussian": GaussianTradeoff(0.7),
    "hardly any": GaussianTradeoff(1e-7),
    "pure": ApproximateTradeoff(1.0, 0.0),
    "far": ApproximateTradeoff(10.0, 0.0),
    "failing": ApproximateTradeoff(0.5, 0.01),
    "all": ApproximateTradeoff(0.0, 1.0),
    "nothing": ApproximateTradeoff(0.0, 0.0),
    "Laplace": dn.tradeoff(dn.Laplace(1.0)),
    "one step": dn.tradeoff(dn.SubsampledGaussian(0.6, 0.1, 1)),
}
LOGITS = np.concatenate([np.linspace(-35, 35, 1401), np.random.default_rng(0).normal(scale=1.5, size=600)])
PRIORS = 1 / (1 + np.exp(LOGITS))


def difference(curve: dn.Tradeoff, mu: float, priors: np.ndarray) -> float:
    other = GaussianTradeoff(mu)
    short = curve.accuracy(priors, "lower") - other.accuracy(priors)
    beyond = other.accuracy(priors, "lower") - curve.accuracy(priors)
    return float(max(short.max(), beyond.max()))


@pytest.mark.parametrize("name", CURVES)
def test_regret_bounds_the_difference_at_every_prior(name: str) -> None:
    curve = CURVES[name]
    fit = gaussian_fit(curve)
    assert fit.least <= fit.regret <= 0.5
    assert difference(curve, fit.mu, PRIORS) <= fit.regret
    assert np.all(curve.accuracy(PRIORS, "lower") <= GaussianTradeoff(fit.mu).accuracy(PRIORS) + fit.regret)


@pytest.mark.parametrize("name", ["pure", "far", "failing", "Laplace"])
def test_no_other_mu_is_nearer_than_the_least_regret(name: str) -> None:
    curve = CURVES[name]
    fit = gaussian_fit(curve)
    assert 0.9 * fit.regret < fit.least
    dense = 1 / (1 + np.exp(np.linspace(-12, 12, 4001)))
    assert min(difference(curve, factor * fit.mu, dense) for factor in np.linspace(0.8, 1.2, 21)) >= 0.99 * fit.least


def test_gaussian_curves_are_their_own_fit() -> None:
    fit = gaussian_fit(CURVES["Gaussian"])
    assert fit.mu == pytest.approx(0.7, abs=1e-7)
    assert fit.regret < 1e-4
    assert gaussian_fit(CURVES["nothing"]).mu < 1e-12


def test_a_fit_is_no_bound() -> None:
    """Some attack against the curve beats all attacks against the fit: the docstring says so."""
    fit = gaussian_fit(CURVES["pure"])
    assert np.any(CURVES["pure"].accuracy(PRIORS, "lower") > GaussianTradeoff(fit.mu).accuracy(PRIORS))


def test_regret_covers_both_sides_of_a_curve() -> None:
    """What lies between the sides may be the truth: a curve of which nothing is known from below has a large regret."""
    above = GaussianTradeoff(1.0)
    wide = dn.curves.BracketTradeoff(above, GaussianTradeoff(0.0))
    fit = gaussian_fit(wide)
    for truth in (above, GaussianTradeoff(0.0), GaussianTradeoff(0.5)):
        assert difference(truth, fit.mu, PRIORS) <= fit.regret
    assert fit.least == 0
