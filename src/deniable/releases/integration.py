"""Upper bounds on ∫(aP̂ − bQ̂)₊ and ½∫|aP̂ − bQ̂| for each record, from outputs and who was in which set.

P̂ is the mean over all draws of the noise density around the output where the record was in, Q̂ where it was out.
The integration error is charged, because sums over points err on the unsafe side where signs change between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from deniable._check import FloatArray, Indices
from deniable._floats import CACHE
from deniable.noise import NoiseLaw

Bits = NDArray[np.uint8]

_STEP = 1 / 25  # distance of the lattice points, in scales of the noise
_LARGEST_LATTICE = 40_000  # a scale that needs more points is far too small to certify anything
_FAR = 2.0**30  # outputs farther apart than this many scales cannot be resolved reliably in double precision
_CHARGE = 1e-7  # dropped tails, rounding of positions and of the convolution, OpenDP's grid
_NUMBERS = 2_000_000  # numbers held at a time
_SUMMED = 1024  # most Monte Carlo points at a time; float32 products summed before conversion to double precision
_SINGLE = 2.0**-24
_WORK = 4e11  # most multiplications of Monte Carlo
_POINTS = (4096, 32768)


@dataclass(frozen=True)
class IntegralBound:
    """A bound factor·I + extra, with I = ∫(aP̂ − bQ̂)₊ if ``positive``, else ½∫|aP̂ − bQ̂|; ``flipped``: P̂ ↔ Q̂.

    The second kind takes P̂ and Q̂ in their expected proportions π and 1 − π, whatever share of the draws the record was
    in, and pays √(``log_term``/2·((aπ)²/K + (b(1−π))²/(m−K))) for it, the record being in K of m draws (Hoeffding).
    """

    a: float
    b: float
    positive: bool = False
    flipped: bool = False
    factor: float = 1.0
    extra: float = 0.0
    log_term: float = 0.0

    @property
    def largest(self) -> float:
        """The integral is never above this, as P̂ and Q̂ have mass 1 together."""
        return self.a if self.positive else max(self.a, self.b) / 2

    def integrand(self, inside: FloatArray, outside: FloatArray, balance: FloatArray) -> FloatArray:
        """The integrand where P̂ and Q̂ are ``inside`` and ``outside``; ``balance`` as in :func:`integrals`."""
        if not self.positive:
            inside, outside = inside * balance[:, :1], outside * balance[:, 1:]
        first, second = (outside, inside) if self.flipped else (inside, outside)
        part = self.a * first - self.b * second
        return np.maximum(part, 0.0) if self.positive else np.abs(part) / 2

    def bound(self, integral: FloatArray, inside: FloatArray, draws: int, prior: float) -> FloatArray:
        """The bound for each record from its integral and the number of draws that it was in."""
        first, second = (prior, 1 - prior) if not self.flipped else (1 - prior, prior)
        sizes = (inside, draws - inside) if not self.flipped else (draws - inside, inside)
        with np.errstate(divide="ignore"):
            slack = (self.a * first) ** 2 / sizes[0] + (self.b * second) ** 2 / sizes[1]
        return np.asarray(self.factor * integral + self.extra + np.sqrt(self.log_term / 2 * slack))


def integrals(
    outputs: FloatArray,
    members: Bits,
    records: Indices,
    law: NoiseLaw,
    forms: Sequence[IntegralBound],
    balance: FloatArray,
    *,
    rng: np.random.Generator,
    failure: float | None,
) -> FloatArray:
    """Return upper bounds of shape (records, forms).

    ``outputs`` has shape (m, d), ``members`` bits of shape (n, ⌈m/8⌉), ``balance`` the factors (records, 2) that bring
    P̂ and Q̂ of each record to the masses π and 1 − π. For d = 1 the bounds are sure; for d > 1 each holds with
    probability 1 − ``failure`` for a record that was fixed before ``rng`` was used; without ``failure`` it is a rough
    value from few points, to search with.
    """
    white = law.whiten(outputs)
    white = white - np.median(white, axis=0)
    found = None
    if np.abs(white).max(initial=0.0) < _FAR * law.scale:
        if law.dimension == 1:
            found = _on_a_lattice(white[:, 0], members, records, law, forms, balance)
        else:
            found = _by_monte_carlo(white, members, records, law, forms, balance, rng, failure)
    # the largest possible integrals, to which errors are proportional
    largest = np.array([form.largest for form in forms]) * _stretch(forms, balance)
    if found is None:
        return largest
    return np.where(found <= largest, found, largest)


def _stretch(forms: Sequence[IntegralBound], balance: FloatArray) -> FloatArray:
    """Largest factor on P̂ or Q̂, (records, forms)."""
    return np.where([form.positive for form in forms], 1.0, np.maximum(balance.max(axis=1), 1.0)[:, None])


def _on_a_lattice(
    white: FloatArray,
    members: Bits,
    records: Indices,
    law: NoiseLaw,
    forms: Sequence[IntegralBound],
    balance: FloatArray,
) -> FloatArray | None:
    """Return upper bounds (records, forms).

    Trapezoid rule on the multiples of w = step·scale that are near an output; None if there are too many.
    Each output is split between its two neighbours on the lattice, which moves its density by at most (w²/8)·‖φ''‖
    in L1 (linear interpolation), and what is split is convolved with φ. For g = aP̂ − bQ̂ the rule then errs on ∫|g|
    by at most (w²/8)·‖|g|''‖ ≤ (3w²/8)·‖g''‖: the kink at a zero is paid for on the way of g' to its next zero (Rolle).
    Half of both, and w²/16 for ∫g in ∫g₊ = ½∫|g| + ½∫g, makes 5/16·max(a, b)·‖φ''‖·w².
    """
    step = law.scale * _STEP
    low = np.floor(white / step)
    share = white / step - low  # of the upper neighbour
    near = np.unique(np.concatenate([low, low + 1]))
    reach = int(np.ceil(law.reach / _STEP))
    first = np.append(0, np.flatnonzero(np.diff(near) > 2 * reach) + 1)
    last = np.append(first[1:] - 1, near.size - 1)
    lengths = near[last] - near[first] + 1 + 2 * reach
    if float(lengths.sum()) > _LARGEST_LATTICE:
        return None
    # runs of points stand side by side, each with ``reach`` points to spare at both ends
    shift = np.repeat(np.concatenate([[0.0], np.cumsum(lengths)[:-1]]) + reach - near[first], last - first + 1)
    place = (near + shift).astype(np.intp)
    column = place[np.searchsorted(near, low)]
    size, draws = int(lengths.sum()), len(white)
    rows = np.arange(draws)
    split = csr_array(
        (
            np.concatenate([(1 - share) / draws, share / draws]),
            (np.concatenate([rows, rows]), np.concatenate([column, column + 1])),
        ),
        shape=(draws, size),
    ).T.tocsr()
    offsets = np.arange(-reach, reach + 1) * _STEP
    kernel = np.exp(law.radial(np.abs(offsets)) + law.peak) * _STEP
    length = next_fast_len(size + 2 * reach, real=True)
    wave = rfft(kernel, length)

    def smooth(mass: FloatArray) -> FloatArray:
        return np.asarray(irfft(rfft(mass, length, axis=-1) * wave, length, axis=-1)[..., reach : reach + size])

    everything = smooth(np.asarray(split.sum(axis=1), dtype=np.float64).ravel())
    total = np.empty((len(records), len(forms)))
    at_once = max(1, CACHE // max(length, draws))
    for start in range(0, len(records), at_once):
        rows_now = slice(start, start + at_once)
        held = np.unpackbits(members[records[rows_now]], axis=1, count=draws).astype(np.float64)
        inside = smooth(np.ascontiguousarray((split @ held.T).T))
        outside = everything - inside
        for j, form in enumerate(forms):
            total[rows_now, j] = form.integrand(inside, outside, balance[rows_now]).sum(axis=1)
    largest = np.array([max(form.a, form.b) for form in forms]) * _stretch(forms, balance)
    return np.asarray(total + largest * (5 / 16 * law.curvature * _STEP**2 + _CHARGE))


def _by_monte_carlo(
    white: FloatArray,
    members: Bits,
    records: Indices,
    law: NoiseLaw,
    forms: Sequence[IntegralBound],
    balance: FloatArray,
    rng: np.random.Generator,
    failure: float | None,
) -> FloatArray:
    """Draws from P̂ + Q̂, the mean of all copies of the noise; relative to it the integrand is at most ``largest``.

    Empirical Bernstein bound (Maurer & Pontil 2009, Theorem 4).
    """
    draws = len(white)
    n = _POINTS[0] if failure is None else int(np.clip(_WORK / (draws * max(len(records), 1)), *_POINTS))
    unit = type(law)(law.scale, np.ones(law.dimension))
    points = white[rng.integers(draws, size=n)] + unit.sample(n, rng)
    total = np.zeros((len(records), len(forms)))
    squares = np.zeros_like(total)
    block = int(np.clip(_NUMBERS // draws, 1, _SUMMED))
    at_once = max(1, _NUMBERS // max(draws, block))
    for begin in range(0, n, block):
        distance = cdist(white, points[begin : begin + block])
        distance /= law.scale
        density = law.radial(distance)
        density -= density.max(axis=0)
        np.exp(density, out=density)
        density /= density.sum(axis=0)
        kernel = density.astype(np.float32)
        everything = kernel.sum(axis=0, dtype=np.float64)
        for start in range(0, len(records), at_once):
            rows = slice(start, start + at_once)
            bits = np.unpackbits(members[records[rows]], axis=1, count=draws).astype(np.float32)
            inside = np.zeros((len(bits), kernel.shape[1]))
            for part in range(0, draws, _SUMMED):
                inside += bits[:, part : part + _SUMMED] @ kernel[part : part + _SUMMED]
            outside = everything - inside
            for j, form in enumerate(forms):
                value = form.integrand(inside, outside, balance[rows])
                total[rows, j] += value.sum(axis=1)
                squares[rows, j] += (value**2).sum(axis=1)
    stretch = _stretch(forms, balance)
    both = np.array([form.a + form.b for form in forms]) * stretch
    largest = np.array([form.largest for form in forms]) * stretch
    mean = total / n
    if failure is None:
        return np.asarray(mean)
    variance = np.maximum(squares / n - mean**2, 0.0) * n / (n - 1)
    log_term = float(np.log(2 / failure))
    spread = np.sqrt(2 * variance * log_term / n) + 7 * largest * log_term / (3 * (n - 1))
    return np.asarray(mean + spread + both * ((_SUMMED + 8) * _SINGLE * 1.1 + _CHARGE))
