"""One epoch of random allocation: a record enters exactly one of t batches, chosen uniformly.

Out of the data an epoch releases x ~ N(0, σ²I_t), in it x ~ (1/t)·Σ_i N(e_i, σ²I_t). The likelihood ratio is
S = (1/t)·Σ Y_i with independent Y_i = e^{(2x_i − 1)/(2σ²)}, log-normal with mean 1 under "out".

The pair dominates every adaptive use, adding and removing alike: given the other records and all that was released, a
batch releases N(g, σ²) out of the data and, in the batch, N(g + r·u, σ²) with a unit vector u and r ≤ 1 that earlier
releases may decide (clipped contributions, public divisor). From x_i this is made by r·u·x_i + N(0, σ²(1 − r²)) along u
and fresh noise elsewhere, by the same rule whether or not the record was there, so that the whole transcript
post-processes x (Chua et al. 2024, arXiv 2412.16802; Feldman & Shenfeld 2025, arXiv 2502.08202). It is attained
by contributions that do not change. The other records' batches do not depend on the record, and the divisor must be
public: a batch mean over its realised size is another mechanism.

Here the law of S is bracketed in convex order (:mod:`deniable.accounting.steps.convex_order`): Y is cut into cells
of u = x/σ, then sums of m and of t terms live on uniform lattices, composed by FFT. Outcomes are parted by the size of
their largest term, a class each, so that rare large sums get a wide lattice and the bulk a fine one: classes of terms
are independent, and given all classes the order of the terms carries over to the sum.

Errors are charged as mass left out, under "out" and under "in" (weighted by S), and as a shift of log S: terms beyond
the range (Gaussian tails), what wraps around a lattice (Chernoff's bound at a few points), FFT rounding (L2 forward
error, Cauchy–Schwarz to L1), rounding of masses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import rfft
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable.accounting.steps.binomial import LONG_EPS
from deniable.accounting.steps.convex_order import Atoms, above, below, first_group, merged
from deniable.accounting.steps.ratios import ComplexArray
from deniable.curves import Side

SHARPEST = 0.15  # noise multipliers below have terms beyond e^400
_LEFT, _RIGHT = 11.0, 7.5  # standard deviations kept: below under "out", above under "in"
_CELLS = 1 << 16  # of u
_APART = 8.0  # between the largest terms of neighbouring classes
_STAGES = 48  # terms from which sums are made in two stages
_OUTSIDE = -36.0  # log of the mass that may wrap around a lattice
_MASS = 12 * EPS  # relative rounding of masses of one term, on average over its law
_NOISE = 8 * EPS  # of the largest mass: what is smaller is rounding, and left out
_LEAST = -110.0  # log of the size of frequencies that are left out
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


class SumLaw(NamedTuple):
    """Law of a sum of terms under "out": one measure per class, and what is wrong with it.

    ``lost``, ``moved``: L1 error in mass and in mass times sum. ``mean``: upper bound on the mean of one sum.
    """

    classes: list[Atoms]
    lost: float
    moved: float
    mean: float

    def up_to(self, last: int) -> Atoms:
        """All classes up to one."""
        return Atoms.joined(self.classes[: last + 1])


@dataclass(frozen=True)
class Allocation:
    """One epoch with noise ``sigma`` and ``batches`` batches."""

    sigma: float
    batches: int

    @cached_property
    def above(self) -> SumLaw:
        """Law of Σ Y that is larger in convex order."""
        return self._sum("upper")

    @cached_property
    def below(self) -> SumLaw:
        """Law of Σ Y that is smaller in convex order."""
        return self._sum("lower")

    @property
    def shift(self) -> float:
        """Bound on the error of log S: points of three lattices, each wrong by a relative 8ε."""
        return 32 * EPS

    def _sum(self, side: Side) -> SumLaw:
        if self.batches < _STAGES:
            limits = self._limits(self.batches)
            points = _points(len(limits))
            one = self._terms(side, limits)
            return one if self.batches == 1 else _power([(one, self.batches)], side, points)
        size = _block(self.batches)
        limits = self._limits(size)
        points = _points(len(limits))
        one = self._terms(side, limits)
        blocks, rest = divmod(self.batches, size)
        block = _power([(one, size)], side, points)
        parts = [(block, blocks)] + ([(one, rest)] if rest else [])
        least = _first_class(self._scale(np.array(limits)), limits, self.batches)
        return _power([(_coarser(part, least), count) for part, count in parts], side, points)

    def _scale(self, limit: FloatArray) -> FloatArray:
        """Root mean square of Y·1{Y ≤ limit}."""
        u = self.sigma * np.log(limit) + 1 / (2 * self.sigma)
        found: FloatArray = np.exp(1 / (2 * self.sigma**2)) * np.sqrt(ndtr(u - 2 / self.sigma))
        return found

    def _limits(self, count: int) -> list[float]:
        """Largest terms of the classes: the first is about the spread of a sum of ``count`` terms, or a small term."""
        limits = [math.exp((2 * self._top / self.sigma - 1 / self.sigma**2) / 2)]
        median = math.exp(-1 / (2 * self.sigma**2))
        while True:
            limit = limits[0] / _APART
            if limit < 4 * median or limit < 2 * math.sqrt(count) * float(self._scale(np.array([limit]))[0]):
                return limits
            limits.insert(0, limit)

    @property
    def _top(self) -> float:
        return 1 / self.sigma + _RIGHT

    def _terms(self, side: Side, limits: list[float]) -> SumLaw:
        """The law of Y on its own points: cells of u, split onto their ends or merged."""
        ends = [-_LEFT] + [self.sigma * math.log(limit) + 1 / (2 * self.sigma) for limit in limits]
        ends[-1] = self._top
        classes, error, moment = [], 0.0, 0.0
        for low, high in pairwise(ends):
            count = max(int(_CELLS * (high - low) / (ends[-1] - ends[0])), 1 << 12)
            edges = np.linspace(low, high, count + 1)
            # three Gauss–Legendre atoms stand for a cell: mass, mean and gap are those of the cell but for 1e-16
            u = np.add.outer((edges[1:] + edges[:-1]) / 2, (high - low) / count / 2 * _NODES).ravel()
            weight = (high - low) / count / 2 / math.sqrt(2 * math.pi) * np.tile(_WEIGHTS, count)
            atoms, points = Atoms(self._term(u), np.exp(-(u**2) / 2) * weight), self._term(edges)
            if side == "upper":
                spread = above(atoms, points)
            else:  # the first two cells are merged
                mean = float(np.sum((atoms.point * atoms.mass)[:6]) / np.sum(atoms.mass[:6]))
                points = np.concatenate([[mean], points[2:]])
                spread = below(merged(atoms, 6, mean), points)
            classes.append(Atoms(points, spread.mass).positive())
            error, moment = error + spread.error, moment + spread.moment_error
        beyond = float(ndtr(-_LEFT) + ndtr(-self._top)) * (1 + 1e-9)
        hidden = float(ndtr(-_RIGHT) + ndtr(-_LEFT - 1 / self.sigma)) * (1 + 1e-9)
        return SumLaw(classes, error + beyond + _MASS, moment + hidden + _MASS, 1.0)

    def _term(self, u: FloatArray) -> FloatArray:
        found: FloatArray = np.exp((u - 1 / (2 * self.sigma)) / self.sigma)
        return found


def _points(classes: int) -> int:
    """Points of a lattice: as many as a second allows."""
    return 1 << (17 if classes <= 4 else 16 if classes <= 12 else 15)


def _block(batches: int) -> int:
    """Size of the blocks in which terms are summed first: about the square root, few terms left over."""
    root = math.isqrt(batches)
    return min(range(max(root // 2, 2), 2 * root + 1), key=lambda m: m + batches // m + batches % m)


def _first_class(scales: FloatArray, limits: list[float], count: int) -> int:
    """Last class whose terms are small beside the spread of a sum of ``count`` terms: lower ones are joined with it."""
    small = np.flatnonzero(np.array(limits[:-1]) < math.sqrt(count) * scales[:-1] * 2 * _APART)
    return int(small[-1]) if small.size else 0


def _coarser(sums: SumLaw, first: int) -> SumLaw:
    """Join the classes up to one."""
    return sums._replace(classes=[sums.up_to(first), *sums.classes[first + 1 :]])


def _power(parts: list[tuple[SumLaw, int]], side: Side, points: int) -> SumLaw:
    """Law of a sum of independent sums: ``count`` of each part."""
    mean = sum(part.mean * count for part, count in parts)
    lost = sum(part.lost * count for part, count in parts)
    moved = sum(count * (part.moved + part.lost * mean) for part, count in parts)
    classes = []
    for j in range(len(parts[0][0].classes)):
        found = _class(parts, j, side, points)
        classes.append(found.atoms)
        lost, moved = lost + found.lost, moved + found.moved
    return SumLaw(classes, lost, moved, mean * (1 + 8 * EPS))


class _Found(NamedTuple):
    atoms: Atoms
    lost: float
    moved: float


class _Laid(NamedTuple):
    """Terms on a lattice: masses of the classes below j and of class j, and how many terms there are."""

    first: float
    spacing: float
    fewer: FloatArray
    own: FloatArray
    terms: int

    def log_mgf(self, tilt: float) -> tuple[float, float]:
        """K and K′ of the sum of all terms at a tilt."""
        mass, point = self.fewer + self.own, self.first + self.spacing * np.arange(self.own.size)
        with np.errstate(divide="ignore"):
            exponent = np.log(mass) + tilt * point
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        total = float(weight.sum())
        return self.terms * (top + math.log(total)), self.terms * float(weight @ point) / total


def _class(parts: list[tuple[SumLaw, int]], j: int, side: Side, points: int) -> _Found:
    """Sums whose largest term is of class j: the transform is Π(F + f)^m − ΠF^m, f of class j and F of those below."""
    if not any(part.classes[j].point.size for part, _ in parts):
        return _Found(Atoms(np.zeros(0), np.zeros(0)), 0.0, 0.0)
    points >>= 0 if j < 2 else 1 if j < 4 else 2  # the law of large terms is smooth on their scale
    low, high, tilts = _window([(part.up_to(j), count) for part, count in parts])
    # splitting adds bounded noise to every term: 6·√terms spacings hold all but e^{−72} of it (Hoeffding)
    margin = 6 * math.sqrt(sum(count for _, count in parts)) * (high - low) / points
    low, high = max(low - margin, sum(count * float(part.up_to(j).point[0]) for part, count in parts)), high + margin
    spacing = (high - low) / (points - 8)
    lost = moved = 0.0
    laid = []
    for part, count in parts:
        found, error, moment_error = _on_lattice(part, j, spacing, side, count)
        laid.append(found)
        lost, moved = lost + count * error, moved + count * moment_error
    transform, error = _transform(laid, j, points)
    first = sum(part.terms * part.first for part in laid)
    start = math.floor((low - first) / spacing)
    mass = np.maximum(np.roll(np.fft.irfft(transform, points), -(start % points)), 0.0)
    point = first + spacing * np.arange(start, start + points, dtype=np.float64)
    if j > 0:  # no sum with a term of class j is smaller than that term: what stands there is rounding
        least = min(float(part.classes[j].point[0]) for part, _ in parts if part.classes[j].point.size)
        mass[point < least - 3 * spacing] = 0.0
    noise = mass < _NOISE * mass.max()
    lost += float(mass[noise].sum())
    moved += float(mass[noise] @ np.abs(point[noise]))
    mass[noise] = 0.0
    outside, beyond = _wrapped(laid, float(point[0]), float(point[-1]), tilts)
    rounded = _MASS * sum(part.terms for part in laid)
    lost += error + 2 * outside + rounded * float(mass.sum())
    moved += (error + outside) * float(point[-1]) + beyond + rounded * float(mass @ np.abs(point))
    keep = (point > 0) & (mass > 0)
    return _Found(Atoms(point[keep], mass[keep]), lost, moved)


def _transform(laid: list[_Laid], j: int, points: int) -> tuple[ComplexArray, float]:
    """The transform on ``points`` frequencies, and a bound on the L1 error of the law from rounding.

    A relative L2 error κ of an FFT moves a transform by at most κ·√N·‖masses‖₂ in L2; one factor among m weighs at most
    m, or m times the mass of class j where only the difference is kept; L1 ≤ √N·L2 and Parseval do the rest.
    """
    size = math.sqrt(points)
    ours = min(sum(part.terms * float(part.own.sum()) for part in laid), 1.0)
    pairs = [
        tuple(rfft(_folded(mass, points).astype(np.longdouble)) for mass in (part.fewer, part.own)) for part in laid
    ]
    # most frequencies are 0 after the power: they are left out, and charged as a whole
    log_size = np.zeros((2, points // 2 + 1))
    with np.errstate(divide="ignore"):
        for part, (fewer, own) in zip(laid, pairs, strict=True):
            log_size += part.terms * np.log(np.abs([fewer + own, fewer]).astype(np.float64))
    kept = np.flatnonzero(log_size.max(axis=0) > _LEAST)
    log_whole, log_base, growth = (np.zeros(kept.size, dtype=np.clongdouble) for _ in range(3))
    turned, error = np.zeros(kept.size), 4 * size * math.exp(_LEAST)
    for part, (fewer, own) in zip(laid, pairs, strict=True):
        weight = float(np.linalg.norm(part.own)) + ours * float(np.linalg.norm(part.fewer))
        error += part.terms * _fft_error(points, LONG_EPS) * size * weight
        small, new = fewer[kept].astype(np.clongdouble), own[kept].astype(np.clongdouble)
        log_one = _log(small + new)
        log_whole += part.terms * log_one
        turned += part.terms * np.abs(log_one).astype(np.float64)
        if j > 0:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                log_base += part.terms * _log(small)
                growth += part.terms * _log1p(new / small)
    whole = np.exp(log_whole)
    if j == 0:
        found, rounded = whole, np.abs(whole)
    else:
        base = np.exp(log_base)
        near = np.abs(growth) < 1
        with np.errstate(invalid="ignore"):
            found = np.where(near, base * _expm1(np.where(near, growth, 0.0)), whole - base)
        rounded = np.where(near, np.abs(found), np.abs(whole) + np.abs(base))
    evaluated = rounded.astype(np.float64) * (4 * LONG_EPS * (turned + 1) + EPS + _fft_error(points, EPS))
    error += math.sqrt(2) * float(np.linalg.norm(evaluated))
    transform = np.zeros(points // 2 + 1, dtype=np.complex128)
    transform[kept] = found
    return transform, error


def _fft_error(points: int, eps: float) -> float:
    """Relative L2 error of one transform."""
    return 3 * eps * math.log2(points)


def _log(z: NDArray[np.clongdouble]) -> NDArray[np.clongdouble]:
    found: NDArray[np.clongdouble] = np.log(np.where(z == 0, 1e-300, z))
    return found


def _log1p(z: NDArray[np.clongdouble]) -> NDArray[np.clongdouble]:
    """log(1 + z) to relative precision: NumPy's own loses the real part of small arguments."""
    real = np.log1p(z.real * (2 + z.real) + z.imag**2) / 2
    found: NDArray[np.clongdouble] = real + 1j * np.arctan2(z.imag, 1 + z.real)
    return found


def _expm1(z: NDArray[np.clongdouble]) -> NDArray[np.clongdouble]:
    """e^z − 1 to relative precision: NumPy's own loses the real part of small arguments."""
    real = np.expm1(z.real) * np.cos(z.imag) - 2 * np.sin(z.imag / 2) ** 2
    found: NDArray[np.clongdouble] = real + 1j * np.exp(z.real) * np.sin(z.imag)
    return found


def _folded(mass: FloatArray, points: int) -> FloatArray:
    if mass.size <= points:
        return mass if mass.size == points else np.pad(mass, (0, points - mass.size))
    found: FloatArray = np.pad(mass, (0, -mass.size % points)).reshape(-1, points).sum(axis=0)
    return found


def _on_lattice(sums: SumLaw, j: int, spacing: float, side: Side, count: int) -> tuple[_Laid, float, float]:
    """Bring the classes up to j onto one lattice: those below j together, and class j."""
    fewer = sums.up_to(j - 1) if j > 0 else Atoms(np.zeros(0), np.zeros(0))
    own = sums.classes[j]
    lowest = fewer if fewer.point.size else own
    found = _laid(fewer, own, *((0, float(lowest.point[0])) if side == "upper" else first_group(lowest, spacing)),
        spacing, side, count)  # fmt: skip
    if side == "upper" or found[1] < 1e-3 * float(lowest.mass.sum()) or not fewer.point.size:
        return found
    # too few points among the lower classes for a polygon below them: they are merged into their mean
    mean = float(lowest.point @ lowest.mass / lowest.mass.sum())
    return _laid(fewer, own, lowest.point.size, mean, spacing, side, count)


def _laid(
    fewer: Atoms, own: Atoms, merge: int, first: float, spacing: float, side: Side, count: int
) -> tuple[_Laid, float, float]:
    """Both measures on first + spacing·(0, 1, …), after the first atoms are merged there."""
    if merge:
        fewer, own = (merged(fewer, merge, first), own) if fewer.point.size else (fewer, merged(own, merge, first))
    last = max(float(atoms.point[-1]) for atoms in (fewer, own) if atoms.point.size)
    nodes = first + spacing * np.arange(math.ceil((last - first) / spacing) + 3, dtype=np.float64)
    rows, error, moment_error = [], 0.0, 0.0
    for atoms in (fewer, own):
        row = np.zeros(nodes.size)
        if atoms.point.size:
            inside = atoms.point[0] > first
            start = max(int(np.searchsorted(nodes, atoms.point[0], side="right")) - 3, 0) if inside else 0
            spread = (above if side == "upper" else below)(atoms, nodes[start:])
            row[start:] = spread.mass
            error, moment_error = error + spread.error, moment_error + spread.moment_error
        rows.append(row)
    return _Laid(first, spacing, rows[0], rows[1], count), error, moment_error


def _window(parts: list[tuple[Atoms, int]]) -> tuple[float, float, tuple[float, float]]:
    """Interval outside which a sum lies with negligible probability, and the tilts that show it."""
    mean = variance = lowest = 0.0
    for atoms, count in parts:
        total, first, second = (float(np.sum(atoms.mass * atoms.point**k)) for k in range(3))
        mean += count * first
        variance += count * max(second - first**2 * (2 - total), 1e-12 * second)
        lowest += count * float(atoms.point[0])
    largest = max(float(atoms.point[-1]) for atoms, _ in parts)
    tilts = np.geomspace(
        min(1 / math.sqrt(variance), 1 / largest) / 4, 30 * max(1 / math.sqrt(variance), 1 / largest), 40
    )
    up, down = np.zeros(tilts.size), np.zeros(tilts.size)
    for atoms, count in parts:
        cuts = np.arange(0, atoms.point.size, max(atoms.point.size >> 10, 1))
        mass = np.add.reduceat(atoms.mass, cuts)
        ends = atoms.point[np.append(cuts[1:], atoms.point.size) - 1]
        top, bottom = float(ends[-1]), float(atoms.point[0])
        with np.errstate(divide="ignore"):
            up += count * (tilts * top + np.log(np.exp(np.multiply.outer(tilts, ends - top)) @ mass))
            down += count * (
                np.log(np.exp(-np.multiply.outer(tilts, atoms.point[cuts] - bottom)) @ mass) - tilts * bottom
            )
    least = _OUTSIDE - math.log1p(largest / mean)  # what lies above counts by its size, too
    highs, lows = (up - least) / tilts, (least - down) / tilts
    right, left = int(np.argmin(highs)), int(np.argmax(lows))
    low = max(float(lows[left]), lowest)
    return low, max(float(highs[right]), mean, low * (1 + 1e-9)), (float(tilts[right]), float(tilts[left]))


def _wrapped(laid: list[_Laid], low: float, high: float, tilts: tuple[float, float]) -> tuple[float, float]:
    """Mass of the sum outside [low, high], and the mean of the sum there (Chernoff's bound)."""
    up, slope = (sum(found) for found in zip(*(part.log_mgf(tilts[0]) for part in laid), strict=True))
    down, _ = (sum(found) for found in zip(*(part.log_mgf(-tilts[1]) for part in laid), strict=True))
    above_, below_ = math.exp(min(up - tilts[0] * high, 0.0)), math.exp(min(down + tilts[1] * low, 0.0))
    if sum(part.terms * part.first for part in laid) >= low:
        below_ = 0.0
    return (above_ + below_) * (1 + 1e-9), (above_ * slope + below_ * low) * (1 + 1e-9)
