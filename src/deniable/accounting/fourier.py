"""What rounding does in a fast Fourier transform."""

from __future__ import annotations

import math

from deniable._floats import EPS


def fft_error(points: int, eps: float = EPS) -> float:
    """Return 3·eps·log₂ n, a bound on the rounding of a transform of n values, n ≥ 16 a power of two, by pocketfft.

    With x̂ the exact transform: every entry errs by at most this times ‖x‖₁, and all of them by this times ‖x̂‖₂ in L2;
    an inverse likewise with the norms of what goes in, divided by n and by √n.

    *Proof.* u = eps/2 is a rounding. NumPy and SciPy use pocketfft: passes of radix 4, and one of radix 2 if log₂ n is
    odd; a pass multiplies by twiddle factors and adds. A twiddle is within 4.45u: a product of two values of sine and
    cosine, each within 1.1u, with √5·u for the complex product (Brent, Percival & Zimmermann 2007), if it is not
    rounded from more digits. So a product errs by at most 6.7u of itself; radix 4 adds twice, u each. *Entries*: an
    output is the sum over all inputs of x_j times a factor of size 1 that went through every pass: 8.7u for two
    levels, 2.2·eps a level. *L2*: twiddles are diagonal and unitary, 6.7u; the matrix of an addition of two has norm
    √2, that of its absolute values 2, so a level of additions errs by √2·u of the norm: 9.6u for two levels, 2.4·eps
    a level.
    A pass of radix 2 takes 3.9 or 4.1·eps for its one level, which four levels in all leave room for. Products of
    errors are below 1e-12 of the sum for n < 2⁴⁰. Real transforms do the same and leave out what is conjugate. ∎
    """
    return 3 * eps * math.log2(points)
