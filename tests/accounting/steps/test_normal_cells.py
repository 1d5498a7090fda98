"""Log-ratios of cells of a normal outcome, against 30 digits and against the bound on the rule's error."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from deniable._floats import EPS
from deniable.accounting.steps.normal_cells import _ROOM, _RULES, normal_centres, normal_masses
from deniable.accounting.steps.ratios import log_ratio


@pytest.mark.parametrize("extent", [0.01, 0.049, 0.051, 0.5, 1.9, 2.1, 4.0])
@pytest.mark.parametrize(("sigma", "rate"), [(0.1, 1e-6), (0.7, 0.01), (1.0, 0.9), (20.0, 1e-4)])
def test_centres_of_cells_of_every_width(sigma, rate, extent):
    rng = np.random.default_rng(3)
    s, q = mp.mpf(sigma), mp.mpf(rate)

    def loss(x):
        return log_ratio(x, np.array(sigma), np.array(rate))

    for middle in rng.uniform(-6, 6 + 1 / sigma, 6):
        half = extent / (abs(middle) + _ROOM + 1 / sigma)
        u = middle + half * np.array([-1.0, 1.0])
        edges, mass, hit = loss(u), normal_masses(u), normal_masses(u - 1 / sigma)
        p = (1 - rate) * mass + rate * hit
        found = normal_centres(loss, u, edges, p, mass, float(edges[1] - edges[0]), 1 / sigma)[0] + edges[0]
        with mp.workdps(30):
            m, ends = mp.mpf(middle), [mp.mpf(x) for x in u]

            def density(x, centre=m):  # near 1: quad stops at absolute errors
                return mp.exp((centre - x) * (centre + x) / 2)

            out = mp.quad(density, ends)
            scale = 1 + q * mp.expm1(m / s - 1 / (2 * s * s))
            inside = scale * mp.quad(
                lambda x, w=scale: density(x) * (1 + q * mp.expm1(x / s - 1 / (2 * s * s))) / w, ends
            )
            error = abs(float(found - mp.log(inside / out)))
        reach = 1 + abs(edges[1]) + (1 / sigma + abs(u[1])) / sigma
        assert error <= 16 * EPS * reach * (1 if extent < 2 else 8)


def test_the_rules_serve_the_widths_that_they_are_used_for():
    for count, _, most in _RULES:
        for extent in most * np.linspace(0.02, 1, 50):
            rho = 4 * (count - 1) / extent
            reach = (rho + 1 / rho) / 2
            for half in extent / _ROOM * np.linspace(0.02, 1, 50):
                exponent = (1 + reach) * (extent - _ROOM * half) + (half * reach) ** 2
                assert 32 / 15 * rho ** (2 - 2 * count) / (1 - rho**-2) * math.exp(exponent) < 1e-16
