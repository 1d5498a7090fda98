"""One Poisson-sampled Laplace step in closed form: inside the certified grid, and by integrals over outcomes."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

import deniable as dn
from deniable.accounting.pld.curve import MultiScaleTradeoff
from deniable.accounting.steps.sampled import SampledTradeoff
from deniable.accounting.transform.composed import PrivacyLoss

FPR = np.array([1e-9, 1e-3, 0.1, 0.3, 0.49, 0.6, 0.9, 0.999])
LOG_GAMMA = np.array([-3.0, -0.5, -0.01, 0.0, 0.005, 0.1, 0.5, 2.0, 6.0])


@pytest.mark.parametrize(("scale", "rate"), [(1.0, 0.01), (1.0, 0.5), (0.2, 0.3), (5.0, 0.9), (0.5, 0.999)])
def test_closed_form_meets_the_grid(scale, rate):
    mechanism = dn.Laplace(scale, 1.0, 1, rate)
    t, grid = dn.tradeoff(mechanism), MultiScaleTradeoff(PrivacyLoss.of([mechanism]))
    assert isinstance(t, SampledTradeoff)
    for ours, other in ((t, grid), (t.inverse(), grid.inverse())):
        for ask in (lambda x, side: x.delta(LOG_GAMMA, "remove", side), lambda x, side: x.tpr(FPR, side)):
            (low, high), (below, above) = ([ask(x, side) for side in ("lower", "upper")] for x in (ours, other))
            assert np.all(low <= above + 1e-15)
            assert np.all(below <= high + 1e-15)
            assert np.all(high - low < 2e-12)


def test_hockey_sticks_are_integrals_over_outcomes():
    scale, rate, gamma = 0.7, 0.2, 1.3
    t = dn.tradeoff(dn.Laplace(scale, 1.0, 1, rate))

    def densities(x):
        q, p = (math.exp(-abs(x - m) / scale) / (2 * scale) for m in (0.0, 1.0))
        return q, (1 - rate) * q + rate * p

    def stick(x, add):
        q, p = densities(x)
        return max(p - gamma * q, 0.0) if add else max(q - gamma * p, 0.0)

    for direction in ("remove", "add"):
        parts = [quad(stick, a, b, args=(direction == "remove",), limit=200)[0] for a, b in ((-20, 0), (0, 1), (1, 20))]
        low, high = (t.delta(math.log(gamma), direction, side) for side in ("lower", "upper"))
        assert low - 1e-7 <= sum(parts) <= high + 1e-7
