"""Any steps, composed by repeated squaring of their laws in cells of the loss.

From above every cell's mass is split onto its two ends so that both laws' masses are kept: merging undoes it. From
below the attacker is shown the cells only, and of composed steps the sum of their indices: a post-processing. Both
cost a variance of the order of the cell's square, a step. Cells are therefore fine for one step and become coarser, by
the same two operations, while squaring widens the law: T steps cost what log T steps would.

Laws are kept tilted by e^{cL}, which keeps relative accuracy in tails. The law of n steps is kept in a window; what
lies outside, or wraps around in an FFT of the window's length, is bounded by Chernoff's inequality from moments of the
discretised law itself; FFT rounding by a forward error bound. All is charged where the sums are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._fourier import fft_error
from deniable.accounting.engines.cells import log_sum
from deniable.accounting.steps.base import LossCells, Step, TooSlowError, divides, hidden_mass, upper_share
from deniable.accounting.steps.discrete import ResponseStep
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.curves import Direction, Side

_BEYOND = 44.0  # −log of the tilted mass that a window leaves out on either side: far below rounding
_WINDOW = 2  # times as many cells of any law, or cells are made coarser,
_ATTEMPTS = 6  # so often
_OF_ONE = 2  # times as many cells of one step
_MOST_PEAKS, _FEWEST_PEAKS = 128, 8  # entries of a law that are convolved one by one
_MOVED, _LONGEST = 0.2, 64.0  # of the composed law's width: what blocks of cells may move it; cells of a block
_LARGEST = 1e300  # minus this stands for the logarithm of 0
_ADDED = 1 << 24  # cells added for them
_EVEN = 8.0  # √length·‖law‖₂ of laws that are spread out, about
_MOST_PARTS = 64  # of the least lattice, in a search for a common one


class _WindowError(TooSlowError):
    """A law is too wide for its cells."""


class Counted(NamedTuple):
    """A step and how often it is made."""

    step: Step
    times: int


@dataclass(frozen=True)
class _Tilt:
    c: float
    width: float  # about the standard deviation of the composed tilted law
    most: int  # the largest count: the law of one step may be that many times narrower, squared
    direction: Direction
    side: Side
    room: int  # cells that one law may have

    @property
    def own(self) -> float:
        """The tilt in the step's own direction."""
        return self.c if self.direction == "add" else 1 - self.c

    @cached_property
    def offsets(self) -> FloatArray:
        """Tilts beside c, up and down, at which moments are kept."""
        # of rare large losses the tail is that of one of them, not of the whole law's width: offsets down to about 1/2
        least = min(-2.0, math.floor(math.log2(self.width)) - 1.0)
        beside = np.exp2(np.arange(least, 5.0 + math.log2(self.most) / 2)) / self.width
        return np.concatenate([beside, -beside])

    @property
    def of_rows(self) -> FloatArray:
        """The tilt of each row of a law: that of P, where it has a row of its own, is c − 1."""
        return np.array([self.c] if self.side == "upper" else [self.c, self.c - 1])


@dataclass(frozen=True, eq=False)
class TiltedLaw:
    """Steps on the lattice v_i = origin + spacing·(start + i), tilted.

    Attributes
    ----------
    origin, start, spacing
        Where the outcomes lie.
    weight
        One row: q_i·e^{c·v_i} over its sum, and p_i = q_i·e^{v_i}. Two rows: P has its own, tilted by c − 1.
    log_size
        Logarithm of the sums, one entry per row.
    moments
        Bounds on the logarithm of Σ q_i·e^{(c + offset)·v_i}, a row for each of the sums, a column per offset.
    error
        Bound on the L1 error of every row.
    """

    origin: float
    start: int
    spacing: float
    weight: FloatArray
    log_size: FloatArray
    moments: FloatArray
    error: float

    @property
    def first(self) -> float:
        """Loss of the first outcome."""
        return self.origin + self.spacing * self.start


class Composed(NamedTuple):
    """The law of all steps, and a bound on the mass of either law that is missing from it wherever it lies.

    ``hidden``: bound on the mass of P where that of Q is below all doubles, and with it the law from above.
    ``prefactor_error``: relative, of the exponential of the law's ``log_size``.
    """

    law: TiltedLaw
    lost: float
    hidden: float
    prefactor_error: float


def composed(
    parts: Sequence[Counted], c: float, width: float, extent: float, direction: Direction, side: Side, points: int
) -> Composed:
    """Compose steps under the tilt ``c``, in cells of about ``extent``/``points`` or on their common lattice.

    ``width`` is about the standard deviation of the tilted law, ``extent`` the length of what is seen of it.
    """
    own = c if direction == "add" else 1 - c
    spacing, exact = _spacing(parts, own, extent, points)
    # where nothing is split one law serves both sides
    shown: Side = "upper" if exact else side
    tilt = _Tilt(c, width, max((part.times for part in parts), default=1), direction, shown, _WINDOW * points)
    for attempt in range(1 if exact else _ATTEMPTS):
        try:
            return _sum(parts, tilt, spacing * 2**attempt, exact)
        except _WindowError:
            continue
    raise TooSlowError("the laws of some of the steps are too wide")


def _sum(parts: Sequence[Counted], tilt: _Tilt, spacing: float, exact: bool) -> Composed:
    total: TiltedLaw | None = None
    lost = hidden = rounded = 0.0
    for part in parts:
        levels = 0 if exact else _levels(part)
        cells = _cells(part.step, tilt, spacing / 2**levels)
        law = _power(_one(cells, tilt, spacing / 2**levels), part.times, tilt, levels)
        total = law if total is None else _convolved(total, law, tilt)
        lost += part.times * sum(cells.lost)
        hidden += part.times * hidden_mass(cells.p, cells.q, spacing / 2**levels) * (1 + cells.relative_error)
        largest = max(abs(cells.first), abs(cells.first + spacing / 2**levels * cells.q.size))
        rounded += part.times * EPS * (16 + 2 * (abs(tilt.c) + 1) * largest)
    if total is None:
        raise TooSlowError("nothing to compose")
    return Composed(total, lost, hidden, rounded)


def counted(loss: PrivacyLoss) -> list[Counted]:
    """Return everything that a loss is made of as steps."""
    parts: list[Counted] = [Counted(step, int(count)) for step, count in loss.gaussian_steps]
    parts += [Counted(ResponseStep(epsilon, 2), int(count)) for epsilon, count in loss.randomized_responses]
    return parts + [Counted(step, count) for step, count in loss.others]


def alone(loss: PrivacyLoss, direction: Direction) -> tuple[float, float]:
    """Return the mass of outcomes that only P, and that only Q can produce, to a few roundings of either.

    For "remove" it is the other way round.
    """
    logs: tuple[list[float], list[float]] = [], []
    for step, count in loss.others:
        for log_none, only in zip(logs, step.only, strict=True):
            log_none.append(count * math.log1p(-only) if only < 1 else -math.inf)
    p, q = (-math.expm1(math.fsum(log_none)) for log_none in logs)
    return (p, q) if direction == "add" else (q, p)


def _spacing(parts: Sequence[Counted], tilt: float, extent: float, points: int) -> tuple[float, bool]:
    """Length of a cell of the composed loss, and whether it is that of a lattice on which all losses lie."""
    unit = _unit([part.step.pitch for part in parts if part.step.pitch > 0])
    if unit > 0 and all(part.step.lattice is not None for part in parts) and extent < 2 * points * unit:
        return unit, True
    # one step's cells, too, must not be too many
    longest = max((high - low) * 2 ** _levels(part) for part in parts for low, high in [part.step.range(tilt)])
    wanted = max(extent / points, longest / (_OF_ONE * points))
    return (unit / math.ceil(unit / wanted), False) if unit > wanted else (wanted, False)


def _levels(part: Counted) -> int:
    """How often cells are made twice as long while the steps are composed: after every second squaring."""
    return (part.times.bit_length() - 1) // 2


def _unit(spacings: Sequence[float]) -> float:
    """The largest spacing of which all are whole multiples; 0 if there is none that is not much smaller."""
    for parts in range(1, _MOST_PARTS + 1) if spacings else ():
        unit = min(spacings) / parts
        if all(divides(unit, spacing) for spacing in spacings):
            return unit
    return 0.0


def _cells(step: Step, tilt: _Tilt, spacing: float) -> LossCells:
    cells = step.cells(spacing, tilt.own)
    return cells.swapped(spacing) if tilt.direction == "remove" else cells


def _one(cells: LossCells, tilt: _Tilt, spacing: float) -> TiltedLaw:
    """One step's law, from above or from below."""
    if tilt.side == "upper":
        share = upper_share(cells.centre, spacing)
        mass = np.zeros((1, cells.q.size + 1))
        mass[0, :-1] = cells.q * (1 - share)
        mass[0, 1:] += cells.q * share
    else:
        mass = np.stack([cells.q, cells.p])
    value: FloatArray = cells.first + spacing * np.arange(mass.shape[1], dtype=np.float64)
    with np.errstate(divide="ignore", under="ignore"):
        exponent = np.log(mass) + np.multiply.outer(tilt.of_rows, value)
    log_size = np.array([log_sum(row) for row in exponent])
    if not np.isfinite(log_size).all():
        raise TooSlowError("the tilted law is out of reach of doubles")
    moments = _moments(exponent, value, tilt, spacing)
    largest = max(abs(float(value[0])), abs(float(value[-1])))
    error = cells.relative_error + 4 * cells.centre_error + EPS * (64 + 4 * (abs(tilt.c) + 1) * largest)
    with np.errstate(under="ignore"):
        weight = np.exp(exponent - log_size[:, None])
    return TiltedLaw(cells.first, 0, spacing, weight, log_size, moments + 64 * EPS, error)


def _moments(exponent: FloatArray, value: FloatArray, tilt: _Tilt, spacing: float) -> FloatArray:
    """Bounds on log Σ e^{exponent + offset·value}, a row for each of the laws, a column per offset.

    Of short blocks of cells the masses are added, and all of a block counts at its worse end.
    """
    length = int(min(max(_MOVED * tilt.width / (tilt.most * spacing), 1.0), _LONGEST))
    starts = np.arange(0, value.size, length)
    top = np.maximum(np.maximum.reduceat(exponent, starts, axis=1), -_LARGEST)
    with np.errstate(under="ignore", divide="ignore"):
        mass = np.exp(exponent - np.repeat(top, length, axis=1)[:, : value.size])
        log_mass = np.log(np.add.reduceat(mass, starts, axis=1)) + top
    ends = value[starts], value[np.minimum(starts + length, value.size) - 1]
    worse = (np.maximum(offset * ends[0], offset * ends[1]) for offset in tilt.offsets)
    return np.array([[log_sum(row + moved) for row in log_mass] for moved in worse]).T


def _power(one: TiltedLaw, count: int, tilt: _Tilt, levels: int) -> TiltedLaw:
    """``count`` equal steps: one squaring for every binary digit but the first, coarser cells after every second."""
    law = one
    for k, digit in enumerate(bin(count)[3:], start=1):
        law = _convolved(law, law, tilt)
        if digit == "1":
            law = _convolved(law, one, tilt)
        if k % 2 == 0 and k // 2 <= levels:
            law, one = _coarser(law, tilt), _coarser(one, tilt)
    return law


def _convolved(a: TiltedLaw, b: TiltedLaw, tilt: _Tilt) -> TiltedLaw:
    """The sum of independent losses, in a window that leaves out next to nothing."""
    moments, log_size = a.moments + b.moments, a.log_size + b.log_size
    origin, start = a.origin + b.origin, a.start + b.start
    whole = a.weight.shape[1] + b.weight.shape[1] - 1
    # P(L ≥ v) ≤ e^{moment − offset·v} under the tilted law: the values of v at which it is e^{−_BEYOND}
    reach = (moments - log_size[:, None] + _BEYOND) / tilt.offsets
    up = tilt.offsets > 0
    ends = np.array([reach[:, ~up].max(axis=1).min(), reach[:, up].min(axis=1).max()])
    places = (ends - origin) / a.spacing - start
    low, high = max(math.floor(places[0]), 0), min(math.ceil(places[1]), whole - 1)
    size = high - low + 1
    if not 0 < size <= tilt.room:
        raise _WindowError(f"a window of {size} cells")
    length = next_fast_len(size, real=True)
    # an FFT's error is that of its largest entries: atoms and narrow bodies are shifted and added instead
    peaks, smooth = _without_peaks(a.weight, length)
    others, rest = (peaks, smooth) if a is b else _without_peaks(b.weight, length)
    first = rfft(_folded(smooth, length), length)
    second = first if a is b else rfft(_folded(rest, length), length)
    np.multiply(first, second, out=first)
    found = irfft(first, length)
    del first, second
    np.maximum(found, 0.0, out=found)
    norm = [float(np.max(np.linalg.norm(x, axis=1))) for x in (smooth, rest, found)]
    cut = low % length
    kept = np.concatenate([found[:, cut : cut + size], found[:, : max(cut + size - length, 0)]], axis=1)
    del found
    for place in peaks:
        _add(kept, b.weight, a.weight[:, place], int(place) - low)
    for place in others:
        _add(kept, smooth, b.weight[:, place], int(place) - low)
    transforms = (fft_error(length) + 4 * EPS) * math.sqrt(length) * sum(norm)
    rounding = transforms + 4 * EPS * (peaks.size + others.size)
    error = a.error + b.error + a.error * b.error + 4 * math.exp(-_BEYOND) + rounding
    return TiltedLaw(origin, start + low, a.spacing, kept, log_size, moments, error)


def _without_peaks(weight: FloatArray, length: int) -> tuple[NDArray[np.intp], FloatArray]:
    """Places of the few entries that hold most of a law's Euclidean norm, if any do, and the law without them."""
    none = np.zeros(0, dtype=np.intp)
    largest = weight.max(axis=0)
    most = min(max(_ADDED // largest.size, _FEWEST_PEAKS), _MOST_PEAKS)
    if not math.sqrt(length) * float(np.linalg.norm(largest)) > _EVEN or largest.size <= most:
        return none, weight
    places = np.argpartition(largest, -most)[-most:]
    places = places[largest[places] > _EVEN / length]
    smooth = weight.copy()
    smooth[:, places] = 0.0
    return places, smooth


def _add(total: FloatArray, weight: FloatArray, factor: FloatArray, shift: int) -> None:
    """Add a law times one factor per row, moved by this many places; what falls outside is left out."""
    start, stop = max(shift, 0), min(shift + weight.shape[1], total.shape[1])
    if start < stop:
        total[:, start:stop] += factor[:, None] * weight[:, start - shift : stop - shift]


def _folded(weight: FloatArray, length: int) -> FloatArray:
    """The same modulo this many places."""
    rows, size = weight.shape
    if size <= length:
        return weight
    padded = np.pad(weight, ((0, 0), (0, -size % length)))
    folded: FloatArray = padded.reshape(rows, -1, length).sum(axis=1)
    return folded


def _coarser(law: TiltedLaw, tilt: _Tilt) -> TiltedLaw:
    """Cells twice as long: every second outcome is split onto its neighbours, or merged into the one below."""
    odd = law.start % 2
    padded = np.pad(law.weight, ((0, 0), (odd, (law.weight.shape[1] + odd) % 2)))
    even, between = padded[:, ::2], padded[:, 1::2]
    h = law.spacing
    steepest = max(abs(tilt.c), float(np.max(np.abs(tilt.of_rows)))) * h
    if not steepest < MOST_EXPONENT:
        raise TooSlowError("the tilt is too steep for cells twice as long")
    if tilt.side == "upper":
        share = 1 / (1 + math.exp(-h))  # kept by the lower end: (e^{2h} − e^h)/(e^{2h} − 1)
        weight = np.pad(even, ((0, 0), (0, 1)))
        weight[:, :-1] += between * (share * math.exp(-tilt.c * h))
        weight[:, 1:] += between * ((1 - share) * math.exp(tilt.c * h))
    else:
        weight = even + between * np.exp(-tilt.of_rows * h)[:, None]
    size = weight.sum(axis=1)
    # no outcome moves by more than h
    moments = law.moments + np.abs(np.add.outer(tilt.of_rows, tilt.offsets)) * h + 64 * EPS
    growth = math.exp(steepest) / float(size.min())
    return TiltedLaw(
        law.origin,
        (law.start - odd) // 2,
        2 * h,
        weight / size[:, None],
        law.log_size + np.log(size),
        moments,
        law.error * growth + 64 * EPS,
    )
