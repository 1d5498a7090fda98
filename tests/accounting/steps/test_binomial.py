"""Binomial masses in 40 digits."""

import mpmath
import numpy as np
import pytest

from deniable.accounting.steps.finite_law import binomial


@pytest.mark.parametrize(
    ("count", "rate"), [(10_000_000, 0.5), (10_000_000, 1e-9), (3_000_000_000, 1e-10), (10**15, 1e-13), (7, 0.3)]
)
def test_binomial_laws_against_40_digits(count, rate):
    # SciPy's bdtr is wrong by 1.4e-3 at the first of them, and NaN beyond 2^31
    law = binomial(count, rate, 1 << 17)
    middle = int(np.argmax(law.mass))
    with mpmath.workdps(40):
        q = mpmath.mpf(rate)
        for place in sorted({0, middle // 2, middle, (middle + law.mass.size) // 2, law.mass.size - 1}):
            k = law.first + place
            log_choose = mpmath.loggamma(count + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(count - k + 1)
            truth = mpmath.exp(log_choose + k * mpmath.log(q) + (count - k) * mpmath.log1p(-q))
            assert abs(law.mass[place] - truth) <= law.relative_error * truth + mpmath.mpf(10) ** -300
    assert law.relative_error < 1e-12
