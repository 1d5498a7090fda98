"""The interface of one step: two laws, P (the record is in) and Q (it is out), known through the loss L = log dP/dQ.

A mechanism is one subclass of :class:`Step` with all its formulas. What it must give are its outcomes, as lines and
atoms with their masses under both laws; that alone makes every composition computable with certified bounds. Everything
else is optional and makes it sharper.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray, InputError, integer
from deniable._floats import EPS
from deniable.accounting.sizes import FAR, POINTS, UNDERFLOW
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.outcomes import ListedOutcomes, Piece
from deniable.accounting.steps.ratios import sampled_losses
from deniable.curves import Direction, Side, Tradeoff, randomized_response_divergence
from deniable.mechanisms import Mechanism, Rate


class TooSlowError(ArithmeticError):
    """What is asked converges too slowly here; another line or engine must serve, or else the bound is trivial."""


@dataclass(frozen=True)
class Step(Mechanism, ABC):
    """One step of a mechanism: a pair of laws that holds for every record and every rest of the data.

    A subclass is a frozen dataclass: steps that compare equal are merged and counted. It is a mechanism itself:
    ``dn.tradeoff(step)``, ``step + dn.GaussianDP(1.0)`` and ``step.times(1000)`` work. The step may depend on what
    earlier steps released, as long as its pair is at least as easy to tell apart as every one that might run.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> from dataclasses import dataclass
    >>> from deniable.accounting.steps import ListedOutcomes, Step
    >>> @dataclass(frozen=True)
    ... class Coin(Step):                                           # tells the truth with probability 0.6
    ...     lowest = property(lambda self: float(np.log(0.4 / 0.6)))
    ...     highest = property(lambda self: float(np.log(0.6 / 0.4)))
    ...     def pieces(self):
    ...         p = np.array([0.4, 0.6])
    ...         return (ListedOutcomes(np.log(p / p[::-1]), p, p[::-1], shift=1e-15, relative=1e-15),)
    >>> round(dn.tradeoff(Coin().times(1)).advantage(), 6)
    0.2
    """

    @property
    def lowest(self) -> float:
        """Lower bound of the loss where it is finite; −∞ if there is none."""
        return -math.inf

    @property
    def highest(self) -> float:
        """Upper bound of the loss where it is finite; ∞ if there is none."""
        return math.inf

    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]:
        """Return lines and atoms of outcomes: all of both laws but :attr:`only` and :attr:`lost`."""

    @property
    def lost(self) -> tuple[float, float]:
        """Bounds on the mass of P, and of Q, that both can produce and that pieces lack, or have too much."""
        return 0.0, 0.0

    @property
    def misplaced(self) -> tuple[float, float]:
        """Bounds on the mass of P that pieces have too much, and of Q that outcomes of theirs lack: of :attr:`lost`."""
        return self.lost

    def on(self, side: Side) -> Step:
        """Return a step whose pair is at least ("lower": at most) as easy to tell apart: itself, if it is known."""
        return self

    @property
    def even(self) -> bool:
        """Whether there is nothing but atoms that are a whole number of :attr:`pitch` apart."""
        return False

    @property
    def only(self) -> tuple[float, float]:
        """Mass of outcomes that only P can produce, and of those that only Q can: their losses are ∞ and −∞."""
        return 0.0, 0.0

    @property
    def attained(self) -> bool:
        """Whether ``lowest`` and ``highest`` are the essential infimum and supremum, up to rounding."""
        return False

    @property
    def pitch(self) -> float:
        """Distance of which all atoms are a whole number apart, 0 if there is none: lattices are laid to fit."""
        return 0.0

    def support(self, count: int) -> FiniteLaw | None:
        """Return the exact law of ``count`` steps where there are few outcomes: they are then composed one by one.

        Raises
        ------
        MemoryError
            If they are many.
        """
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
        """Whether :meth:`divergence` is known: of bounded losses it is."""
        return math.isfinite(self.highest - self.lowest)

    def divergence(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Return upper bounds on the Rényi divergences of a step at orders α above 1; inf where none is known.

        Those of the pair in which lines are split onto edges: it is easier to tell apart. Where outcomes are lost,
        those of the worst pair with such losses.
        """
        if not self.bounds_divergence or self.only[direction == "add"] > 0:
            return np.full(order.shape, np.inf)
        largest, apart = max(self.highest, -self.lowest, 0.0), self.only[direction == "remove"]
        if any(self.lost):
            return np.full(order.shape, largest) if apart else randomized_response_divergence(largest, order)
        pieces = [piece if direction == "remove" else piece.swapped() for piece in self.pieces()]
        loss, p = (np.concatenate(x) for x in zip(*(piece.above(POINTS) for piece in pieces), strict=True))
        log_p, apart = np.log(np.maximum(p, UNDERFLOW)), apart * (1 + 8 * EPS)  # where r = 0, g is a − 1
        found = [
            log_moment(loss, log_p, a, (a - 1) * apart) / (a - 1)
            if a < math.inf
            else max(float(loss.max()), 0.0) or largest
            for a in order.tolist()
        ]
        return np.array(found) * (1 + 8 * EPS)

    def sampled(self, rate: float) -> Step:
        """Return this step made with probability ``rate`` for each record, by its own coin, else without it."""
        return SampledStep(self, rate)

    def times(self, count: int) -> Repeated:
        """Return ``count`` steps of this kind, one after the other."""
        return Repeated(self, count)


def compared_with_out(step: Step) -> None:
    """Refuse steps whose second world does not say what is released without the record."""
    if "add-remove" not in (step.adjacency, *step.also):
        raise InputError(
            f"step must compare a record that is in with one that is out, got adjacency {step.adjacency!r}; "
            "sample and allocate steps of mechanisms that add or remove a record"
        )


@dataclass(frozen=True)
class SampledStep(Step):
    """``step`` made with the record with probability q, its ``rate``, else as if it were out: Poisson sampling.

    Q against (1 − q)·Q + q·P: the loss L becomes log(1 − q + q·e^L), what only Q can produce has log(1 − q), and of
    what only P can produce a share q is left. *Proof that it dominates.* What turns the pair into that of any data set
    turns the sampled pair into the sampled one, also where other records are sampled and told (Blackwell 1953). ∎
    """

    step: Step
    rate: Rate

    def _check_together(self) -> None:
        compared_with_out(self.step)

    @property
    def lowest(self) -> float:
        return self._end(-math.inf if self.step.only[1] > 0 else self.step.lowest)

    @property
    def highest(self) -> float:
        return self._end(self.step.highest)

    def _end(self, loss: float) -> float:
        return float(sampled_losses(np.array(loss), self.rate)) if math.isfinite(loss) or loss < 0 else loss

    @property
    def attained(self) -> bool:
        return self.step.attained

    @property
    def only(self) -> tuple[float, float]:
        inside, out = self.step.only
        return self.rate * inside, out if self.rate == 1 else 0.0

    @property
    def lost(self) -> tuple[float, float]:
        p, q = self.step.lost
        return p + q, q

    def on(self, side: Side) -> SampledStep:
        return SampledStep(self.step.on(side), self.rate)

    def pieces(self) -> tuple[Piece, ...]:
        found, (_, out) = tuple(piece.sampled(self.rate) for piece in self.step.pieces()), self.step.only
        if not out or self.rate == 1:
            return found
        loss, q = np.array([self.lowest]), np.array([out])
        return *found, ListedOutcomes(loss, (1 - self.rate) * q, q, 8 * EPS * (1 - self.lowest), 8 * EPS)


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
    far = u > FAR
    x, v = np.where(far, 0.0, loss), np.where(far, 0.0, u)
    with np.errstate(over="ignore", under="ignore"):
        close = np.exp(log_p) @ (np.expm1(v) + (c - 1) * np.expm1(-x) + 8 * EPS * np.abs(v) * np.exp(np.maximum(v, -x)))
        exponent = np.where(far, u + log_p, -np.inf)
        top = max(float(exponent.max(initial=-np.inf)), 0.0)
        total = (max(float(close), 0.0) + outside) * math.exp(-top) + float(np.exp(exponent - top).sum())
    # masses are known to a share, of which some thousand are added; far out g is at most r^c + |c|
    log_total = math.log(max(total, UNDERFLOW)) + top + 1e-11 * (1 + abs(c)) + top * 8 * EPS
    return float(np.logaddexp(0.0, log_total)) if log_total > 0 else math.log1p(math.exp(log_total))
