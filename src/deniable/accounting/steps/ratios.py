"""The privacy loss of one step as a function of its outcome, on the real line and off it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import EPS, PRODUCT_EXPONENT

ComplexArray = NDArray[np.complex128]
_CANCELS = -0.5  # r − 1 below which 1 is not taken from r


def log_ratio(u: FloatArray, sigma: FloatArray, rate: FloatArray) -> FloatArray:
    """L(u) = log(1 − q + q·e^a), a = u/σ − 1/(2σ²), without overflow and to full relative precision near 0."""
    return sampled_losses(u / sigma - 1 / (2 * sigma**2), rate)


def sampled_losses(a: FloatArray, rate: FloatArray | float) -> FloatArray:
    """log(1 − q + q·e^a): losses of steps that take the record with probability q.

    Far below 0 both terms are added as they are: 1 + q·(e^a − 1) would lose what 1 − q and e^a lie below 1.
    """
    rise = rate * np.expm1(np.minimum(a, PRODUCT_EXPONENT))
    low = rise < _CANCELS
    with np.errstate(divide="ignore"):
        moderate: FloatArray = np.log1p(rise)
        if low.any():
            moderate = np.where(low, np.logaddexp(np.log1p(-rate), np.log(rate) + a), moderate)
    if a.max(initial=0.0) <= PRODUCT_EXPONENT:
        return moderate
    large = a + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(a, PRODUCT_EXPONENT)))
    return np.where(a > PRODUCT_EXPONENT, large, moderate)


def sampled_error(a: FloatArray, blur: FloatArray, rate: float) -> FloatArray:
    """Bound on the error of :func:`sampled_losses` at finite arguments that are wrong by ``blur``; else its own.

    dL/da is the share q·e^{a − L} ≤ 1. Of L itself a few roundings are lost where it is near 0, and a few of
    1 + |log q| where it is the logarithm of a sum or a sum of logarithms.
    """
    loss = sampled_losses(a, rate)
    share = np.exp(
        np.minimum(np.where(np.isfinite(a), a - np.where(np.isfinite(loss), loss, 0.0), 0.0) + math.log(rate), 0.0)
    )
    share = np.where(np.isfinite(a), share, 0.0)
    size = np.where(np.isfinite(loss), np.abs(loss), 0.0)
    return np.asarray(blur * share + 8 * EPS * (size + np.where(size > 0.25, 1 - math.log(rate), 0.0)))


def ratio_error(u: FloatArray, sigma: float, rate: float) -> FloatArray:
    """Bound on the error of :func:`log_ratio`, whose argument errs by 2ε(|u|/σ + 1/σ²)."""
    finite = np.where(np.isfinite(u), u, 0.0)
    with np.errstate(invalid="ignore"):
        a = u / sigma - 1 / (2 * sigma**2)
    return sampled_error(a, 4 * EPS * (np.abs(finite) / sigma + 1 / sigma**2), rate)


def plain_losses(loss: FloatArray, rate: FloatArray | float) -> FloatArray:
    """a with log(1 − q + q·e^a) = ``loss``; −∞ at and below the least loss log(1 − q)."""
    with np.errstate(divide="ignore", over="ignore"):
        grown = np.maximum(np.expm1(np.minimum(loss, PRODUCT_EXPONENT)) / rate, -1.0)
        found: FloatArray = np.log1p(grown)
        low = (grown < _CANCELS) & (rate > 0.5)
        if low.any():
            found = np.where(low, np.log(np.maximum(np.exp(loss) - (1 - rate), 0.0) / rate), found)
        # e^loss − (1 − q) is e^loss up there
        return np.where(loss > PRODUCT_EXPONENT, loss - np.log(rate), found)


def complex_log1p(z: ComplexArray) -> ComplexArray:
    """log(1 + z) to full relative precision near 0, which numpy's log1p does not give for complex numbers."""
    x, y = z.real, z.imag
    with np.errstate(divide="ignore", over="ignore"):
        square = 2 * x + x * x + y * y
        near = np.abs(square) < 0.5
        far = np.log(np.maximum(np.hypot(1 + x, y), 1e-300))  # finite, for the sake of products
        modulus = np.where(near, 0.5 * np.log1p(np.where(near, square, 0.0)), far)
    return modulus + 1j * np.arctan2(y, 1 + x)
