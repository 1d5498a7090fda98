"""The transform of randomised responses along a vertical line Re w = c, with bounds on its error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.ratios import ComplexArray, complex_log1p, randomized_response_cumulants

Responses = Sequence[tuple[float, float]]  # ε and how many
_TINY = 1e-300
_OF_K = 16  # roundings of K(c): see randomized_response_cumulants


def randomized_responses_rounding(responses: Responses, c: float, size: FloatArray) -> FloatArray:
    """Bound on the error of log M(w) of all responses, |w| = ``size``, at real part c: of K(c), and of what turns."""
    real = np.asarray(c)
    known = sum(count * abs(float(randomized_response_cumulants(epsilon, real)[0])) for epsilon, count in responses)
    return 4 * EPS * sum(epsilon * count for epsilon, count in responses) * size + _OF_K * EPS * known


def randomized_responses_turned(responses: Responses, c: float, t: FloatArray) -> tuple[ComplexArray, FloatArray]:
    """log M(c + it)/M(c) of all responses, and a bound on the error of their product: of the logarithm, to all orders.

    That of K(c) is apart, and so is the rounding of the logarithms themselves.

    One is cos x + i·m·sin x, x = εt, m the tilted mean of the signs: 1 + z with z = −2·sin²(x/2) + i·m·sin x, known to
    a few roundings of x; where cos x is next to 0 these weigh more.
    """
    total, error = np.zeros(t.shape, dtype=np.complex128), np.zeros(t.shape)
    for epsilon, count in responses:
        slope = float(randomized_response_cumulants(epsilon, np.asarray(c))[1]) / epsilon
        angle = epsilon * t
        one = complex_log1p(-2 * np.sin(angle / 2) ** 2 + 1j * slope * np.sin(angle))
        total = total + count * one
        error = error + count * np.logaddexp(0.0, np.log(8 * EPS * angle + _TINY) - one.real)
    return total, error
