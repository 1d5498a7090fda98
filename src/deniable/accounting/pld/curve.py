"""The curve of a composition of steps, from the multi-scale privacy loss distribution."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS, MOST_EXPONENT
from deniable._kept import Kept
from deniable.accounting.lattices import Law
from deniable.accounting.pld.compose import ComposedLaw, Cuttable, compose, cuttable
from deniable.accounting.pld.read import Above, Below
from deniable.accounting.renyi import LossTradeoff
from deniable.accounting.sizes import MOST, POINTS, WIDE
from deniable.accounting.steps.base import Step, TooSlowError
from deniable.accounting.steps.sampled_gaussian import SubsampledGaussianStep
from deniable.curves import AnyDirection, Charged, Direction, Question, Side, directions

_SKETCHED = 1 << 11  # lattice points of a class for a picture
_MOST_STEPS = 10**9  # more are known from below only, as MOST: fewer tell no more, and rounding takes less


@dataclass(frozen=True)
class MultiScaleTradeoff(LossTradeoff):
    """Brackets from a privacy loss distribution on lattices of many scales.

    Of more than 2 different steps a class has half of ``most`` points, of more than 16 a quarter.
    """

    most: int = POINTS
    method: str = field(default="multi-scale privacy loss distribution", kw_only=True)
    _laws: Kept[tuple[Direction, Side, bool], Above | Below | TooSlowError] = field(
        default_factory=Kept, init=False, repr=False, compare=False
    )

    @cached_property
    def _steps(self) -> tuple[tuple[Step, int], ...]:
        """The steps, each with how often it is made; everything Gaussian is one of rate 1."""
        loss, whole = self.loss, [(1 / math.sqrt(self.loss.gaussian), 1.0, 1.0)] if self.loss.gaussian > 0 else []
        phases = zip(loss.noise.tolist(), loss.rate.tolist(), loss.steps.tolist(), strict=True)
        return *((SubsampledGaussianStep(s, q), round(n)) for s, q, n in (*phases, *whole)), *loss.others

    def _of(self, direction: Direction, side: Side = "upper") -> list[tuple[Cuttable, int]]:
        """Steps in the order of a direction, in pieces."""
        swapped = direction == "add" and not self.symmetric
        return [(cuttable(step.on(side), swapped), count) for step, count in self._steps]

    @property
    def points(self) -> int:
        """Lattice points of a class."""
        many = len(self._steps)
        if all(step.atomic and not step.even for step, _ in self._of("remove")):
            return self.most << Law.rung  # errors do not average out: as if all were a class finer
        return self.most >> ((many > 2) + (many > 16))

    def sketch(self) -> MultiScaleTradeoff:
        """Return the same from fewer points."""
        return self if self.most <= _SKETCHED else replace(self, most=_SKETCHED)

    def _law(self, direction: Direction, side: Side, direct: bool) -> Above | Below:
        def made() -> Above | Below | TooSlowError:
            points = min(self.points, POINTS) if direct else self.points
            if side == "upper" and any(count > _MOST_STEPS for _, count in self._steps):
                return TooSlowError("so many steps that rounding is all that is known")
            parts = [(s, n if n <= _MOST_STEPS else MOST) for s, n in self._of(direction, side)]
            try:
                composed = compose(parts, side, points, direct)
            except TooSlowError as failure:
                return failure
            return Above(composed) if side == "upper" else Below(composed)

        found = self._laws((direction, side, direct), made)
        if isinstance(found, TooSlowError):
            raise found
        return found

    def _read(self, question: Question, at: float, direction: Direction, side: Side) -> tuple[float, ComposedLaw]:
        """The bound and the law that has it: where the charge is much, perhaps the one without transforms."""

        def asked(direct: bool) -> tuple[float, ComposedLaw]:
            law = self._law(direction, side, direct)
            return law.rate(at) if question == "roc" else law.hockey_stick(at), law.composed

        found, law = asked(False)
        charged = law.charged
        if side == "lower":
            charged += law.lost[1] * (found / at if question == "roc" else math.exp(min(at, MOST_EXPONENT)))
        if charged > WIDE * found:
            with suppress(TooSlowError):
                again, other = asked(True)
                if again > found if side == "lower" else again < found:
                    return again, other
        return found, law

    def _brackets(self, question: Question, points: FloatArray, direction: Direction, side: Side) -> FloatArray:
        found = np.full(points.shape, float(side == "upper"))
        with suppress(TooSlowError):
            found[:] = [self._read(question, at, direction, side)[0] for at in points.tolist()]
        return found

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        ends = np.where(log_gamma > 0, self._only(direction, side), 1.0)
        finite = np.isfinite(log_gamma)
        ends[finite] = self._brackets("hockey stick", log_gamma[finite], direction, side)
        return np.clip(ends, 0.0, 1.0)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        bound = np.maximum(fpr, self._only(direction, side))
        inside = (fpr > 0) & (fpr < 1)
        bound[inside] = self._brackets("roc", fpr[inside], direction, side)
        return np.clip(bound, fpr, 1.0)

    def _only(self, direction: Direction, side: Side) -> float:
        """P mass that Q lacks."""
        left = math.fsum(count * math.log1p(-min(step.only, 1 - EPS)) for step, count in self._of(direction))
        return min(-math.expm1(left) * (1 + (64 if side == "upper" else -64) * EPS), 1.0)

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Where the law above, as it stands, puts ε."""
        near = np.full_like(delta, -np.inf)
        for way in directions(direction, self.symmetric):
            law = self._law(way, "upper", direct=False)
            near = np.maximum(near, law.epsilon(delta) if isinstance(law, Above) else near)
        return near, np.maximum(1e-6 * np.abs(near), 1e-9)

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        try:
            _, law = self._read(question, at, direction, "upper")
        except TooSlowError:
            return Charged(f"{self.method}, of fewer steps")
        return Charged(self.method, truncation=law.lost[0], rounding=law.missed)
