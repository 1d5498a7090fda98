"""A privacy loss distribution in classes of lattices, each 8 times as coarse as the one before, and its products.

A law is a sum of measures, one a class; class e lives on the lattice of spacing h = unit·2^e. Rows hold masses of P,
below also those of Q times e^{label}. All are multiplied by e^{tilt·label}: with a tilt above 0, what is far out keeps
its accuracy. Labels are counted from a middle that the composition knows.

*Above.* Mass at x between lattice points a < b goes to b with share (1 − e^{−(x − a)})/(1 − e^{−(b − a)}) of its P
mass and to a with the rest: P and Q masses are both kept, and merging the two points undoes the split, so that the new
pair is larger in Blackwell's order. Raising a loss at its P mass, that is lowering Q's, makes it larger still.
*Below.* Outcomes near a lattice point become one, their P and Q masses added row by row: post-processing.
Both orders survive composition with anything independent.

*Products.* A and B are sums over classes, and A_{<k} is the sum of those finer than k, brought onto lattice k by the
same split or merge. So (A∗B)_k = A_k∗(B_k + B_{<k}) + A_{<k}∗B_k adds up to A∗B, whatever was put into which class: how
classes are chosen decides about widths and never about truth. What leaves a class's range moves to the next class.

*Charges.* The truth is bounded by rows that are known up to three errors, kept apart:
- ``relative``: every mass is known up to a factor e^{±relative}. Sums of up to 2^12 positive terms, a few times a
  product, stay within 2^-40 each. A product adds up both laws' own.
- ``error`` E: what rows miss, or have too much, in L1 (of the larger one): entries below all doubles, dropped ends,
  and the rounding of FFTs. E(A∗B) = E_A·|B| + E_B·|A| + E_A·E_B + ν. For x∗y of n entries by transforms of m points,
  ν = 1.5·(f + 4ε)·√n·(‖x‖₂‖y‖₁ + ‖x‖₁‖y‖₂), f = ``fft_error(m)``. *Proof.* The transform x̂ errs by f·√m·‖x‖₂ in L2, so
  that the product x̂·ŷ errs by f·√m·(‖x‖₂‖ŷ‖_∞ + ‖x̂‖_∞‖y‖₂), ‖x̂‖_∞ ≤ ‖x‖₁, and by a few roundings of itself; its
  inverse by that over √m and by f·‖x∗y‖₂, at most half the bracket since ‖x∗y‖₂ ≤ ‖x‖₁‖y‖₂ and ≤ ‖x‖₂‖y‖₁. L1 is at
  most √n times L2. Replacing negative entries by 0 brings them nearer to the truth, which has none. ∎
  Places that hold most of a norm are not transformed but shifted: that rounding is relative.
- P mass that is on no lattice (only P can produce it, or it lies beyond the range of doubles) is counted once, for the
  whole composition, by whoever reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from deniable._check import FloatArray, Indices
from deniable._floats import EPS, MANY_ROUNDINGS, PRODUCT_EXPONENT
from deniable._fourier import fft_error
from deniable.curves import Side

RUNG = 3  # log2 of the ratio of neighbouring lattices
_FURTHEST = 12  # log2 of the ratio that one split or merge bridges: sums of so many terms stay within 2^-40
_DROPPED = 1e-19  # mass that is given up at either end of a row, a product
_PEAKS = 16  # places of a row that may be shifted instead of transformed
_PEAK, _HIGH = 1e-3, 5e-3  # mass of such a place, and of the largest if there are any
_MOST_ENTRIES = 1 << 17  # of a row of the coarsest class

UNDERFLOW = 1e-290  # L1 that rows may lose to numbers below all doubles, a product

LatticePart = tuple[int, FloatArray]  # place of the first lattice point, and rows


@dataclass(eq=False)
class Law:
    """Measures by class; ``points`` is the number of lattice points of a class, ``unit`` the spacing of class 0."""

    side: Side
    unit: float
    tilt: float
    points: int
    parts: dict[int, LatticePart]
    relative: float = 0.0
    error: float = 0.0
    log_size: float = 0.0  # logarithm of what all masses are to be multiplied by

    def like(self) -> Law:
        """An empty law of the same kind."""
        return Law(self.side, self.unit, self.tilt, self.points, {})

    def spacing(self, e: int) -> float:
        """Of class e."""
        return math.ldexp(self.unit, e)

    def put(self, e: int, part: LatticePart) -> None:
        """Add a measure to class e."""
        start, rows = part
        if e in self.parts:
            start, rows = added(self.parts[e], part)
        self.parts[e] = (start, rows)

    @property
    def size(self) -> float:
        """Mass of the larger row."""
        if not self.parts:
            return 0.0
        return float(max(np.sum([rows.sum(axis=1) for _, rows in self.parts.values()], axis=0)))

    def coarser(self, e: int, part: LatticePart, f: int) -> LatticePart:
        """A measure of class e on the lattice of class f ≥ e: split above, merged below."""
        while f > e + _FURTHEST:
            part, e = self.coarser(e, part, e + _FURTHEST), e + _FURTHEST
        if f == e:
            return part
        start, rows = part
        ratio, h = 1 << (f - e), self.spacing(e)
        place = start + np.arange(rows.shape[1]) + (ratio // 2 if self.side == "lower" else 0)
        base = place // ratio
        above = h * (place - base * ratio)  # its lower neighbour, or half a cell below the nearest
        first = int(base[0])
        base, count = base - first, int(base[-1]) - first + 2
        if self.side == "upper":
            up = -np.expm1(-above) / -math.expm1(-h * ratio)
            low = rows[0] * (1 - up) * np.exp(-self.tilt * above)
            high = rows[0] * up * np.exp(self.tilt * (h * ratio - above))
            split = np.bincount(base, low, count) + np.bincount(base + 1, high, count)
            return first, split[None].astype(np.float64)
        move = np.minimum(h * (ratio // 2) - above, PRODUCT_EXPONENT)
        moved = rows * np.exp(np.multiply.outer(np.array([self.tilt, self.tilt + 1]), move))
        return first, np.stack([np.bincount(base, row, count) for row in moved])

    def lifted(self, bottom: int) -> Law:
        """The same without classes below ``bottom``."""
        out = self.like()
        out.relative, out.error, out.log_size = self.relative, self.error, self.log_size
        for e, part in sorted(self.parts.items()):
            out.put(max(e, bottom), self.coarser(e, part, max(e, bottom)))
        return out


def added(a: LatticePart, b: LatticePart) -> LatticePart:
    """The sum of two measures on one lattice."""
    start = min(a[0], b[0])
    size = max(a[0] + a[1].shape[1], b[0] + b[1].shape[1]) - start
    rows = np.zeros((a[1].shape[0], size))
    for place, other in (a, b):
        rows[:, place - start : place - start + other.shape[1]] += other
    return start, rows


def product(a: Law, b: Law, bottom: int, centre: float, top: int) -> Law:
    """The law of the sum of independent losses in classes ``bottom`` to ``top``, their ranges around ``centre``."""
    same = a is b
    relative, error, size_a, size_b = a.relative + b.relative, (a.error, b.error), a.size, b.size
    a = a.lifted(bottom)
    b = a if same else b.lifted(bottom)
    out, noise = a.like(), 0.0
    fine_a: LatticePart | None = None
    fine_b: LatticePart | None = None
    rungs = sorted(set(a.parts) | set(b.parts))
    for e, following in zip(rungs, [*rungs[1:], None], strict=True):
        own_a, own_b = a.parts.get(e), b.parts.get(e)
        if same and own_a is not None:  # A_k∗(A_k + 2·A_{<k})
            other = own_a if fine_a is None else added(own_a, (fine_a[0], 2 * fine_a[1]))
            noise += _convolve(out, e, own_a, other)
        elif not same:
            if own_a is not None and (other_b := _both(own_b, fine_b)) is not None:
                noise += _convolve(out, e, own_a, other_b)
            if own_b is not None and fine_a is not None:
                noise += _convolve(out, e, fine_a, own_b)
        if following is not None:
            fine_a, fine_b = (
                None if (all_ := _both(fine, own)) is None else a.coarser(e, all_, following)
                for fine, own in ((fine_a, own_a), (fine_b, own_b))
            )
    done, dropped = _classed(out, centre, top)
    done.log_size = a.log_size + b.log_size
    done.relative = relative + 4 * MANY_ROUNDINGS
    done.error = (error[0] * size_b + error[1] * size_a + error[0] * error[1] + noise + dropped + UNDERFLOW) * (
        1 + 64 * EPS
    )
    return done


def _both(a: LatticePart | None, b: LatticePart | None) -> LatticePart | None:
    if a is None or b is None:
        return a if b is None else b
    return added(a, b)


def _convolve(out: Law, e: int, x: LatticePart, y: LatticePart) -> float:
    """Put x∗y into class e; return the L1 error of its transforms."""
    rows, others = x[1], y[1]
    count = rows.shape[1] + others.shape[1] - 1
    found = np.zeros((rows.shape[0], count))
    rows = _shifted(found, rows, others)
    others = _shifted(found, others, rows)
    noise = 0.0
    if rows.any() and others.any():
        points = next_fast_len(count, real=True)
        first = rfft(rows, points)
        second = first if others is rows else rfft(others, points)
        found += np.maximum(irfft(first * second, points)[:, :count], 0.0)
        norm = [(np.linalg.norm(z, axis=1), z.sum(axis=1)) for z in (rows, others)]
        crossed = norm[0][0] * norm[1][1] + norm[0][1] * norm[1][0]
        noise = 1.5 * (fft_error(points) + 4 * EPS) * math.sqrt(count) * float(np.max(crossed)) * (1 + 1e-9)
    out.put(e, (x[0] + y[0], found))
    return noise


def _shifted(found: FloatArray, rows: FloatArray, others: FloatArray) -> FloatArray:
    """Add the products of the few large entries of ``rows``, and return the rest of it."""
    places = _peaks(rows[0])
    if not places.size:
        return rows
    for place in places:
        found[:, place : place + others.shape[1]] += rows[:, place, None] * others
    rest = rows.copy()
    rest[:, places] = 0.0
    return rest


def _peaks(row: FloatArray) -> Indices:
    """Places of the few entries that hold most of a row's Euclidean norm."""
    count = min(_PEAKS, row.size)
    places = np.argpartition(row, row.size - count)[-count:]
    if count < row.size and not row[places].max() > _HIGH:
        return places[:0]
    return places[row[places] > _PEAK] if count < row.size else places


def _classed(law: Law, centre: float, top: int) -> tuple[Law, float]:
    """Classes cut to their ranges around the centre, what lies outside moved up; and the mass dropped at the ends."""
    done, todo, dropped = law.like(), law.like(), 0.0
    for e, part in law.parts.items():
        todo.put(e, part)
    while todo.parts:
        e = min(todo.parts)
        start, rows = todo.parts.pop(e)
        mass = rows.max(axis=0)
        first = int(np.searchsorted(np.cumsum(mass), _DROPPED))
        last = mass.size - int(np.searchsorted(np.cumsum(mass[::-1]), _DROPPED))
        dropped += float(mass[:first].sum() + mass[max(last, first) :].sum())
        if last <= first:
            continue
        start, rows = start + first, rows[:, first:last]
        stop = start + rows.shape[1]
        if e >= top and rows.shape[1] <= _MOST_ENTRIES:
            done.put(e, (start, rows))
            continue
        middle = round(centre / law.spacing(e))
        low, high = max(start, middle - law.points // 2), min(stop, middle + law.points // 2)
        following = min(e + RUNG, top) if e < top else e + RUNG
        pieces = [(start, low), (low, high), (high, stop)] if low < high else [(start, stop), (0, 0), (0, 0)]
        for k, (i, j) in enumerate(pieces):
            if i < j:
                piece = (i, rows[:, i - start : j - start])
                if k == 1:
                    done.put(e, piece)
                else:
                    todo.put(following, law.coarser(e, piece, following))
    return done, dropped
