"""One Poisson-sampled Laplace step in closed form, against integrals over outcomes."""

import math

from scipy.integrate import quad

import deniable as dn


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
