"""Binomial tails and quantiles of beta laws, rounded to a side: what SciPy computes is charged with its error.

The errors were measured against 50 digits by ``benchmarks/accounting/special_functions.py`` (table in
docs/methods.md): up to 1.3e-11 for ``betainc`` at 10⁷ trials, 1.4e-13 for ``betaincinv`` at 10⁵. ``bdtr`` and
``bdtrc`` are wrong by 2e-8 (elsewhere by 1e-3) and are not used.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betainccinv, betaincinv

from deniable._check import FloatArray, IntArray

TAIL_ERROR = 2e-10  # relative, charged to binomial tails
QUANTILE_ERROR = 1e-11  # relative, charged to quantiles


def binomial_above(successes: ArrayLike, trials: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Return an upper bound on P(Bin(``trials``, ``rate``) > ``successes``); 1 below no success, 0 from all on."""
    k, n, p = (np.asarray(x, dtype=np.float64) for x in (successes, trials, rate))
    inside = (k >= 0) & (k < n)
    tail = betainc(np.where(inside, k + 1, 1.0), np.where(inside, n - k, 1.0), p)
    bound = np.minimum(tail * (1 + TAIL_ERROR), 1.0)
    return np.where(inside, np.where(np.isnan(bound), 1.0, bound), np.where(k < 0, 1.0, 0.0))


def beta_quantile(a: ArrayLike, b: ArrayLike, tail: float, side: Literal["upper", "lower"]) -> FloatArray:
    """Return a bound on a quantile of Beta(a, b) that leaves ``tail`` outside: above it, or below it.

    ``"upper"`` is not below the 1 − ``tail`` quantile (computed without forming 1 − ``tail``, which has lost the
    digits of small tails), ``"lower"`` not above the ``tail`` quantile.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if side == "upper":
        found = np.asarray(betainccinv(first, second, tail), dtype=np.float64)
        return np.where(np.isnan(found), 1.0, np.minimum(found * (1 + QUANTILE_ERROR), 1.0))
    found = np.asarray(betaincinv(first, second, tail), dtype=np.float64)
    return np.where(np.isnan(found), 0.0, found * (1 - QUANTILE_ERROR))


def binomial_limits(hits: ArrayLike, trials: int | IntArray, error: float) -> tuple[FloatArray, FloatArray]:
    """Return the exact binomial limits, each with one-sided ``error`` (Clopper & Pearson 1934)."""
    k = np.asarray(hits, dtype=np.float64)
    low = np.where(k > 0, beta_quantile(np.maximum(k, 1), trials - k + 1, error, "lower"), 0.0)
    high = np.where(k < trials, beta_quantile(k + 1, np.maximum(trials - k, 1), error, "upper"), 1.0)
    return low, high
