"""What rounding does in a fast Fourier transform."""

from __future__ import annotations

import math

from deniable._floats import EPS


def fft_error(points: int, eps: float = EPS) -> float:
    """Return a bound on the rounding of pocketfft's real transform of n values, n without prime factors above 5.

    It is 3·eps·log₂ n for powers of two and 4·eps·log₂ n for other n. With x̂ the exact transform: every entry errs by
    at most this times ‖x‖₁, and all of them by this times ‖x̂‖₂ in L2; an inverse likewise with the norms of what goes
    in, divided by n and by √n.

    *Proof.* u = eps/2 is a rounding. NumPy and SciPy use pocketfft: passes of radix 4, one of radix 2 if the power of
    two is odd, then of radix 3 and 5; a pass multiplies by twiddle factors and adds. A twiddle is within 4.45u: a
    product of two values of sine and cosine, each within 1.1u, with √5·u for the complex product (Brent, Percival &
    Zimmermann 2007), if it is not rounded from more digits. So a product errs by at most 6.7u of itself; radix 4 adds
    twice, u each. *Entries*: an output is the sum over all inputs of x_j times a factor of size 1 that went through
    every pass: 8.7u for two levels, 2.2·eps a level. *L2*: twiddles are diagonal and unitary, 6.7u; the matrix of an
    addition of two has norm √2, that of its absolute values 2, so a level of additions errs by √2·u of the norm: 9.6u
    for two levels, 2.4·eps a level.
    A pass of radix 2 takes 8.2u for its one level, 2.2u more than 3·eps; one of radix 4 leaves 2.4u of 12u, and the
    transform of two values has no twiddles.

    *Radix 3* forms t = b + c, a + t, p = a − t/2 and q = (√3/2)·(b − c), then p ± iq, halves being exact. Entries: a
    errs by 2u; b and c by 1u (t, halved, and the sum of p) + 3·0.87u (difference, constant, product) + 1u at most:
    4.6u, so 11.3u with the twiddle. L2: the sums b ± c err by u of the norm; then a + t, p and q by absolute matrices
    whose norm is at most 2u·√3 (rows (1, √2) of a + t and √2·(1, √2/2) of p on the even part (a, t/√2); √2·√2·√3 of q
    on the odd part); the last sums by u: 4u, so 10.7u. Both are below 4·eps·log₂ 3 = 12.6u.
    *Radix 5* forms b ± e and c ± d, then p = a + r₁(b + e) + r₂(c + d), q = s₁(b − e) + s₂(c − d) and the same with
    indices exchanged, r = cos and s = sin of 72° and 144°, and p ± iq. Entries: b errs by 3u(|r| + |s|) (its sum, a
    constant, a product), 2u|r| (two additions of p), u|s| (that of q) and u, with |r| = .81, |s| = .59 at worst: 7.4u,
    so 14.1u with the twiddle. L2: u for the first sums; then on the even part, which they carry to √2 of its norm,
    absolute matrices with rows 2·(1, √2, √2), √2·(2, 1.24√2, 3.24√2) and √2·(2, 3.24√2, 1.24√2), norm 10.8u, and on
    the odd part 2·3u·(.95 + .59) = 9.3u, both of which are to be divided by √5: 4.9u; u for the last sums: 6.9u, so
    13.6u. Both are below 4·eps·log₂ 5 = 18.5u.
    With 4·eps a level, the pass of radix 2 lacks 0.2u, which one of radix 3 (1.3u) or 5 (4.4u) leaves.
    Products of errors are below 1e-12 of the sum for n < 2⁴⁰. Real transforms do the same and leave out what is
    conjugate. ∎
    """
    return (3 if points & (points - 1) == 0 else 4) * eps * math.log2(points)
