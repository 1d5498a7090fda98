"""The bound on the rounding of fast Fourier transforms, against sums in 50 digits and transforms in long double."""

import mpmath as mp
import numpy as np
import pytest
from scipy import fft

from deniable._fourier import fft_error

LONG = np.longdouble
PRECISE = np.finfo(LONG).eps < 1e-18


@pytest.mark.parametrize("n", [16, 32, 512, 4096, 3**5, 5**4, 2 * 3 * 5**2, 2**3 * 3**3 * 5])
@pytest.mark.parametrize("library", [np.fft, fft], ids=["numpy", "scipy"])
def test_an_impulse_goes_through_every_twiddle(n, library):
    for place in (1, 3, n // 2 - 1):
        x = np.zeros(n)
        x[place] = 1.0
        found = library.rfft(x)
        with mp.workdps(30):
            exact = [mp.expjpi(-2 * mp.mpf(k) * place / n) for k in range(n // 2 + 1)]
            worst = max(abs(mp.mpc(complex(z)) - e) for z, e in zip(found, exact, strict=True))
        assert worst <= fft_error(n)


def errors(x, dtype):
    """Errors of the entries over ‖x‖₁, and of all over ‖x̂‖₂, of a transform and of its inverse."""
    n = x.size
    exact = fft.rfft(x.astype(LONG))
    found = fft.rfft(x.astype(dtype)).astype(np.clongdouble)
    back = fft.irfft(exact.astype(np.complex64 if dtype == np.float32 else complex), n).astype(LONG)
    again = fft.irfft(exact.astype(np.complex64 if dtype == np.float32 else complex).astype(np.clongdouble), n)
    whole = np.sqrt(2 * np.sum(np.abs(exact) ** 2))  # of both halves, at most
    return (
        float(np.max(np.abs(found - exact)) / np.abs(x).sum()),
        float(np.linalg.norm(np.abs(found - exact).astype(float)) / np.linalg.norm(np.abs(exact).astype(float))),
        float(np.linalg.norm((back - again).astype(float)) / (whole / np.sqrt(n))),
    )


@pytest.mark.skipif(not PRECISE, reason="long double is double here")
@pytest.mark.parametrize("n", [16, 128, 1024, 2**15, 3**9, 5**6, 2 * 3**4 * 5**3])
def test_transforms_of_laws_and_of_noise(n):
    rng = np.random.default_rng(n)
    law = np.exp(-0.5 * ((np.arange(n) / n - 0.4) / 0.05) ** 2)
    for x in (law / law.sum(), rng.random(n) ** 8, rng.choice([-1.0, 1.0], n)):
        assert max(errors(x.astype(np.float32).astype(float), np.float64)) <= fft_error(n)


@pytest.mark.skipif(not PRECISE, reason="long double is double here")
def test_single_precision_does_not_keep_it():
    """Negative control."""
    x = np.random.default_rng(0).random(1 << 10).astype(np.float32).astype(float)
    assert min(errors(x, np.float32)) > fft_error(x.size)
    assert max(errors(x, np.float32)) <= fft_error(x.size, float(np.finfo(np.float32).eps))
