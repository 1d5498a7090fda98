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
from deniable.accounting.steps.law_errors import LawErrors, bias_of, square_error
from deniable.curves import Side

MASS = 16 * EPS  # relative rounding of masses of one term
_NOISE = 64 * LONG_EPS  # of the largest mass: what is smaller is rounding, and left out
SUMMED = 256 * LONG_EPS  # relative rounding of differences of pairwise sums: blocks of 128, and their tree
_NONE = Atoms(np.zeros(0), np.zeros(0))
_MERGED = (1.0, 4.0, 16.0, 64.0, math.inf)  # spacings between the first atom and the next
_FAILED = 1e-3  # of a law: an error that says that there is none on these points
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

    def joined(self, first: int) -> SumLaw:
        """Return the same with the classes up to one as a single class."""
        return self._replace(classes=[self.up_to(first), *self.classes[first + 1 :]]) if first else self


def power(parts: list[tuple[SumLaw, int]], side: Side, points: int) -> SumLaw:
    """Law of a sum of independent sums: ``count`` of each part.

    Relative errors: sums whose largest term is of class j are found from terms on a lattice of class j, as W^n − F^n, W
    the terms up to class j and F those below. The mean square of the error over this part of the law is at most that
    of all sums of terms up to class j, and its probability times the largest error squared; the whole mean square is
    the sum over the parts. Let the totals of W, F and f = W − F be wrong by shares b, b′ and b″ ≤ κ. The mass of the
    part is wrong by (W^n − F^n)·((1 + b)^n − 1) + F^n·((1 + b)^n − (1 + b′)^n), and W·(b − b′) = f·(b″ − b′), so that
    the second is about n·F^{n−1}·f·|b″ − b′| ≤ 2κ·min(n·f, 1), as n·f·(1 − f)^{n−1} is the mass of a part of the law.
    """
    mean = sum(part.mean * count for part, count in parts)
    errors = LawErrors()
    for part, count in parts:
        errors = errors + part.errors.of_sum(count, mean)
    classes, bias, square, laid = [], 0.0, 0.0, 0
    terms = sum(count for _, count in parts)
    fewer = [_Fewer(_NONE, LawErrors(), 0.0) for _ in parts]
    for j in range(len(parts[0][0].classes)):
        found, fewer = _class(parts, fewer, j, side, points, mean)
        classes.append(found.atoms)
        errors = errors + found.errors
        if found.share > 0:
            # the smallest terms have been brought onto the lattices of all classes so far
            laid += 1
            bias += found.share * (bias_of(terms, found.bias) + found.apart)
            square += min(square_error(terms, (laid * MASS) ** 2, found.bias), found.share * (laid * MASS * terms) ** 2)
    errors = errors + LawErrors(relative=laid * MASS * terms, square=square, bias=bias)
    return SumLaw(classes, errors, mean * (1 + 8 * EPS))


class _Found(NamedTuple):
    atoms: Atoms
    errors: LawErrors
    bias: float = 0.0  # of the total mass of one term on the lattice of this class, as a share
    apart: float = 0.0  # bound on how far the biases of class j and of those below are apart
    share: float = 0.0  # about the probability that the largest term is of this class, or more


class _Fewer(NamedTuple):
    """Terms of the classes below one, on the lattice of the class before, and what is wrong with them."""

    atoms: Atoms
    errors: LawErrors
    bias: float  # of the total mass


class _Laid(NamedTuple):
    """Terms on a lattice: masses of the classes below j and of class j, and how many terms there are."""

    first: float
    spacing: float
    fewer: FloatArray
    own: FloatArray
    terms: int

    @property
    def whole(self) -> Atoms:
        """Both as one measure."""
        mass = self.fewer + self.own
        point = self.first + self.spacing * np.arange(mass.size, dtype=np.float64)
        keep = mass > 0
        return Atoms(point[keep], mass[keep])

    def log_mgf(self, tilt: float) -> tuple[float, float]:
        """K and K′ of the sum of all terms at a tilt."""
        mass, point = self.fewer + self.own, self.first + self.spacing * np.arange(self.own.size)
        with np.errstate(divide="ignore"):
            exponent = np.log(mass) + tilt * point
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        total = float(weight.sum())
        return self.terms * (top + math.log(total)), self.terms * float(weight @ point) / total


def _class(
    parts: list[tuple[SumLaw, int]], fewer: list[_Fewer], j: int, side: Side, points: int, mean: float
) -> tuple[_Found, list[_Fewer]]:
    """Sums whose largest term is of class j: the transform is Π(F + f)^m − ΠF^m, f of class j and F of those below.

    Also returns F + f of every part, as laid on the lattice of this class: F for the next one.
    """
    if not any(part.classes[j].point.size for part, _ in parts):
        return _Found(_NONE, LawErrors()), fewer
    points >>= min(j // 2, 3)  # the law of large terms is smooth on their scale
    terms = [[atoms for atoms in (known.atoms, part.classes[j]) if atoms.point.size]
             for (part, _), known in zip(parts, fewer, strict=True)]  # fmt: skip
    counts = [count for _, count in parts]
    low, high, tilts = _window(terms, counts)
    # splitting adds bounded noise to every term: 6·√terms spacings hold all but e^{−72} of it (Hoeffding)
    margin = 6 * math.sqrt(sum(counts)) * (high - low) / points
    lowest = sum(count * min(atoms.point[0] for atoms in some) for some, count in zip(terms, counts, strict=True))
    low, high = max(low - margin, float(lowest)), high + margin
    spacing = (high - low) / (points - 8)
    errors, laid, bias, apart = LawErrors(), [], 0.0, 0.0
    next_fewer: list[_Fewer] = []
    for (part, count), known in zip(parts, fewer, strict=True):
        found, placed = _on_lattice(known.atoms, part.classes[j], spacing, side, count, part.mean)
        laid.append(found)
        gained = known.bias * float(np.sum(known.atoms.mass)) + float(placed.mass.sum())
        placed = known.errors + placed
        errors = errors + placed.of_sum(count, mean)
        before = [float(long_sum(atoms.mass)) for atoms in (known.atoms, part.classes[j])]
        changed = [
            float(long_sum(now) - long_sum(atoms.mass))
            for now, atoms in ((found.fewer, known.atoms), (found.own, part.classes[j]))
        ]
        bias = max(bias, (gained + abs(sum(changed))) / sum(before) + SUMMED)
        if before[0] > 0 and before[1] > 0:
            of_fewer, of_own = ((gained + abs(x)) / was + SUMMED for x, was in zip(changed, before, strict=True))
            apart = max(apart, of_fewer + min(of_own, MASS))
        next_fewer.append(_Fewer(found.whole, placed, bias))
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
    share = min(1.01 * sum(part.terms * float(part.own.sum()) for part in laid), 1.0)
    return _Found(Atoms(point[keep], mass[keep]), errors, bias, apart, share), next_fewer


def long_sum(mass: FloatArray) -> np.longdouble:
    """Return the sum of masses in long double, within a share of ``SUMMED``."""
    return np.longdouble(mass.astype(np.longdouble).sum())


def _transform(laid: list[_Laid], j: int, points: int) -> tuple[NDArray[np.clongdouble], float]:
    """The transform on ``points`` frequencies, and √points times a bound on the law's L2 error from rounding.

    A relative L2 error κ of an FFT moves a transform by at most κ·√N·‖masses‖₂ in L2; one factor among m weighs at most
    m, or m times the mass of class j where only the difference is kept; L1 ≤ √N·L2 and Parseval do the rest. Rounding
    of the powers is that of :class:`_Power`.
    """
    size = math.sqrt(points)
    ours = min(sum(part.terms * float(part.own.sum()) for part in laid), 1.0)
    pairs = [
        (_long_rfft(part.own, points), _long_rfft(part.fewer, points) if j > 0 and part.fewer.any() else None)
        for part in laid
    ]
    # most frequencies are 0 after the power: they are left out, and charged as a whole
    log_size, log_base = np.zeros(points // 2 + 1), np.zeros(points // 2 + 1) if j > 0 else None
    for part, (own, fewer) in zip(laid, pairs, strict=True):
        log_size += part.terms * _log_abs(own if fewer is None else own + fewer)
        if log_base is not None:
            log_base += part.terms * (-np.inf if fewer is None else _log_abs(fewer))
    kept = np.flatnonzero((log_size if log_base is None else np.maximum(log_size, log_base)) > _LEAST)
    error, power = 4 * size * math.exp(_LEAST), None
    for part, (own, fewer) in zip(laid, pairs, strict=True):
        weight = float(np.linalg.norm(part.own)) + ours * float(np.linalg.norm(part.fewer))
        error += part.terms * fft_error(points, LONG_EPS) * size * weight
        found = _Power.of(own[kept], None if fewer is None else fewer[kept]).to(part.terms)
        power = found if power is None else power.times(found)
    if power is None:
        raise ValueError("no terms to add up")
    transform = np.zeros(points // 2 + 1, dtype=np.clongdouble)
    transform[kept] = power.difference
    evaluated = power.bound * (4 * LONG_EPS * power.terms * (1 + 1e-9)) + np.abs(power.difference).astype(
        np.float64
    ) * fft_error(points, LONG_EPS)
    return transform, error + math.sqrt(2) * float(np.linalg.norm(evaluated)) * (1 + 1e-9)


def _long_rfft(mass: FloatArray, points: int) -> NDArray[np.clongdouble]:
    return np.asarray(rfft(_folded(mass, points).astype(np.longdouble)), dtype=np.clongdouble)


def _log_abs(z: NDArray[np.clongdouble]) -> FloatArray:
    """log|z| to about 1e-15, −∞ for |z| below 1e-154."""
    with np.errstate(divide="ignore", under="ignore"):
        found: FloatArray = np.log(z.real.astype(np.float64) ** 2 + z.imag.astype(np.float64) ** 2) / 2
    return found


class _Power(NamedTuple):
    """(F + f)^m, F^m and their difference, for complex numbers F and f; F = 0 is None, as is its power.

    The difference D_m is f·Σ(F + f)^i·F^{m−1−i}, and products and sums make it: D_{m+n} = D_m·(F + f)^n + F^m·D_n.
    A product is wrong by a relative √5·u, a sum by u, u = LONG_EPS/2. A monomial of F, f and F + f goes through at most
    2(m − 1) of both (by induction: those of m and n terms through at most max(2(m − 1) + n, 2(n − 1) + m) + 2 of them),
    each F + f through one more: through less than 3m, so that the difference is wrong by at most
    4·m·LONG_EPS·``bound``, where ``bound`` is |f|·Σ|F + f|^i·|F|^{m−1−i}, to a relative 1e-10.
    """

    terms: int
    whole: NDArray[np.clongdouble]
    base: NDArray[np.clongdouble] | None
    difference: NDArray[np.clongdouble]
    sizes: tuple[FloatArray, FloatArray | None]  # |whole| and |base|
    bound: FloatArray

    @classmethod
    def of(cls, own: NDArray[np.clongdouble], fewer: NDArray[np.clongdouble] | None) -> _Power:
        """The first power."""
        size = np.abs(own.astype(np.complex128))
        if fewer is None:
            return cls(1, own, None, own, (size, None), size)
        whole = own + fewer
        sizes = np.abs(whole.astype(np.complex128)), np.abs(fewer.astype(np.complex128))
        return cls(1, whole, fewer, own, sizes, size)

    def times(self, other: _Power) -> _Power:
        """The product of two such powers."""
        terms, whole, size = self.terms + other.terms, self.whole * other.whole, self.sizes[0] * other.sizes[0]
        bound, difference = self.bound * other.sizes[0], self.difference * other.whole
        if self.base is not None and self.sizes[1] is not None:
            bound, difference = bound + self.sizes[1] * other.bound, difference + self.base * other.difference
            if other.base is not None and other.sizes[1] is not None:
                sizes = size, self.sizes[1] * other.sizes[1]
                return _Power(terms, whole, self.base * other.base, difference, sizes, bound)
        return _Power(terms, whole, None, difference, (size, None), bound)

    def to(self, count: int) -> _Power:
        """The power with ``count`` times as many terms."""
        found = self
        for digit in bin(count)[3:]:
            found = found.times(found)
            found = found.times(self) if digit == "1" else found
        return found


def _folded(mass: FloatArray, points: int) -> FloatArray:
    if mass.size <= points:
        return mass if mass.size == points else np.pad(mass, (0, points - mass.size))
    found: FloatArray = np.pad(mass, (0, -mass.size % points)).reshape(-1, points).sum(axis=0)
    return found


def _on_lattice(
    fewer: Atoms, own: Atoms, spacing: float, side: Side, count: int, mean: float
) -> tuple[_Laid, LawErrors]:
    """Bring the classes up to j onto one lattice: those below j together, and class j."""
    lowest = fewer if fewer.point.size else own
    if side == "upper":
        return _laid(fewer, own, 0, float(lowest.point[0]), spacing, side, count, mean)
    # too few points among the lower classes for a polygon below them: more of them are merged into their mean
    for apart in _MERGED if fewer.point.size else _MERGED[:1]:
        merge, first = first_group(lowest, apart * spacing)
        found = _laid(fewer, own, merge, first, spacing, side, count, mean)
        if found[1].total < _FAILED * float(lowest.mass.sum()):
            break
    return found


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


def _window(parts: list[list[Atoms]], counts: list[int]) -> tuple[float, float, tuple[float, float]]:
    """Interval outside which a sum lies with negligible probability, and the tilts that show it.

    A part's law is the sum of its measures.
    """
    mean = variance = lowest = 0.0
    for some, count in zip(parts, counts, strict=True):
        total, first, second = (sum(float(atoms.mass @ atoms.point**k) for atoms in some) for k in range(3))
        mean += count * first
        variance += count * max(second - first**2 * (2 - total), 1e-12 * second)
        lowest += count * min(float(atoms.point[0]) for atoms in some)
    largest = max(float(atoms.point[-1]) for some in parts for atoms in some)
    tilts = np.geomspace(
        min(1 / math.sqrt(variance), 1 / largest) / 4, 30 * max(1 / math.sqrt(variance), 1 / largest), 40
    )
    up, down = np.zeros(tilts.size), np.zeros(tilts.size)
    for some, count in zip(parts, counts, strict=True):
        starts, ends, mass = (np.concatenate(found) for found in zip(*map(_blocks, some), strict=True))
        top, bottom = float(ends.max()), float(starts.min())
        with np.errstate(divide="ignore", under="ignore"):
            up += count * (tilts * top + np.log(np.exp(np.multiply.outer(tilts, ends - top)) @ mass))
            down += count * (np.log(np.exp(-np.multiply.outer(tilts, starts - bottom)) @ mass) - tilts * bottom)
    least = _OUTSIDE - math.log1p(largest / mean)  # what lies above counts by its size, too
    highs, lows = (up - least) / tilts, (least - down) / tilts
    right, left = int(np.argmin(highs)), int(np.argmax(lows))
    low = max(float(lows[left]), lowest)
    return low, max(float(highs[right]), mean, low * (1 + 1e-9)), (float(tilts[right]), float(tilts[left]))


def _blocks(atoms: Atoms) -> tuple[FloatArray, FloatArray, FloatArray]:
    """First and last points of a few hundred blocks of atoms, and their masses."""
    cuts = np.arange(0, atoms.point.size, max(atoms.point.size >> 8, 1))
    last = np.append(cuts[1:], atoms.point.size) - 1
    return atoms.point[cuts], atoms.point[last], np.add.reduceat(atoms.mass, cuts)


def _wrapped(laid: list[_Laid], low: float, high: float, tilts: tuple[float, float]) -> tuple[float, float]:
    """L1 error of what wraps around [low, high], in mass and in mass times sum (Chernoff's bound)."""
    up, slope = (sum(found) for found in zip(*(part.log_mgf(tilts[0]) for part in laid), strict=True))
    down, _ = (sum(found) for found in zip(*(part.log_mgf(-tilts[1]) for part in laid), strict=True))
    above_, below_ = math.exp(min(up - tilts[0] * high, 0.0)), math.exp(min(down + tilts[1] * low, 0.0))
    if sum(part.terms * part.first for part in laid) >= low:
        below_ = 0.0
    outside = (above_ + below_) * (1 + 1e-9)  # what wraps around is missing where it belongs, and too much elsewhere
    return 2 * outside, outside * high + (above_ * slope + below_ * low) * (1 + 1e-9)
