"""A bracket and where it comes from: which engine supplied either side, and what it charged for its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from deniable._check import FloatArray, InputError, number
from deniable._notebook import Textual
from deniable._shown import shown
from deniable.curves.safe import AnyDirection, Assumptions, Direction, Side, directions

if TYPE_CHECKING:
    from deniable.curves.base import Tradeoff

Question = Literal["hockey stick", "roc"]
_LEAST = 1e-300  # false positive rates below are answered as this one


class Charged(NamedTuple):
    """Who supplied a bound and what was charged for errors on its upper side, in units of the answer.

    ``exact`` says that whatever else separates the two sides is rounding: a closed form.
    """

    engine: str
    lower_engine: str = ""  # empty: the same
    aliasing: float = 0.0
    truncation: float = 0.0
    rounding: float = 0.0
    exact: bool = False

    def with_lower(self, other: Charged) -> Charged:
        """Return the same with who supplies the lower bound; what parts two engines is more than rounding."""
        lower = other.lower_engine or other.engine
        return self._replace(lower_engine=lower, exact=self.exact and lower == self.engine)

    def plus(self, other: Charged) -> Charged:
        """Return the same with what another computation charged on top."""
        return self._replace(
            aliasing=self.aliasing + other.aliasing,
            truncation=self.truncation + other.truncation,
            rounding=self.rounding + other.rounding,
        )

    def scaled(self, factor: float, note: str = "") -> Charged:
        """Return the same with charges multiplied by a factor and a note added to the engines."""
        return self._replace(
            engine=self.engine + note,
            lower_engine=self.lower_engine and self.lower_engine + note,
            aliasing=factor * self.aliasing,
            truncation=factor * self.truncation,
            rounding=factor * self.rounding,
        )


@dataclass(frozen=True)
class Answer(Textual):
    """What a curve knows at one point: made by :meth:`deniable.curves.Tradeoff.explain`.

    The charges are absolute amounts in units of the answer. What was computed lies between the two sides: the upper
    bound is at most its value plus the four charges, the lower one at least its value less the four, or what is known
    without computing (a probability is at least 0).

    Attributes
    ----------
    question
        What was asked, in words.
    low, high
        The bounds: equal to what the methods of the curve return on either side.
    engine, lower_engine
        Which computation supplied the upper and the lower bound.
    aliasing
        Charged for sampling a transform: copies of the law that the trapezoid rule or a Fourier transform adds.
    truncation
        Charged for what was left out: integrands beyond the last node, outcomes too rare to be kept.
    rounding
        Charged for floating-point arithmetic.
    other
        What else separates the two sides: cells of a grid, interpolation, sampling, a bound that no attack attains, or
        errors that the engine does not tell apart.
    method
        Who answered, in words: the engine, and the one from below if it is another.
    assumptions, confidence
        Those of the curve.

    Examples
    --------
    >>> import deniable as dn
    >>> t = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 5000))
    >>> answer = t.explain(fpr=1e-5)
    >>> answer.engine, answer.low <= answer.high
    ('transform inversion', True)
    """

    question: str
    low: float
    high: float
    engine: str
    lower_engine: str
    aliasing: float
    truncation: float
    rounding: float
    other: float
    method: str
    assumptions: Assumptions
    confidence: float

    @property
    def width(self) -> float:
        """Distance between the two sides."""
        return self.high - self.low

    def _text(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the answer as lines of text."""
        charges = f"aliasing {self.aliasing:.2g}, truncation {self.truncation:.2g}, rounding {self.rounding:.2g}"
        return [
            f"{self.question}: between {shown(self.low, 'number', 'lower', 10)} and "
            f"{shown(self.high, 'number', 'upper', 10)}",
            f"  answered by: {self.method}",
            f"  charged: {charges}, other {self.other:.2g}",
        ]


def explained(curve: Tradeoff, fpr: float | None, epsilon: float | None, direction: AnyDirection | None) -> Answer:
    """Return what a curve knows at one point and how: see :meth:`deniable.curves.Tradeoff.explain`."""
    if fpr is not None and epsilon is not None:
        raise InputError("explain needs one of fpr and epsilon, or none of them for the advantage, got both")
    if direction is not None and epsilon is None:
        raise InputError("direction goes with epsilon; for the ROC with the worlds exchanged use inverse()")
    if fpr is not None:
        at = number("fpr", fpr, at_least=0.0, at_most=1.0, hint="it is a rate, not a percentage")
        found = curve.charges("roc", max(at, _LEAST), "remove") if 0 < at < 1 else Charged("definition", exact=True)
        if at == 0:  # engines know the limit, the essential supremum of the loss, without a sum
            found = Charged(curve.method, exact=True)
        return _answer(curve, f"TPR at FPR {at:g}", curve.tpr(at, "lower"), curve.tpr(at), found)
    if epsilon is not None:
        at = number("epsilon", epsilon)
        way: AnyDirection = "both" if direction is None else direction
        low, high = curve.delta(at, way, "lower"), curve.delta(at, way)
        name = f"δ at ε = {at:g}" + ("" if way == "both" else f", {way}")
        return _answer(curve, name, low, high, _of_the_larger(curve, at, directions(way)))
    low, high = curve.advantage(side="lower"), curve.advantage()
    return _answer(curve, "advantage at prior 0.5", low, high, _of_the_larger(curve, 0.0, ("remove",)))


def _of_the_larger(curve: Tradeoff, log_gamma: float, ways: tuple[Direction, ...]) -> Charged:
    """Who supplied the larger upper bound of the ways, and who the larger lower one."""
    if not np.isfinite(log_gamma):
        return Charged("definition", exact=True)
    upper, lower = (
        max(ways, key=lambda way: bound_of(curve, "hockey stick", log_gamma, way, side)) for side in get_args(Side)
    )
    found = curve.charges("hockey stick", log_gamma, upper)
    return found if upper == lower else found.with_lower(curve.charges("hockey stick", log_gamma, lower))


def _answer(curve: Tradeoff, question: str, low: float, high: float, found: Charged) -> Answer:
    half = max(high - low, 0.0) / 2
    known = found.aliasing + found.truncation + found.rounding
    rest = max(half - known, 0.0)
    lower = found.lower_engine or found.engine
    return Answer(
        question,
        low,
        high,
        found.engine,
        lower,
        found.aliasing,
        found.truncation,
        found.rounding + (rest if found.exact else 0.0),
        0.0 if found.exact else rest,
        found.engine if lower == found.engine else f"{found.engine} (from below: {lower})",
        curve.assumptions,
        curve.confidence,
    )


def bound_of(curve: Tradeoff, question: Question, at: float, direction: Direction, side: Side) -> float:
    """Return one bound of a curve."""
    point: FloatArray = np.array([at])
    ask = curve.hockey_sticks if question == "hockey stick" else curve.rates
    return float(ask(point, direction, side)[0])
