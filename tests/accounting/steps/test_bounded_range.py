"""One bounded-range step in closed form, against the definition of the class at high precision and other engines."""

import mpmath as mp
import numpy as np
import pytest

from deniable.accounting.steps.laplace import BoundedRangeTradeoff

RANGES = [1e-9, 1e-3, 0.3, 2.0, 30.0]


def two_points(epsilon, t):
    """The pair with log-ratios t and t − ε: probabilities of the first outcome in and out."""
    out = (mp.exp(0) - mp.exp(t - epsilon)) / (mp.exp(t) - mp.exp(t - epsilon))
    return out * mp.exp(t), out


def most(epsilon, gamma):
    """The largest hockey stick of all pairs of a range, by halving the range of t."""
    with mp.workdps(40):
        eps, g = mp.mpf(epsilon), mp.mpf(gamma)

        def height(t):
            inside, out = two_points(eps, t)
            return max(inside - g * out, 0) + max((1 - inside) - g * (1 - out), 0)

        # elsewhere one outcome, or both, or none is the best test, and H is trivial
        low, high = max(mp.mpf(0), mp.log(g)), min(eps, eps + mp.log(g))
        if low >= high:
            return max(1 - g, 0)
        for _ in range(140):
            a, b = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, b) if height(a) > height(b) else (a, high)
        return max(height((low + high) / 2), 1 - g, 0)


@pytest.mark.parametrize("epsilon", RANGES)
def test_hockey_sticks_are_the_largest_of_the_class(epsilon):
    t = BoundedRangeTradeoff(epsilon)
    for share in (-1.01, -0.999, -0.4, 0.0, 0.3, 0.9, 0.999999, 1.01):
        gamma = float(np.exp(share * epsilon))
        truth = most(epsilon, gamma)
        for way in ("remove", "add"):
            low, high = (t.hockey_stick(gamma, way, side) for side in ("lower", "upper"))
            assert low <= truth <= high
            assert high - low <= 1e-12 * float(truth) + 1e-14 * epsilon


@pytest.mark.parametrize("epsilon", RANGES)
def test_odds_grow_by_the_range(epsilon):
    t = BoundedRangeTradeoff(epsilon)
    for fpr in (1e-300, 1e-9, 0.01, 0.5, 0.999999):
        with mp.workdps(40):
            odds = mp.mpf(fpr) / (1 - mp.mpf(fpr)) * mp.exp(epsilon)
            truth = odds / (1 + odds)
        assert t.tpr(fpr, "lower") <= truth <= t.tpr(fpr)
        assert t.tpr(fpr) <= float(truth) * (1 + 1e-13)
