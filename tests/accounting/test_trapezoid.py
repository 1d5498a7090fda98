"""What engines share of the trapezoid rule, against sums and integrals that are known."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from deniable.accounting.trapezoid import Sum, even_aliases, falling_rest, half_line, nodes_until, poles

MU = 0.8


def _overlap(period: float, log_gamma: float) -> float:
    """Sum for ∫ min(p, γq)/√γ of N(0, 1) against N(MU, 1): the transform on Re w = ½ is e^{−μ²/8 − μ²t²/2}."""
    t = nodes_until(40 / MU, 2 * math.pi / period, 1 << 14)
    phi = np.exp(-(MU**2) * (0.25 + t**2) / 2)
    return float(np.sum(half_line(t.size, period) * phi * np.cos(t * log_gamma) / (t**2 + 0.25)))


@pytest.mark.parametrize("log_gamma", [0.0, 0.5, -1.3])
@pytest.mark.parametrize("period", [20.0, 30.0])
def test_aliases_at_even_priors_are_known_up_to_hockey_sticks(period, log_gamma):
    gamma = math.exp(log_gamma)
    exact = float(ndtr(-MU / 2 + log_gamma / MU) + gamma * ndtr(-MU / 2 - log_gamma / MU))  # ∫ min(p, γq)
    found = math.sqrt(gamma) * _overlap(period, log_gamma)
    aliases = float(even_aliases(period, gamma))
    assert found - aliases == pytest.approx(exact, abs=1e-13)
    assert aliases > 1e-7  # without them it would be wrong


@pytest.mark.parametrize("spacing", [0.01, 0.3])
def test_the_rest_of_a_falling_sum_is_bounded(spacing):
    edges = np.linspace(1.0, 6.0, 40)
    height = np.exp(-edges)
    rest = falling_rest(edges, np.stack([height, 2 * height]), spacing)
    for k in (0, 5, 25, 39):
        t = np.arange(math.ceil(edges[k] / spacing), math.ceil(200 / spacing)) * spacing
        truth = spacing / math.pi * np.sum(np.exp(-t) / t**2)
        assert truth <= rest[0, k]
        assert k == 39 or spacing > 0.1 or rest[0, k] < 2 * truth  # every panel is charged a first term
    np.testing.assert_allclose(rest[1], 2 * rest[0])


def test_poles_invert_an_exponential_law():
    # loss log(1/2) + E, E exponential of rate 2: E_out e^{wL} = 2^{−w}·2/(2 − w), and E_out e^L = 1
    c, period, ell = 0.6, 60.0, 0.3
    t = 2 * math.pi / period * np.arange(400_000)
    w = c + 1j * t
    kernel = poles(w)
    transform = 2.0 ** (-w) * 2 / (2 - w) * half_line(t.size, period)
    tail = float(np.sum(transform * np.exp(-w * ell) * kernel[:, 0]).real)
    assert tail == pytest.approx(math.exp(-2 * (ell + math.log(2))), abs=1e-5)
    below = -float(np.sum(transform * np.exp(-(w - 1) * ell) * kernel[:, 1]).real)  # between the poles: in(L ≤ ℓ)
    assert below == pytest.approx(1 - math.exp(-(ell + math.log(2))), abs=1e-4)


def test_nothing_is_claimed_of_what_is_not_finite():
    parts = [np.array([1.0, 2.0, 3.0]), np.array([0.1, np.nan, 0.1]), np.array([0.2, 0.2, np.inf]), np.full(3, 0.3)]
    checked = Sum(*parts).checked()
    np.testing.assert_allclose(checked.error, [0.6, np.inf, np.inf])
    np.testing.assert_allclose(checked.value, [1.0, 0.0, 0.0])
