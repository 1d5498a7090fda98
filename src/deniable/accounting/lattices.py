"""A privacy loss distribution in classes of lattices, each 8 times as coarse as the one before, and its products.

A law is a sum of measures, one a class; class e lives on the lattice of spacing h = unit·2^e. Rows hold masses of P,
below also those of Q times e^{label}. Labels are counted from a middle that the composition knows.

*Above.* Mass at x between lattice points a < b goes to b with share (1 − e^{−(x − a)})/(1 − e^{−(b − a)}) of its P
mass and to a with the rest: P and Q masses are both kept, and merging the two points undoes the split, so that the new
pair is larger in Blackwell's order. Raising a loss at its P mass, that is lowering Q's, makes it larger still.
*Below.* Outcomes near a lattice point become one, their P and Q masses added row by row: post-processing. On coarse
lattices they are those between a point and the next, so that Q's mass times e^{label} is never larger than P's.
Both orders survive composition with anything independent.

*Products.* A and B are sums over classes, and A_{<k} is the sum of those finer than k, brought onto lattice k by the
same split or merge. So (A∗B)_k = A_k∗(B_k + B_{<k}) + A_{<k}∗B_k adds up to A∗B, whatever was put into which class: how
classes are chosen decides about widths and never about truth. What leaves a class's range moves to the next class.

*Charges.* The truth is bounded by rows that are known up to three errors, kept apart:
- ``relative``: every mass is known up to a factor e^{±relative}. A product adds up both laws' own, and a rounding for
  every term that it sums up: those that come to one lattice point, and a few. Laws that are ``direct`` make no
  transforms: tails of any size are known.
- ``error`` E: what rows miss, or have too much, in L1 (of the larger one): entries below all doubles, dropped ends,
  and the rounding of FFTs. An error of A meets all of B on the lattice of its own class at least, so that with |B| the
  largest over k of B_{≤k}, brought onto lattice k, and all that is coarser, E(A∗B) = E_A·|B| + E_B·|A| + c·E_A·E_B + ν,
  where c = e^{16h/7}, h the coarsest spacing so far, allows for both errors having moved. For x∗y of n entries by
  transforms of m points, ν = 1.5·(f + 4ε)·√n·(‖x‖₂‖y‖₁ + ‖x‖₁‖y‖₂), f = ``fft_error(m)``. *Proof.* The transform x̂
  errs by f·√m·‖x‖₂ in L2, so that the product x̂·ŷ errs by f·√m·(‖x‖₂‖ŷ‖_∞ + ‖x̂‖_∞‖y‖₂), ‖x̂‖_∞ ≤ ‖x‖₁, and by a few
  roundings of itself; its inverse by that over √m and by f·‖x∗y‖₂, at most half the bracket since ‖x∗y‖₂ ≤ ‖x‖₁‖y‖₂
  and ≤ ‖x‖₂‖y‖₁. L1 is at most √n times L2. Replacing negative entries by 0 brings them nearer to the truth, which has
  none. ∎
  Places that hold most of a norm are not transformed but shifted: that rounding is relative.
- P mass that is on no lattice (only P can produce it, or it lies beyond the range of doubles) is counted once, for the
  whole composition, by whoever reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from deniable._check import FloatArray, Indices
from deniable._floats import EPS, MOST_EXPONENT, PRODUCT_EXPONENT
from deniable._fourier import fft_error
from deniable.accounting.sizes import BLOCK, POINTS, UNDERFLOW, UNLIKELY
from deniable.curves import Side

_FURTHEST = int(math.log2(POINTS))  # log2 of the ratio that one split or merge bridges: terms of a sum
_COARSE = 1.0  # spacing in nats above which losses are merged downwards
_BLOCK = math.isqrt(POINTS)  # terms that are added up at a time where there are no transforms
_DEVIATIONS = 2.0  # of what the finest class can hold must fit it, and this many larger losses are expected at most
_PEAK = 2.0**-8  # mass of a place that is shifted instead of transformed

SIZES = np.exp2(np.arange(-256.0, 256.0))  # of losses, or terms, that are told apart when lattices are chosen

LatticePart = tuple[int, FloatArray]  # place of the first lattice point, and rows


@dataclass(eq=False)
class Law:
    """Measures by class; ``points`` is the number of lattice points of a class, ``unit`` the spacing of class 0."""

    side: Side
    unit: float
    points: int
    parts: dict[int, LatticePart]
    direct: bool
    relative: float
    error: float
    coarsest: float  # spacing of all lattices that something was brought onto, if to the nearest point
    summed: int  # terms that were added up on the way

    rung = 3  # log2 of the ratio of neighbouring lattices
    few = 128  # roundings of a mass that is split, merged or shifted, but for sums

    @classmethod
    def empty(cls, side: Side, unit: float, points: int, direct: bool) -> Self:
        """No measures, and no errors."""
        return cls(side, unit, points, {}, direct, relative=0.0, error=0.0, coarsest=0.0, summed=0)

    def like(self) -> Self:
        """An empty law of the same kind."""
        return self.empty(self.side, self.unit, self.points, self.direct)

    @property
    def least(self) -> float:
        """Mass that is given up at either end of a row: far less than transforms round."""
        return UNLIKELY if self.direct else EPS / self.points

    def spacing(self, e: int) -> float:
        """Of class e."""
        return math.ldexp(self.unit, e)

    def nearest(self, e: int) -> bool:
        """Whether losses are merged into the nearest point, not into the one below."""
        return self.side == "lower" and self.spacing(e) <= _COARSE

    def put(self, e: int, part: LatticePart) -> None:
        """Add a measure to class e."""
        start, rows = part
        if e in self.parts:
            start, rows = added(self.parts[e], part)
        self.parts[e] = (start, rows)

    def keep_one(self, e: int) -> None:
        """Put an empty measure into class e if there is no other: all mass may be what only P produces."""
        if not self.parts:
            self.put(e, (0, np.zeros((1 if self.side == "upper" else 2, 1))))

    @property
    def moved(self) -> float:
        """Bound on what moving once through all classes multiplies errors by."""
        return math.exp(min(self.coarsest * 8 / 7, MOST_EXPONENT)) if self.side == "lower" else 1.0

    def listed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Labels of all lattice points, half the spacing of each one's lattice, and rows."""
        found = [
            (self.spacing(e) * (start + np.arange(rows.shape[1])), np.full(rows.shape[1], self.spacing(e) / 2), rows)
            for e, (start, rows) in self.parts.items()
        ]
        x, half, rows = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
        return x, half, rows

    def coarser(self, e: int, part: LatticePart, f: int) -> LatticePart:
        """A measure of class e on the lattice of class f ≥ e: split above, merged below."""
        while f > e + _FURTHEST:
            part, e = self.coarser(e, part, e + _FURTHEST), e + _FURTHEST
        if f == e:
            return part
        start, rows = part
        ratio, h = 1 << (f - e), self.spacing(e)
        self.summed += ratio + self.few
        nearest = self.nearest(f)
        self.coarsest = max(self.coarsest, h * ratio if nearest else 0.0)
        half = ratio // 2 if nearest else 0
        place = start + np.arange(rows.shape[1]) + half
        base = place // ratio
        return self.laid(base, np.asarray(h * (place - base * ratio), np.float64), h * ratio, h * half, rows)

    def laid(self, base: Indices, above: FloatArray, spacing: float, middle: float, rows: FloatArray) -> LatticePart:
        """Masses that lie ``above`` points ``base`` of a lattice: split, or merged at ``middle`` above the points."""
        first = int(base.min())
        base, count = base - first, int(base.max()) - first + 2
        if self.side == "upper":
            up = self.share(above, spacing)
            split = np.bincount(base, rows[0] * (1 - up), count) + np.bincount(base + 1, rows[0] * up, count)
            return first, split[None].astype(np.float64)
        return first, np.stack([np.bincount(base, row, count) for row in self.moved_by(middle - above, rows)])

    def share(self, above: FloatArray, spacing: float) -> FloatArray:
        """Share of a mass that a split gives to the upper neighbour."""
        return np.expm1(-above) / math.expm1(-spacing)

    def moved_by(self, far: FloatArray, rows: FloatArray) -> FloatArray:
        """Rows of masses that are labelled so much further up."""
        return np.stack([rows[0], rows[1] * np.exp(np.minimum(far, PRODUCT_EXPONENT))])

    def times(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        """Rows of a product, without transforms."""
        return np.stack([convolve_directly(one, other) for one, other in zip(rows, others, strict=True)])

    def lifted(self, bottom: int) -> Self:
        """The same without classes below ``bottom``."""
        out = self.like()
        out.relative, out.error, out.coarsest = self.relative, self.error, self.coarsest
        for e, part in sorted(self.parts.items()):
            out.put(max(e, bottom), out.coarser(e, part, max(e, bottom)))
        return out


AnyLaw = TypeVar("AnyLaw", bound=Law)


def convolve_directly(x: FloatArray, y: FloatArray) -> FloatArray:
    """x∗y without transforms, in blocks of x: no sum goes through more than _BLOCK + ⌈n/_BLOCK⌉ roundings."""
    if x.size > y.size:
        x, y = y, x
    blocks = np.pad(x, (0, -x.size % _BLOCK)).reshape(-1, _BLOCK)
    parts = blocks[:, ::-1] @ sliding_window_view(np.pad(y, _BLOCK - 1), _BLOCK).T
    found = np.zeros(blocks.size + y.size - 1)
    for k, part in enumerate(parts):
        found[k * _BLOCK : k * _BLOCK + part.size] += part
    return found[: x.size + y.size - 1]


def fitting(
    tables: Sequence[FloatArray], counts: Sequence[int], larger: float = _DEVIATIONS
) -> tuple[float, float] | None:
    """The size that the finest class of a sum should hold, and about the mean of what it can hold, if there is any.

    ``tables`` are :func:`scales` of its terms. It is the least size that two deviations of the sum of what is held do
    not exceed, and beyond which at most two terms, or ``larger``, and not all, are expected: near the infimum of a
    loss, distances from it are log-normal over many decades, and more deviations would take the scale of rare losses
    for that of the bulk.
    """
    n = np.array(counts, dtype=np.float64)
    mean, square, beyond = (np.array([table[k] for table in tables]) for k in range(3))
    variance = np.maximum(n @ (square - mean**2), 0.0)
    fits = (variance * _DEVIATIONS**2 <= SIZES**2) & (n @ beyond < min(larger, n.sum()))
    k = int(np.argmax(fits))
    return (float(SIZES[k]), float(n @ mean[:, k])) if fits[k] else None


def scales(size: FloatArray, mean: FloatArray, mass: FloatArray) -> FloatArray:
    """Rows: E[X; |X| ≤ R], E[X²; |X| ≤ R] and the mass beyond, R each of SIZES, of cells of such masses and means.

    A guide to where lattices are laid, never a bound.
    """
    place, mass = np.searchsorted(SIZES, size * (1 - 1e-9)), mass / mass.sum()
    inside = [np.cumsum(np.bincount(place, mass * mean**k, SIZES.size + 1))[:-1] for k in range(3)]
    return np.stack([inside[1], inside[2], np.maximum(1 - inside[0], 0.0)])


def added(a: LatticePart, b: LatticePart) -> LatticePart:
    """The sum of two measures on one lattice."""
    start = min(a[0], b[0])
    size = max(a[0] + a[1].shape[1], b[0] + b[1].shape[1]) - start
    rows = np.zeros((a[1].shape[0], size))
    for place, other in (a, b):
        rows[:, place - start : place - start + other.shape[1]] += other
    return start, rows


def product(a: AnyLaw, b: AnyLaw, bottom: int, centre: float, top: int) -> AnyLaw:
    """The law of the sum of independent losses in classes ``bottom`` to ``top``, their ranges around ``centre``."""
    same = a is b
    a = a.lifted(bottom)
    b = a if same else b.lifted(bottom)
    out, noise = a.like(), 0.0
    fine_a: LatticePart | None = None
    fine_b: LatticePart | None = None
    rungs = sorted(set(a.parts) | set(b.parts))
    sizes = [[0.0], [0.0]]
    for e, following in zip(rungs, [*rungs[1:], None], strict=True):
        own_a, own_b = a.parts.get(e), b.parts.get(e)
        all_a, all_b = _both(own_a, fine_a), _both(own_b, fine_b)
        for size, law, part in zip(sizes, (a, b), (all_a, all_b), strict=True):
            coarser = [other for f, other in law.parts.items() if f > e]
            size.append(float(np.sum([x[1].sum(axis=1) for x in (part, *coarser) if x is not None], axis=0).max()))
        if same and own_a is not None:  # A_k∗(A_k + 2·A_{<k})
            noise += _convolve(out, e, own_a, own_a if fine_a is None else added(own_a, (fine_a[0], 2 * fine_a[1])))
        elif not same:
            if own_a is not None and all_b is not None:
                noise += _convolve(out, e, own_a, all_b)
            if own_b is not None and fine_a is not None:
                noise += _convolve(out, e, fine_a, own_b)
        if following is not None:
            fine_a = None if all_a is None else a.coarser(e, all_a, following)
            fine_b = None if all_b is None else b.coarser(e, all_b, following)
    done, dropped = _classes_around(out, centre, top)
    done.coarsest = max(done.coarsest, a.coarsest, b.coarsest, out.coarsest)
    summed = a.few + a.summed + out.summed + (0 if same else b.summed)
    if a.direct:
        summed += _BLOCK + 1 + max(rows.shape[1] for law in (a, b) for _, rows in law.parts.values()) / _BLOCK
    done.relative = a.relative + b.relative + summed * EPS / 2
    errors = a.error * max(sizes[1]) + b.error * max(sizes[0]) + a.error * b.error * done.moved * done.moved
    done.error = (errors + noise + dropped + UNDERFLOW) * (1 + 64 * EPS)
    return done


def power(one: AnyLaw, count: int, laid: Callable[[int], tuple[int, float]], top: int) -> AnyLaw:
    """The law of ``count`` independent losses by squaring; ``laid`` names bottom and centre of a sum of so many."""
    law, k = one, 1
    for digit in bin(count)[3:]:
        k *= 2
        law = product(law, law, *laid(k), top)
        if digit == "1":
            k += 1
            law = product(law, one, *laid(k), top)
    return law


def _both(a: LatticePart | None, b: LatticePart | None) -> LatticePart | None:
    if a is None or b is None:
        return a if b is None else b
    return added(a, b)


def _convolve(out: Law, e: int, x: LatticePart, y: LatticePart) -> float:
    """Put x∗y into class e; return the L1 error of its transforms."""
    rows, others = x[1], y[1]
    count = rows.shape[1] + others.shape[1] - 1
    if out.direct:
        out.put(e, (x[0] + y[0], out.times(rows, others)))
        return 0.0
    found = np.zeros((rows.shape[0], count))
    rows = _add_large_products(found, rows, others)
    others = _add_large_products(found, others, rows)
    noise = 0.0
    if rows.any() and others.any():
        from scipy import fft

        points = fft.next_fast_len(count, real=True)
        first = fft.rfft(rows, points)
        second = first if others is rows else fft.rfft(others, points)
        found += np.maximum(fft.irfft(first * second, points)[:, :count], 0.0)
        norm = [(np.linalg.norm(z, axis=1), z.sum(axis=1)) for z in (rows, others)]
        crossed = norm[0][0] * norm[1][1] + norm[0][1] * norm[1][0]
        noise = 1.5 * (fft_error(points) + 4 * EPS) * math.sqrt(count) * float(np.max(crossed)) * (1 + 1e-9)
    out.put(e, (x[0] + y[0], found))
    return noise


def _add_large_products(found: FloatArray, rows: FloatArray, others: FloatArray) -> FloatArray:
    """Add the products of the few entries that hold most of the norm of ``rows``, and return the rest of it."""
    places = np.flatnonzero(rows[0] > _PEAK)
    if not places.size:
        return rows
    for place in places:
        found[:, place : place + others.shape[1]] += rows[:, place, None] * others
    rest = rows.copy()
    rest[:, places] = 0.0
    return rest


def _classes_around(law: AnyLaw, centre: float, top: int) -> tuple[AnyLaw, float]:
    """Classes cut to their ranges around the centre, what lies outside moved up; and the mass dropped at the ends."""
    done, todo, dropped = law.like(), law.like(), 0.0
    for e, part in law.parts.items():
        todo.put(e, part)
    while todo.parts:
        e = min(todo.parts)
        start, rows = todo.parts.pop(e)
        first, last, less = trim_ends(rows, law.least)
        dropped += less
        if last <= first:
            continue
        start, rows = start + first, rows[:, first:last]
        stop = start + rows.shape[1]
        if e >= top and rows.shape[1] <= (law.points if law.direct else BLOCK):
            done.put(e, (start, rows))
            continue
        middle = round(centre / law.spacing(e))
        low, high = max(start, middle - law.points // 2), min(stop, middle + law.points // 2)
        following = min(e + law.rung, top) if e < top else e + law.rung
        pieces = [(start, low), (low, high), (high, stop)] if low < high else [(start, stop), (0, 0), (0, 0)]
        for k, (i, j) in enumerate(pieces):
            if i < j:
                piece = (i, rows[:, i - start : j - start])
                if k == 1:
                    done.put(e, piece)
                else:
                    todo.put(following, law.coarser(e, piece, following))
    done.keep_one(top)
    return done, dropped


def trim_ends(rows: FloatArray, least: float) -> tuple[int, int, float]:
    """First place and end of what is kept of rows if ``least`` may go at either, and the mass of what is not."""
    mass = rows.max(axis=0)
    first = int(np.searchsorted(np.cumsum(mass), least, side="right"))
    last = max(mass.size - int(np.searchsorted(np.cumsum(mass[::-1]), least, side="right")), first)
    return first, last, float(mass[:first].sum() + mass[last:].sum())
