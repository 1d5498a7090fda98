"""Gaussian noise rounded to whole numbers: drawn without error in its law, from OS entropy, vectorised.

Why rounding. Let g be an integer vector computed from the records and N a real Gaussian vector. For an integer g,
g + round(N) = round(g + N): the release is post-processing of the Gaussian mechanism g + N, so it has that mechanism's
exact guarantee (Gaussian DP with μ² = Σ_j (Δ_j / scale_j)²), no argument about discrete Gaussians is needed, and what
comes out is a whole number, whose low bits tell nothing about how g was computed.

Why the law is exact. A draw is a sign, a cell j of width w on the half line of the standard normal density, a position
(j + u)·w within the cell and a comparison of a uniform v with the ratio of the density to a step function above it
(rejection). The heights of the steps are whole multiples of 2⁻⁶³, so that cells are chosen with their exact
probabilities by comparing whole numbers (the alias method); what the steps leave of 1 rejects. The real numbers u and v
are uniform with infinitely many bits, of which 64 are drawn at first: in floating point each decision (v below the
ratio? which whole number?) is made only where it holds for all continuations of those bits and for the largest rounding
error, and every other draw gets more bits and exact rational arithmetic until it is decided. Beyond the last cell the
steps are one unit wide and halve, without end: nothing is cut off.

No special function is trusted: within a cell the ratio is a Taylor polynomial with a proven remainder, and the
exponentials of the table and of the exact path are those of ``decimal``, which are correctly rounded. (Vertical strips
with rejection: Devroye, Non-Uniform Random Variate Generation, VIII.2; lazily drawn bits: Karney, arXiv:1303.6257.)

What is not hidden: time. How often a draw is rejected does not depend on what is accepted, but the exact path is slower
and is entered for values near the border between two whole numbers (a share of about scale·2⁻⁴⁷ of the draws).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import testing
from deniable._check import IntArray, numbers

WordArray = NDArray[np.uint64]

LARGEST_SCALE = 2.0**40  # |noise| would need 2²² standard deviations to leave int64
_CHUNK = 1 << 15  # draws at a time: the temporaries stay in the processor's cache
_WORD = 2.0**-64
_RATIO_ERROR = 2.0**-44  # the ratio's rounding and remainder are below 2⁻⁴⁸, see _ratio
_GUARD_DIGITS = 10  # decimal digits given away for the roundings of one exact exponential


@dataclass(frozen=True, eq=False)
class _Table:
    """Cells under a step function above the density, in the alias method's columns; every weight is a whole number.

    ``weights`` are in units of 2⁻⁶³: cells 0 … n−1 of width 2^−bits, then the tail, then rejection; their sum is 2⁶³.
    ``unit`` is c: the target is c·e^(−z²/2), which no step is below.
    """

    bits: int
    unit: int
    weights: tuple[int, ...]
    threshold: WordArray
    alias: NDArray[np.int64]
    sure: WordArray
    largest_ratio: NDArray[np.float64]

    @property
    def cells(self) -> int:
        return len(self.weights) - 2


def _exponential(y: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of e^(−y), y ≥ 0, relative width about 10^−digits."""
    context = Context(prec=digits + _GUARD_DIGITS + len(str(floor(y))), rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN)
    quotient = context.divide(Decimal(y.numerator), Decimal(y.denominator))  # relative error ≤ 10^(1−prec)
    value = Fraction(context.exp(context.minus(quotient)))  # correctly rounded: another 10^(1−prec)
    slack = Fraction(1, 10**digits)  # ≥ the two errors: y·10^(1−prec) + 10^(1−prec) < 10^(3−guard−digits)
    return value * (1 - slack), value * (1 + slack)


def _up(y: Fraction, factor: int) -> int:
    """The whole number above factor·e^(−y)."""
    return ceil(factor * _exponential(y, 40)[1])


@lru_cache(maxsize=4)
def _table(bits: int = 6, columns: int = 512) -> _Table:
    """Build the table of cells of width 2^−bits; two of the ``columns`` are the tail and rejection."""
    n = columns - 2
    width = Fraction(1, 2**bits)
    half_squares = [(j * width) ** 2 / 2 for j in range(n + 1)]
    total = sum(float(_exponential(y, 20)[1]) for y in half_squares[:n])
    total += 2.0 ** (bits + 1) * float(_exponential(half_squares[n], 20)[1])
    unit = floor(2**63 / (Fraction(total) * (1 + Fraction(1, 10**9)) + Fraction(columns, 2**40)))
    weights = [_up(y, unit) for y in half_squares[:n]]
    # the tail: steps of height 2^−(m+1) and length 1 from n·w on; at m = 0 this is what makes them high enough, and
    # from one step to the next the density falls by more than e^(−(n·w + 1/2)) < 1/2
    weights.append(2 ** (bits + 1) * _up(half_squares[n], unit))
    weights.append(2**63 - sum(weights))
    threshold, alias = _alias(weights)
    sure = np.zeros(columns, dtype=np.uint64)
    largest = np.zeros(columns)
    for j in range(n):
        smallest = unit * _exponential(half_squares[j + 1], 40)[0] / weights[j]
        sure[j] = floor(smallest * 2**64)
        largest[j] = float(unit * _exponential(half_squares[j], 40)[1] / weights[j])
    return _Table(bits, unit, tuple(weights), threshold, alias, sure, largest)


def _alias(weights: list[int]) -> tuple[WordArray, NDArray[np.int64]]:
    """Vose's alias method in whole numbers: column i holds ``threshold[i]`` units of i and the rest of ``alias[i]``."""
    capacity, left = sum(weights) // len(weights), list(weights)  # a power of two by another
    threshold, alias = [capacity] * len(left), list(range(len(left)))
    small = [i for i, weight in enumerate(left) if weight < capacity]
    large = [i for i, weight in enumerate(left) if weight >= capacity]
    while small:
        i, donor = small.pop(), large[-1]
        threshold[i], alias[i] = left[i], donor
        left[donor] -= capacity - left[i]
        if left[donor] < capacity:
            small.append(large.pop())
    return np.array(threshold, dtype=np.uint64), np.array(alias, dtype=np.int64)


def _ratio(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """e^(−x) for 0 ≤ x ≤ 1/8, with an error below 2⁻⁴⁸: eleven terms of the series (the next is below 2⁻⁵⁷), by Horner.

    Every factor of the nested form lies in [0.87, 1], each of its 30 operations adds at most 2⁻⁵³.
    """
    value = np.ones_like(x)
    for k in range(10, 0, -1):
        value = 1.0 - x * value / k
    return value


class _LazyUniform:
    """A uniform real number of which ``bits`` bits are known; more are drawn when a decision needs them."""

    def __init__(self, word: int, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.value, self.bits = word, 64

    def refine(self) -> None:
        """Draw 64 further bits."""
        self.value = (self.value << 64) | int.from_bytes(self._read(8), "little")
        self.bits += 64

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The interval of all continuations."""
        return Fraction(self.value, 1 << self.bits), Fraction(self.value + 1, 1 << self.bits)


def _settle(
    table: _Table, cell: int, u_word: int, v_word: int, scale: float, read: Callable[[int], bytes]
) -> int | None:
    """Decide one proposal in exact arithmetic: the magnitude of the rounded noise, or None for a rejection."""
    u, v = _LazyUniform(u_word, read), _LazyUniform(v_word, read)
    if cell == table.cells + 1:
        return None
    width = Fraction(1, 2**table.bits)
    start, height = cell * width, Fraction(table.weights[cell])
    if cell == table.cells:
        steps = _failures(read)
        start, width = start + steps, Fraction(1)
        height *= Fraction(1, 2 ** (steps + 1 + table.bits))
    while True:
        low, high = (start + part * width for part in u.bounds)
        digits = 20 + u.bits // 3
        least = table.unit * _exponential(high**2 / 2, digits)[0]
        most = table.unit * _exponential(low**2 / 2, digits)[1]
        if v.bounds[1] * height <= least:
            break
        if v.bounds[0] * height >= most:
            return None
        u.refine()
        v.refine()
    factor = Fraction(scale)
    while True:
        low, high = (factor * (start + part * width) + Fraction(1, 2) for part in u.bounds)
        if floor(low) == ceil(high) - 1:  # the upper end itself has probability 0
            return floor(low)
        u.refine()


def _failures(read: Callable[[int], bytes]) -> int:
    """How many fair coins fall on 0 before the first 1."""
    count = 0
    while True:
        word = int.from_bytes(read(8), "little")
        if word:
            return count + (word & -word).bit_length() - 1
        count += 64


def _propose(
    table: _Table, scale: NDArray[np.float64], read: Callable[[int], bytes], extra: float = 0.0
) -> tuple[IntArray, NDArray[np.bool_]]:
    """One proposal for each element of ``scale``: signed whole numbers, and which of them are accepted.

    ``extra`` widens the margins below which floating point may not decide, so that tests reach the exact path.
    """
    count = scale.size
    columns = len(table.weights)
    split = 64 - columns.bit_length()  # one bit of the word is the sign, log2(columns) bits the column
    word, u_word, v_word = np.frombuffer(read(24 * count), dtype="<u8").astype(np.uint64, copy=False).reshape(3, count)
    column = (word >> np.uint64(split)).astype(np.int64) & (columns - 1)
    below = (word & np.uint64((1 << split) - 1)) < table.threshold[column]
    cell = np.where(below, column, table.alias[column])
    u = u_word.astype(np.float64) * _WORD

    accepted = v_word < table.sure[cell]
    unsure = ~accepted
    inside = np.flatnonzero(unsure & (cell < table.cells))
    exact = unsure & (cell == table.cells)
    # ratio of the density to the step: largest_ratio · e^(−((j+u)² − j²)w²/2)
    part = u[inside]
    x = (2.0 * cell[inside] + part) * part * 2.0 ** (-2 * table.bits - 1)
    distance = table.largest_ratio[cell[inside]] * _ratio(x) - v_word[inside].astype(np.float64) * _WORD
    margin = _RATIO_ERROR + extra
    accepted[inside] = distance > margin
    exact[inside] = np.abs(distance) <= margin

    # (j + u)·w·scale + 1/2 in floating point: u is off by 2⁻⁵⁴ + 2⁻⁶⁴, j + u by another 2⁻⁴⁵ (it is below 2⁹), the
    # product by 2⁹·2⁻⁵³ of scale·w; together below scale·w·2⁻⁴³, and the sum with 1/2 adds less than that and 2⁻⁵⁴
    step = scale * 2.0**-table.bits
    shifted = step * (cell + u) + 0.5
    whole = np.floor(shifted)
    fraction = shifted - whole
    margin_of_rounding = step * 2.0**-42 + (2.0**-50 + extra)
    border = (fraction <= margin_of_rounding) | (fraction >= 1.0 - margin_of_rounding)
    exact |= accepted & border
    magnitude = whole.astype(np.int64)
    for i in np.flatnonzero(exact):
        settled = _settle(table, int(cell[i]), int(u_word[i]), int(v_word[i]), float(scale[i]), read)
        accepted[i] = settled is not None
        magnitude[i] = 0 if settled is None else settled
    negative = (word >> np.uint64(63)).astype(bool)
    return np.where(negative, -magnitude, magnitude), accepted


def _fill(
    table: _Table, scale: NDArray[np.float64], count: int, read: Callable[[int], bytes], extra: float = 0.0
) -> IntArray:
    """Draw ``count`` numbers; ``scale`` has that many elements, or one."""
    drawn = np.empty(count, dtype=np.int64)
    for begin in range(0, count, _CHUNK):
        waiting = np.arange(begin, min(begin + _CHUNK, count))
        while waiting.size:
            wanted = scale[waiting] if scale.size > 1 else np.broadcast_to(scale, waiting.size)
            values, accepted = _propose(table, wanted, read, extra)
            drawn[waiting[accepted]] = values[accepted]
            waiting = waiting[~accepted]
    return drawn


def rounded_gaussian(scale: ArrayLike, size: int | tuple[int, ...] | None = None) -> IntArray:
    """Draw independent Gaussians with standard deviation ``scale``, rounded to the nearest whole numbers.

    Guarantee: the law is exactly that of round(scale·Z), Z standard normal, for the real number that the float
    ``scale`` is, given that the operating system's random bits are uniform. Hence, for a query g whose values are whole
    numbers and in which one record changes coordinate j by at most Δ_j, releasing ``g + rounded_gaussian(scale)`` is
    post-processing of the Gaussian mechanism: Gaussian DP with μ = √(Σ_j (Δ_j / scale_j)²), exactly, for any
    dimension and adaptively chosen queries. g itself must be computed without rounding (int64, or floating-point
    sums whose partial sums all stay below 2⁵³).

    Parameters
    ----------
    scale
        Standard deviation in units of the lattice (the step between two whole numbers), above 0 and at most 2⁴⁰; a
        number, or an array with one value per coordinate. A draw costs about 0.1 µs, and more above 2³⁶, where 0.05 %
        and more of them need exact arithmetic to be rounded.
    size
        Shape of the result; by default the shape of ``scale``, with which it must broadcast.

    Returns
    -------
    An int64 array. |value| exceeds 2⁶² only if a Gaussian exceeds 2²² standard deviations.

    Raises
    ------
    InputError
        For a scale that is NaN, not above 0 or above 2⁴⁰.

    Notes
    -----
    Every bit comes from ``os.urandom``; there is no state, so threads and forked processes never share noise. Inside
    :func:`deniable.testing.insecure_noise` bits come from the generator of the test.

    Examples
    --------
    >>> from deniable.noise.rounding import rounded_gaussian
    >>> rounded_gaussian(1000.0, 5).shape  # whole numbers, drawn with the operating system's entropy
    (5,)
    """
    scales = numbers(
        "scale", scale, above=0.0, at_most=LARGEST_SCALE, hint="choose a coarser lattice if the noise is larger"
    )
    spread = np.broadcast_to(scales, scales.shape if size is None else size)
    flat = scales.reshape(1) if scales.size == 1 else spread.ravel()
    rng = testing.generator()
    return _fill(_table(), flat, spread.size, os.urandom if rng is None else rng.bytes).reshape(spread.shape)
