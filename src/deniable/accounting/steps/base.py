"""The interface of one step: two laws, P (the record is in) and Q (it is out), known through the loss L = log dP/dQ.

A mechanism is one subclass of :class:`Step` with all its formulas. What it must give are the masses of both laws in
cells of the loss; that alone makes every composition computable with certified bounds. Everything else is optional and
makes it faster or sharper.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deniable._check import FloatArray, InputError, integer
from deniable._floats import EPS, MOST_EXPONENT
from deniable._kept import Kept
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.outcomes import Piece
from deniable.curves import Direction, Side, Tradeoff
from deniable.mechanisms import Mechanism

_FAR = 40.0  # nats above which r^c stands for g
_EDGES = 1 << 13  # of lines, where divergences are bounded
_COARSE = 4096  # cells of the law from which guides are taken
_GUIDED = 4.0  # tilts around a multiple of twice this are served by one of them


class TooSlowError(ArithmeticError):
    """What is asked converges too slowly here; another line or engine must serve, or else the bound is trivial."""


MOST_CELLS = 3 << 20  # of one step: a handful of arrays of 25 MB
_LEAST_MASS = 1e-290  # the logarithm of less may have lost digits


class LossCells(NamedTuple):
    """Masses of one step's two laws in consecutive cells of the loss, [first + iη, first + (i + 1)η).

    Attributes
    ----------
    first
        Lower edge of the first cell.
    p, q
        Mass of every cell under P and under Q.
    centre
        log(p/q) minus the lower edge, in [0, η]: 0 for an atom on the edge. Of empty cells it does not matter.
    relative_error
        Every mass above an edge, under either law, is known up to this factor.
    centre_error
        Every ``centre``, and every edge, is known up to this.
    lost
        Bounds on the mass of P, and of Q, with a finite loss that is in no cell.
    """

    first: float
    p: FloatArray
    q: FloatArray
    centre: FloatArray
    relative_error: float = 64 * EPS
    centre_error: float = 64 * EPS
    lost: tuple[float, float] = (0.0, 0.0)

    def swapped(self, spacing: float) -> LossCells:
        """Return the same cells with the two laws exchanged: losses change sign."""
        top = self.first + spacing * self.p.size
        return self._replace(
            first=-top,
            p=self.q[::-1],
            q=self.p[::-1],
            centre=spacing - self.centre[::-1],
            centre_error=self.centre_error + 4 * EPS * (abs(self.first) + abs(top)),
            lost=self.lost[::-1],
        )


@dataclass(frozen=True)
class Step(Mechanism, ABC):
    """One step of a mechanism: a pair of laws that holds for every record and every rest of the data.

    A subclass is a frozen dataclass: steps that compare equal are merged and counted. It is a mechanism itself:
    ``dn.tradeoff(step)``, ``step + dn.GaussianDP(1.0)`` and ``step.times(1000)`` work. The step may depend on what
    earlier steps released, as long as its pair is at least as easy to tell apart as every one that might run.
    """

    def cells(self, spacing: float, tilt: float) -> LossCells:
        """Return the masses of both laws in cells of the given spacing.

        Everything that is rounded, truncated or left out is charged in the cells' own fields. ``tilt`` says how far
        out mass matters: the law of the loss under Q, multiplied by e^{tilt·L}, is what is going to be summed.
        """
        raise NotImplementedError

    @property
    @abstractmethod
    def lowest(self) -> float:
        """Lower bound of the loss where it is finite; −∞ if there is none."""

    @property
    @abstractmethod
    def highest(self) -> float:
        """Upper bound of the loss where it is finite; ∞ if there is none."""

    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]:
        """Return lines and atoms of outcomes: all of both laws but :attr:`only` and :attr:`lost`."""

    @property
    def lost(self) -> tuple[float, float]:
        """Bounds on the mass of P, and of Q, that both can produce and that pieces lack, or have too much."""
        return 0.0, 0.0

    def misplaced(self, tilt: float, direction: Direction) -> float:
        """Bound the L1 error of P masses times e^{tilt·L}; of Q masses times e^{−tilt·L} for "remove"."""
        return 0.0

    def on(self, side: Side) -> Step:
        """Return a step whose pair is at least ("lower": at most) as easy to tell apart: itself, if it is known."""
        return self

    @property
    def even(self) -> bool:
        """Whether all losses are a whole number of :attr:`pitch` apart."""
        return self.lattice is not None

    @property
    def only(self) -> tuple[float, float]:
        """Mass of outcomes that only P can produce, and of those that only Q can: their losses are ∞ and −∞."""
        return 0.0, 0.0

    @property
    def attained(self) -> bool:
        """Whether ``lowest`` and ``highest`` are the essential infimum and supremum, up to rounding."""
        return False

    @property
    def lattice(self) -> tuple[float, float] | None:
        """Origin and spacing of a lattice that holds every loss, if there is one: no cell then needs to be split.

        ``cells`` asked for that spacing, or for a whole fraction of it, must put losses on lower edges.
        """
        return None

    @property
    def pitch(self) -> float:
        """Distance of which all atoms are a whole number apart, 0 if there is none: cells are laid to fit.

        ``cells`` asked for a whole fraction of it must put the atoms on lower edges.
        """
        return 0.0 if self.lattice is None else self.lattice[1]

    def range(self, tilt: float) -> tuple[float, float]:
        """Return losses between which the law tilted by e^{tilt·L} has all but 1e-17 of its mass."""
        low, high = self.lowest, self.highest
        if math.isinf(low) or math.isinf(high):
            raise InputError(
                f"{type(self).__name__}.range must be defined, because its losses are unbounded (lowest {low:g}, "
                f"highest {high:g}): return the losses between which the law tilted by e^(tilt·L) has all but 1e-17 "
                "of its mass"
            )
        return low, high

    def support(self) -> FiniteLaw | None:
        """Return the exact law where there are few outcomes: a few steps are then composed outcome by outcome."""
        return None

    @property
    def symmetric(self) -> bool:
        """Whether −L under P has the law of L under Q: unless it is said, nothing is made of it."""
        return False

    def one_step(self) -> Tradeoff | None:
        """Return the trade-off of this step alone, where it has a closed form."""
        return None

    @property
    def bounds_divergence(self) -> bool:
        """Whether :meth:`divergence` is known: of outcomes that are all on pieces, with bounded losses, it is."""
        return not any(self.lost) and not any(self.only) and math.isfinite(self.highest - self.lowest)

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Return upper bounds on the Rényi divergences of a step at orders α above 1; inf where none is known.

        Those of the pair in which lines are split onto edges: it is easier to tell apart.
        """
        if not self.bounds_divergence:
            return np.full(order.shape, np.inf)
        pieces = [piece if direction == "add" else piece.swapped() for piece in self.pieces()]
        loss, p = (np.concatenate(x) for x in zip(*(piece.above(_EDGES) for piece in pieces), strict=True))
        found = [
            log_moment(loss, np.log(np.maximum(p, 1e-300)), a) / (a - 1) if a < math.inf else float(loss.max())
            for a in order.tolist()
        ]
        return np.array(found) * (1 + 8 * EPS)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return about K(c), K′(c) and K″(c), K(c) = log E_Q e^{cL}: a guide to where sums are taken, never a bound."""
        middle = 2 * _GUIDED * round(c / (2 * _GUIDED))
        value, log_mass = self._guides(middle, lambda: self._coarse_law(middle))
        return tilted_moments(value, log_mass, c)

    def log_mgf(self, points: FloatArray) -> FloatArray:
        """Return about K at several points."""
        return np.array([self.cumulants(float(point))[0] for point in points], dtype=np.float64)

    def times(self, count: int) -> Repeated:
        """Return ``count`` steps of this kind, one after the other."""
        return Repeated(self, count)

    @cached_property
    def _guides(self) -> Kept[float, tuple[FloatArray, FloatArray]]:
        return Kept()

    def _coarse_law(self, middle: float) -> tuple[FloatArray, FloatArray]:
        """Losses of coarse cells and their log masses under "out", for tilts up to ``_GUIDED`` from the middle."""
        low, high = self.range(middle - _GUIDED)[0], self.range(middle + _GUIDED)[1]
        spacing = max((high - low) / _COARSE, 1e-300)
        cells = self.cells(spacing, middle)
        value: FloatArray = cells.first + spacing * np.arange(cells.q.size, dtype=np.float64) + cells.centre
        seen = cells.q > 0
        return value[seen], np.asarray(np.log(cells.q[seen]))


@dataclass(frozen=True)
class Repeated(Mechanism):
    """The same step ``count`` times, adaptively: made by :meth:`Step.times`."""

    step: Step
    count: int
    adjacency: str = field(init=False, default="add-remove")

    def __post_init__(self) -> None:
        if not isinstance(self.step, Step):
            raise InputError(f"step must be a Step, got {self.step!r}")
        object.__setattr__(self, "count", integer("count", self.count, at_least=1))
        object.__setattr__(self, "adjacency", self.step.adjacency)


def log_moment(loss: FloatArray, log_p: FloatArray, c: float, outside: float = 0.0) -> float:
    """Return an upper bound on log E r^c under Q, c > 1 or c < 0, for atoms of P; ``outside`` is to be added to E r^c.

    It exceeds 1 by the mean of g = r^c − 1 − c·(r − 1) ≥ 0, and g under Q is e^{(c − 1)L} − 1 + (c − 1)·(e^{−L} − 1)
    under P.
    """
    u = (c - 1) * loss
    far = u > _FAR
    x, v = np.where(far, 0.0, loss), np.where(far, 0.0, u)
    with np.errstate(over="ignore", under="ignore"):
        close = np.exp(log_p) @ (np.expm1(v) + (c - 1) * np.expm1(-x) + 8 * EPS * np.abs(v) * np.exp(np.maximum(v, -x)))
        exponent = np.where(far, u + log_p, -np.inf)
        top = max(float(exponent.max(initial=-np.inf)), 0.0)
        total = (max(float(close), 0.0) + outside) * math.exp(-top) + float(np.exp(exponent - top).sum())
    # masses are known to a share, of which some thousand are added; far out g is at most r^c + |c|
    log_total = math.log(max(total, 1e-300)) + top + 1e-11 * (1 + abs(c)) + top * 8 * EPS
    return float(np.logaddexp(0.0, log_total)) if log_total > 0 else math.log1p(math.exp(log_total))


def tilted_moments(value: FloatArray, log_mass: FloatArray, c: float) -> tuple[float, float, float]:
    """Logarithm of the total, mean and variance of atoms with masses e^{log_mass}, tilted by e^{c·value}."""
    exponent = log_mass + c * value
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    total = float(weight.sum())
    mean = float(weight @ value) / total
    return top + math.log(total), mean, float(weight @ (value - mean) ** 2) / total


def atoms(
    log_ratio: FloatArray,
    p: FloatArray,
    q: FloatArray,
    spacing: float,
    *,
    lattice: tuple[float, float] | None = None,
    shift: float | None = None,
    **charged: float | tuple[float, float],
) -> LossCells:
    """Return cells of finitely many outcomes.

    Parameters
    ----------
    log_ratio, p, q
        log P/Q, and the mass under P and under Q, of every outcome, in any order.
    spacing
        Length of the cells.
    lattice
        Origin and spacing of a lattice on which all log-ratios lie, up to rounding: if its spacing is a multiple of
        ``spacing``, every outcome comes to lie on a lower edge.
    shift
        Bound on the error of log-ratios; by default a few roundings.
    charged
        Other fields of :class:`LossCells`.
    """
    largest = float(np.max(np.abs(log_ratio), initial=0.0))
    shift = 8 * EPS * (1 + largest) if shift is None else shift
    low = float(np.min(log_ratio))
    on_lattice = lattice is not None and divides(spacing, lattice[1])
    if lattice is not None and on_lattice:
        first = lattice[0] + lattice[1] * round((low - lattice[0]) / lattice[1])
        place = np.rint((log_ratio - first) / spacing).astype(np.intp)
        rise = np.zeros_like(log_ratio)
    else:
        first = low
        place = np.floor((log_ratio - first) / spacing).astype(np.intp)
        rise = np.clip(log_ratio - (first + spacing * place), 0.0, spacing)
    size = int(place.max()) + 1
    whole, inside = np.bincount(place, q, size), np.bincount(place, p, size)
    above = np.bincount(place, q * np.expm1(rise), size)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.where(whole > 0, np.log1p(above / whole), 0.0)
    error = shift + 8 * EPS * (1 + largest)
    fields: dict[str, object] = {"relative_error": 64 * EPS, "centre_error": error, **charged}
    return LossCells(first, inside, whole, np.clip(centre, 0.0, spacing), **fields)  # type: ignore[arg-type]


def joined(one: LossCells, other: LossCells, spacing: float) -> LossCells:
    """Return the sum of two sets of cells whose first edges lie a whole number of spacings apart."""
    first = min(one.first, other.first)
    starts = [round((cells.first - first) / spacing) for cells in (one, other)]
    size = max(start + cells.q.size for start, cells in zip(starts, (one, other), strict=True))
    p, q, rise = np.zeros(size), np.zeros(size), np.zeros(size)
    for start, cells in zip(starts, (one, other), strict=True):
        part = slice(start, start + cells.q.size)
        p[part] += cells.p
        q[part] += cells.q
        rise[part] += cells.q * np.expm1(cells.centre)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.where(q > 0, np.log1p(rise / q), 0.0)
    return LossCells(
        first,
        p,
        q,
        np.clip(centre, 0.0, spacing),
        max(one.relative_error, other.relative_error) + 4 * EPS,
        max(one.centre_error, other.centre_error) + 8 * EPS * (1 + abs(first) + spacing * size),
        (one.lost[0] + other.lost[0], one.lost[1] + other.lost[1]),
    )


def upper_share(centre: FloatArray, spacing: float) -> FloatArray:
    """Share of a cell's mass under Q that goes to its upper end, so that either law keeps its mass.

    Raises
    ------
    TooSlowError
        If that share of a cell is below the least double, though not that of P.
    """
    if not spacing < MOST_EXPONENT:
        raise TooSlowError("cells are too long")
    return np.asarray(np.exp(centre - spacing) * (np.expm1(-centre) / math.expm1(-spacing)))


def hidden_mass(p: FloatArray, q: FloatArray, spacing: float) -> float:
    """Mass of P in cells of which a share of Q's mass may be below all doubles: laws of Q's masses do not have it."""
    return float(p[q * math.exp(-spacing) < _LEAST_MASS].sum()) * (1 + p.size * EPS)


def divides(spacing: float, multiple: float) -> bool:
    """Whether one spacing is a whole number of times another, up to rounding."""
    times = multiple / spacing
    return times > 0.5 and abs(times - round(times)) <= 16 * EPS * times
