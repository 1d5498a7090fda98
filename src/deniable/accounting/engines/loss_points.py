"""One step's law on points, small losses on a lattice and large ones on a ladder, and powers of the small ones.

What is done with them, and why it is sound, is told in :mod:`deniable.accounting.engines.rare_losses`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._search import bisect
from deniable.accounting.steps.convex_order import Atoms, Spread, above, below, mean_of_first, merged
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.gaussian_mixture import Case, GaussianMixtureStep
from deniable.curves import Side

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)
_LEFT, _FINE = 13.0, 0.006  # first outcome u of a step; lengths of cells over the slopes of what is integrated
_MOST_CELLS = 1 << 18
_RARE = 1e-18  # mass of P beyond the last outcome, of all steps
_MOST_LOSS = 300.0
_LARGE, _MOST_CHANCE = 0.01, 0.1  # steps, of all, that are large by chance: aimed at, and at most
_WIDTH = 1.5e-7  # relative, that TPRs should have
_SEEN = 40.0  # spreads of a composed law that are kept, about
_MOST_POINTS = 1 << 15  # of it
_LEAST_POINTS, _MOST_OF_ONE = 16, 1 << 14  # of one step
_WIDER = np.array([1.0, 1.5, 2.0, 3.0])  # spacings tried
_BLOCK = 512  # points, in convolutions
_CUT = 1e-26  # of a law's mass, at either end
_RELATIVE = 1e-11  # errors of pooling up to such a factor of a mass count as relative, others as lost
_FINEST, _WIDEST = 4e-4, 0.02  # spacings of the ladder, in log ρ: where one loss of about 1 decides, and at most
_GRADUAL = 1.25  # and their growth at first
_FEW, _FINER = 16, 2.0  # steps up to which no lattice is made coarser, but this much finer from the first
SLACK = 1 + 1e-9  # of bounds on small masses


@dataclass(frozen=True, eq=False)
class SmallLosses:
    """A measure on c^n·e^{ηj} for j = start, start + 1, …: masses of Q, those of P are e^{value} times that."""

    mass: FloatArray
    start: int
    spacing: float
    steps: int
    log_floor: float  # log c
    error: float  # relative
    shift: float  # of logarithms of ratios
    lost: tuple[float, float] = (0.0, 0.0)  # wrong or missing under P and under Q

    @property
    def value(self) -> FloatArray:
        """Logarithms of the ratios."""
        return self.steps * self.log_floor + self.spacing * (self.start + np.arange(self.mass.size, dtype=np.float64))

    def law(self) -> FiniteLaw:
        """The same as a finite law."""
        value, seen = self.value, self.mass > 0
        shift = self.shift + 8 * EPS * (1 + float(np.max(np.abs(value), initial=0.0)))
        value, mass = value[seen], self.mass[seen]
        return FiniteLaw(value, mass * np.exp(value), mass, self.error + shift, shift, lost=self.lost)

    def times(self, other: SmallLosses) -> SmallLosses:
        """Both, one after the other."""
        mass = np.zeros(self.mass.size + other.mass.size - 1)
        for k in range(0, other.mass.size, _BLOCK):  # sums of sums: fewer terms in each
            part = other.mass[k : k + _BLOCK]
            mass[k : k + self.mass.size + part.size - 1] += np.convolve(self.mass, part)
        error = self.error + other.error + self.error * other.error + (2 + _BLOCK + other.mass.size / _BLOCK) * EPS
        lost = self.lost[0] + other.lost[0], self.lost[1] + other.lost[1]
        steps, start = self.steps + other.steps, self.start + other.start
        shift = self.shift + other.shift
        return replace(self, mass=mass, start=start, steps=steps, error=error, shift=shift, lost=lost).cut()

    def cut(self) -> SmallLosses:
        """Leave out ends that weigh next to nothing in either world."""
        value = self.value
        hit = self.mass * np.exp(value)
        first = int(np.searchsorted(np.cumsum(self.mass + hit), _CUT))
        last = self.mass.size - int(np.searchsorted(np.cumsum((self.mass + hit)[::-1]), _CUT))
        gone = np.r_[0:first, last : self.mass.size]
        lost = self.lost[0] + float(hit[gone].sum()), self.lost[1] + float(self.mass[gone].sum())
        return replace(self, mass=self.mass[first:last], start=self.start + first, lost=lost)

    def coarser(self, side: Side) -> SmallLosses:
        """Twice the spacing: larger or smaller in convex order."""
        start, end = self.start // 2, -((self.start + self.mass.size - 1) // -2)
        nodes = np.expm1(2 * self.spacing * (np.arange(start, end + 1) - start))
        points = np.expm1(self.spacing * (self.start - 2 * start + np.arange(self.mass.size)))
        points[(self.start % 2) :: 2] = nodes[(self.start % 2) : (self.start % 2) + points[(self.start % 2) :: 2].size]
        spread = (above if side == "upper" else below)(Atoms(points, self.mass), nodes)
        doubled = replace(self, start=start, spacing=2 * self.spacing, shift=self.shift + 16 * EPS)
        return _known(doubled, spread).cut()


def pooling_errors(spread: Spread, ratio: FloatArray) -> tuple[float, tuple[float, float]]:
    """A relative error that stands for errors of pooling, and masses under P and Q of those that none stands for."""
    wrong = spread.error > 0
    small = wrong & (spread.error <= _RELATIVE * spread.mass)
    relative = float(np.max(spread.error[small] / spread.mass[small], initial=0.0))
    error = spread.error[wrong & ~small] * SLACK
    return relative * SLACK, (float(error @ ratio[wrong & ~small]), float(error.sum()))


def _known(points: SmallLosses, spread: Spread) -> SmallLosses:
    """Masses on these points, errors of pooling among the relative ones, or lost."""
    found = replace(points, mass=spread.mass)
    relative, lost = pooling_errors(spread, np.exp(found.value))
    lost = points.lost[0] + lost[0], points.lost[1] + lost[1]
    return replace(found, error=points.error + 16 * EPS + relative, lost=lost)


@dataclass(frozen=True, eq=False)
class StepPoints:
    """One step on points: small ones on a lattice, large ones as a finite law, and what gives the person away."""

    small: SmallLosses
    large: FiniteLaw


@dataclass(frozen=True, eq=False)
class PointPlan:
    """Where the points of one step lie."""

    step: GaussianMixtureStep
    count: int
    log_floor: float
    spacing: float  # of one step's lattice
    levels: int  # how often it is doubled
    points: int  # of one step's lattice
    ladder: FloatArray  # ρ = S − c of large points, above the lattice's last
    last: float  # outcome of a step

    @property
    def error(self) -> float:
        """Relative error of one step's masses: e^{−u²/2} at a rounded u, three nodes a cell, shares of a split."""
        return 4 * EPS * (32 + self.last**2) + 2 * self.step.error

    @property
    def shift(self) -> float:
        """Error of one step's log-ratios: exponents j·u/σ − j²/(2σ²) at a rounded u, weights, and points."""
        steepest = max(case.records[-1] for case in self.step.cases) / self.step.noise
        return 4 * EPS * (32 + steepest * (self.last + steepest)) + 2 * self.step.error

    @classmethod
    def of(cls, step: GaussianMixtureStep, count: int) -> PointPlan | None:
        """Choose them; only the width of brackets depends on it. None if they would be too many."""
        try:
            atoms = _atoms(step, count)[0]
        except OverflowError:
            return None
        floor = math.exp(step.lowest)
        chance = np.cumsum(atoms.mass[::-1])[::-1]
        place = int(np.searchsorted(-chance, -_LARGE / count))
        small = Atoms(atoms.point[:place], atoms.mass[:place])
        mean = float(small.mass @ small.point) / float(small.mass.sum())
        spread = math.sqrt(count * float(small.mass @ (small.point - mean) ** 2))
        levels = (count.bit_length() - 1) // 2 if count > _FEW else 0
        share = math.sqrt(0.7 * _WIDTH / (spread * (levels + 2)))
        share = min(max(share, _SEEN / _MOST_POINTS), _SEEN / 1000)
        finest = share * spread / (2**levels if levels else _FINER * math.sqrt(count))
        for spacing in (finest * _WIDER).tolist():
            doubled = min(levels, math.floor(math.log2(spread / math.sqrt(count) / spacing)))  # one step is not lost
            points = min(math.ceil(math.log1p(float(atoms.point[place]) / floor) / spacing), _MOST_OF_ONE)
            beyond = int(np.searchsorted(atoms.point, floor * math.expm1(spacing * points)))
            if count * float(chance[min(beyond, chance.size - 1)]) <= _MOST_CHANCE:
                break
        else:
            return None
        size = min(_SEEN * spread / spacing / 2.0**doubled, points * float(count)) if doubled >= 0 else math.inf
        if points < _LEAST_POINTS or size > (_MOST_POINTS if count > _FEW else 4 * _MOST_POINTS):
            return None
        top, last = float(atoms.point[-1]), max(_LEFT, *(_last(step, case, count) for case in step.cases))
        ladder = [floor * math.expm1(spacing * points)]
        widest = _WIDEST / max(step.noise, 1.0)
        gap = ladder[-1] - floor * math.expm1(spacing * (points - 1))
        while ladder[-1] <= top:
            size = math.log1p(ladder[-1])
            finest = _FINEST / max(step.noise, 1.0)
            growth = min(widest, finest * math.exp(size / 2) / math.sqrt(size))
            gap = min(_GRADUAL * gap, ladder[-1] * math.expm1(growth))
            ladder.append(ladder[-1] + gap)
        return cls(step, count, step.lowest, spacing, doubled, points, np.array(ladder[1:]), last)

    def one(self, side: Side) -> StepPoints:
        """One step on these points, from above or from below."""
        atoms, beyond, hidden = _atoms(self.step, self.count, side)
        floor = math.exp(self.log_floor)
        lattice = floor * np.expm1(self.spacing * np.arange(self.points + 1))
        spread = (above if side == "upper" else below)(atoms, np.concatenate([lattice, self.ladder]))
        size = lattice.size
        shape = SmallLosses(np.zeros(size), 0, self.spacing, 1, self.log_floor, self.error, self.shift)
        small = _known(shape, Spread(spread.mass[:size], spread.error[:size])).cut()
        ratio, mass, error = np.log(floor + self.ladder), spread.mass[size:], spread.error[size:]
        seen, (relative, lost) = mass > 0, pooling_errors(Spread(mass, error), floor + self.ladder)
        lost = lost[0] + hidden[0], lost[1] + hidden[1]
        ratio, mass = ratio[seen], mass[seen]
        large = FiniteLaw(ratio, mass * np.exp(ratio), mass, self.error + relative, self.shift, (beyond, 0.0), lost)
        return StepPoints(small, large)


def _atoms(step: GaussianMixtureStep, count: int, side: Side | None = None) -> tuple[Atoms, float, tuple[float, float]]:
    """The law of ρ = S − c under Q on ends of cells of u; mass of P beyond the last, and of P and Q left out.

    Without a side, on points inside the cells: a guide.
    """
    floor = math.exp(step.lowest)
    found, beyond, hidden = [], 0.0, [0.0, 0.0]
    for case in step.cases:
        last = _last(step, case, count)
        shift, weight = np.array(case.records) / step.noise, np.array(case.weight)
        steepest = float(shift[(weight * np.exp(np.minimum(shift * last - shift**2 / 2, 600.0))) > 1e-25].max())
        cells = math.ceil((last + _LEFT) * (last + steepest) / _FINE)
        if cells > _MOST_CELLS or float(step.losses_of(case, np.array([last]))[0]) > _MOST_LOSS:
            raise OverflowError("too many cells")
        edges = np.linspace(-_LEFT, last, cells + 1)
        half = (last + _LEFT) / cells / 2
        u = np.add.outer((edges[1:] + edges[:-1]) / 2, half * _NODES).ravel()
        mass = np.exp(-(u**2) / 2) * np.tile(_WEIGHTS, cells) * (case.probability * half / math.sqrt(2 * math.pi))
        excess = case.weight[0] - floor if len(step.cases) > 1 else 0.0
        inner, ends = (_rho(shift, weight, x) + max(excess, 0.0) for x in (u, edges))
        beyond += case.probability * float(weight @ ndtr(shift - last))
        hidden[0] += case.probability * (case.lost + float(weight @ ndtr(-_LEFT - shift)))
        hidden[1] += case.probability * (case.lost + float(ndtr(-_LEFT) + ndtr(-last)))
        if side is None:
            found.append(Atoms(inner, mass))
        elif side == "upper":
            found.append(Atoms(ends, above(Atoms(inner, mass), ends).mass))
        else:
            atoms = Atoms(inner, mass)  # of which the first two cells are merged
            points = np.concatenate([[mean_of_first(atoms, 6)], ends[2:]])
            spread = below(merged(atoms, 6, points[0]), points)
            hidden[0] += float(spread.error @ (floor + points))
            hidden[1] += float(spread.error.sum())
            found.append(Atoms(points, spread.mass).positive())
    return Atoms.joined(found), beyond * (1 + 1e-9), (hidden[0] * (1 + 1e-9), hidden[1] * (1 + 1e-9))


def _rho(shift: FloatArray, weight: FloatArray, u: FloatArray) -> FloatArray:
    """Σ_{j ≥ 1} w_j·e^{j·u/σ − j²/(2σ²)}: what the ratio exceeds its infimum by, without cancellation."""
    total = np.zeros_like(u)
    with np.errstate(under="ignore"):
        for s, w in zip(shift[1:], weight[1:], strict=True):
            total += w * np.exp(s * u - s**2 / 2)
    return total


def _last(step: GaussianMixtureStep, case: Case, count: int) -> float:
    """The outcome beyond which P has next to no mass in all steps."""
    shift, weight = np.array(case.records) / step.noise, np.array(case.weight)
    good, _ = bisect(lambda u: weight @ ndtr(shift - float(u)) <= _RARE / count, 50.0 + shift[-1], 0.0, halvings=30)
    return max(float(good), 10.0)


def small_powers(one: SmallLosses, plan: PointPlan, most: int, side: Side) -> Iterator[SmallLosses]:
    """Laws of T, T − 1, …, T − ``most`` small steps."""
    count = plan.count
    if count <= _FEW:
        powers = [replace(one, mass=np.ones(1), start=0, steps=0, error=0.0, shift=0.0, lost=(0.0, 0.0))]
        for _ in range(count):
            powers.append(powers[-1].times(one))
        yield from powers[count : count - most - 1 : -1] if most < count else powers[::-1]
        return
    whole, _ = _power(one, count, plan.levels, side)
    fewest, coarse = _power(one, count - most, plan.levels, side)
    found = [fewest]
    for _ in range(most - 1):
        found.append(found[-1].times(coarse))
    yield whole
    yield from reversed(found)


def _power(one: SmallLosses, count: int, levels: int, side: Side) -> tuple[SmallLosses, SmallLosses]:
    """That many steps, by squaring, and one step on the same lattice: coarser after every second squaring."""
    law = one
    for k, digit in enumerate(bin(count)[3:], start=1):
        law = law.times(law)
        if digit == "1":
            law = law.times(one)
        if k % 2 == 0 and k // 2 <= levels:
            law, one = law.coarser(side), one.coarser(side)
    return law, one
