"""Laws of sums of many terms: classes by the largest term, each on a lattice of its own, every error charged."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._fourier import fft_error
from deniable.accounting.steps.binomial import LONG_EPS
from deniable.accounting.steps.convex_order import Atoms, above, below, first_group, merged
from deniable.accounting.steps.law_errors import LawErrors, even_error
from deniable.curves import Side

MASS = 16 * EPS  # relative rounding of masses of one term
_NOISE = 64 * LONG_EPS  # of the largest mass: what is smaller is rounding, and left out
SUMMED = 256 * LONG_EPS  # relative rounding of differences of pairwise sums: blocks of 128, and their tree
_OUTSIDE = -48.0  # log of the mass that may wrap around a lattice
_LEAST = -110.0  # log of the size of frequencies that are left out


class SumLaw(NamedTuple):
    """Law of a sum of terms under "out": one measure per class, what is wrong with it, a bound on its mean."""

    classes: list[Atoms]
    errors: LawErrors
    mean: float

    def up_to(self, last: int) -> Atoms:
        """All classes up to one."""
        return Atoms.joined(self.classes[: last + 1])


def power(parts: list[tuple[SumLaw, int]], side: Side, points: int) -> SumLaw:
    """Law of a sum of independent sums: ``count`` of each part."""
    mean = sum(part.mean * count for part, count in parts)
    errors = LawErrors()
    for part, count in parts:
        errors = errors + part.errors.of_sum(count, mean)
    classes, bias = [], 0.0
    for j in range(len(parts[0][0].classes)):
        found = _class(parts, j, side, points, mean)
        classes.append(found.atoms)
        errors = errors + found.errors
        bias = max(bias, found.bias)
    # every class is a share p of the law, with terms on lattices of its own: Σ√p ≤ √classes by Cauchy and Schwarz
    terms = sum(count for _, count in parts)
    even = math.sqrt(len(classes)) * even_error(terms, MASS, bias) + len(classes) * MASS
    even = min(even, MASS * terms)
    errors = errors + LawErrors(relative=MASS * terms, even=even, bias=even)
    return SumLaw(classes, errors, mean * (1 + 8 * EPS))


class _Found(NamedTuple):
    atoms: Atoms
    errors: LawErrors
    bias: float = 0.0  # of the total mass of one term on the lattice of this class, as a share


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


def _class(parts: list[tuple[SumLaw, int]], j: int, side: Side, points: int, mean: float) -> _Found:
    """Sums whose largest term is of class j: the transform is Π(F + f)^m − ΠF^m, f of class j and F of those below."""
    if not any(part.classes[j].point.size for part, _ in parts):
        return _Found(Atoms(np.zeros(0), np.zeros(0)), LawErrors())
    points >>= min(j // 2, 2)  # the law of large terms is smooth on their scale
    low, high, tilts = _window([(part.up_to(j), count) for part, count in parts])
    # splitting adds bounded noise to every term: 6·√terms spacings hold all but e^{−72} of it (Hoeffding)
    margin = 6 * math.sqrt(sum(count for _, count in parts)) * (high - low) / points
    low, high = max(low - margin, sum(count * float(part.up_to(j).point[0]) for part, count in parts)), high + margin
    spacing = (high - low) / (points - 8)
    errors, laid, bias = LawErrors(), [], 0.0
    for part, count in parts:
        found, placed = _on_lattice(part, j, spacing, side, count)
        laid.append(found)
        errors = errors + placed.of_sum(count, mean)
        whole = long_sum(part.up_to(j).mass)
        gained = abs(float(long_sum(found.fewer) + long_sum(found.own) - whole)) + float(placed.mass.sum())
        bias = max(bias, gained / float(whole) + SUMMED)
    transform, error = _transform(laid, j, points)
    first = sum(part.terms * part.first for part in laid)
    start = math.floor((low - first) / spacing)
    mass = np.maximum(np.roll(irfft(transform, points).astype(np.float64), -(start % points)), 0.0)
    point = first + spacing * np.arange(start, start + points, dtype=np.float64)
    point_of_errors = point
    if j > 0:  # no sum with a term of class j is smaller than that term: what stands there is rounding
        least = min(float(part.classes[j].point[0]) for part, _ in parts if part.classes[j].point.size)
        outside = point < least - 3 * spacing
        mass[outside] = 0.0
        point_of_errors = point[~outside]
    noise = np.where(mass < _NOISE * mass.max(), mass, 0.0)
    mass[noise > 0] = 0.0
    errors = errors.placed(point, noise, mean).spread(point_of_errors, error, points, mean)
    errors = errors.without(*_wrapped(laid, float(point[0]), float(point[-1]), tilts))
    keep = (point > 0) & (mass > 0)
    return _Found(Atoms(point[keep], mass[keep]), errors, bias)


def long_sum(mass: FloatArray) -> np.longdouble:
    """Return the sum of masses in long double, within a share of ``SUMMED``."""
    return np.longdouble(mass.astype(np.longdouble).sum())


def _transform(laid: list[_Laid], j: int, points: int) -> tuple[NDArray[np.clongdouble], float]:
    """The transform on ``points`` frequencies, and √points times a bound on the law's L2 error from rounding.

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
        error += part.terms * fft_error(points, LONG_EPS) * size * weight
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
    evaluated = rounded.astype(np.float64) * (4 * LONG_EPS * (turned + 1) + fft_error(points, LONG_EPS))
    error += math.sqrt(2) * float(np.linalg.norm(evaluated))
    transform = np.zeros(points // 2 + 1, dtype=np.clongdouble)
    transform[kept] = found
    return transform, error


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


def _on_lattice(sums: SumLaw, j: int, spacing: float, side: Side, count: int) -> tuple[_Laid, LawErrors]:
    """Bring the classes up to j onto one lattice: those below j together, and class j."""
    mean = sums.mean
    fewer = sums.up_to(j - 1) if j > 0 else Atoms(np.zeros(0), np.zeros(0))
    own = sums.classes[j]
    lowest = fewer if fewer.point.size else own
    found = _laid(fewer, own, *((0, float(lowest.point[0])) if side == "upper" else first_group(lowest, spacing)),
        spacing, side, count, mean)  # fmt: skip
    if side == "upper" or found[1].total < 1e-3 * float(lowest.mass.sum()) or not fewer.point.size:
        return found
    # too few points among the lower classes for a polygon below them: they are merged into their mean
    first = float(lowest.point @ lowest.mass / lowest.mass.sum())
    return _laid(fewer, own, lowest.point.size, first, spacing, side, count, mean)


def _laid(
    fewer: Atoms, own: Atoms, merge: int, first: float, spacing: float, side: Side, count: int, mean: float
) -> tuple[_Laid, LawErrors]:
    """Both measures on first + spacing·(0, 1, …), after the first atoms are merged there."""
    if merge:
        fewer, own = (merged(fewer, merge, first), own) if fewer.point.size else (fewer, merged(own, merge, first))
    last = max(float(atoms.point[-1]) for atoms in (fewer, own) if atoms.point.size)
    nodes = first + spacing * np.arange(math.ceil((last - first) / spacing) + 3, dtype=np.float64)
    rows, errors = [], LawErrors()
    for atoms in (fewer, own):
        row = np.zeros(nodes.size)
        if atoms.point.size:
            inside = atoms.point[0] > first
            start = max(int(np.searchsorted(nodes, atoms.point[0], side="right")) - 3, 0) if inside else 0
            spread = (above if side == "upper" else below)(atoms, nodes[start:])
            row[start:] = spread.mass
            errors = errors.placed(nodes[start:], spread.error, mean)
        rows.append(row)
    return _Laid(first, spacing, rows[0], rows[1], count), errors


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
    """L1 error of what wraps around [low, high], in mass and in mass times sum (Chernoff's bound)."""
    up, slope = (sum(found) for found in zip(*(part.log_mgf(tilts[0]) for part in laid), strict=True))
    down, _ = (sum(found) for found in zip(*(part.log_mgf(-tilts[1]) for part in laid), strict=True))
    above_, below_ = math.exp(min(up - tilts[0] * high, 0.0)), math.exp(min(down + tilts[1] * low, 0.0))
    if sum(part.terms * part.first for part in laid) >= low:
        below_ = 0.0
    outside = (above_ + below_) * (1 + 1e-9)  # what wraps around is missing where it belongs, and too much elsewhere
    return 2 * outside, outside * high + (above_ * slope + below_ * low) * (1 + 1e-9)
