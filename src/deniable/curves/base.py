"""The interface of every trade-off: two primitives of an engine, and all that is asked of a curve."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, choice, numbers
from deniable._floats import EPS
from deniable._notebook import Textual, curve_text, two_lines
from deniable.curves.answer import Answer, Charged, Question, explained
from deniable.curves.epsilon_search import EpsilonSearch
from deniable.curves.safe import (
    ADD,
    EVERY_CASE,
    FAILURES,
    ONE_CASE,
    REMOVE,
    AnyDirection,
    Assumptions,
    Direction,
    Side,
    accuracy_from,
    directions,
    lower_or_higher,
    outward,
    posterior,
    sane_hockey_sticks,
    sane_rates,
    shaped,
    valid_prior,
    valid_side,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Tradeoff(Textual, ABC):
    """Bounds on every membership attack against one mechanism.

    Methods are vectorised: a float for scalars, else an array. ``side="upper"`` (the default) is never below the truth,
    ``side="lower"`` never above it.

    Subclasses give two primitives, ``_hockey_stick`` and ``_roc``, on one-dimensional arrays. Whoever needs a bound
    calls ``hockey_sticks`` and ``rates``, which return the same made safe: no NaN, H_γ ≥ (1 − γ)₊, TPR ≥ FPR, at most
    1, the trivial bound where the primitive fails. A hockey stick must be the same double whatever else is in the
    array and whatever was asked before (sums go row by row, never through matrices): :meth:`epsilon` rests on it.

    Attributes
    ----------
    method
        How the numbers were computed.
    assumptions
        Game, adjacency and access under which they hold.
    confidence
        Probability with which the bounds hold: 1 for a proof.
    holds_for
        The data sets and records for which it holds: ``EVERY_CASE`` on curves of mechanisms (:func:`deniable.tradeoff`
        sets it), otherwise words that say which. Risks that vary the record's content need the former and raise
        without it: a user's own subclass is refused until it claims that.

    Examples
    --------
    See ``SubsampledGaussian``.
    """

    method: str = field(default="closed form", kw_only=True)
    assumptions: Assumptions = field(default_factory=Assumptions, kw_only=True)
    confidence: float = field(default=1.0, kw_only=True)
    holds_for: str = field(default=ONE_CASE, kw_only=True)
    _epsilon_apart: ClassVar[float] = 0.0  # width, by 1 + ε, to which a bracket of ε is narrowed
    _closed: ClassVar[bool] = False  # whether all that parts the two sides is rounding

    @abstractmethod
    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """H_γ at γ = exp(log_gamma), in [0, 1]; log_gamma may be ±inf."""

    @abstractmethod
    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """Largest true positive rate at each false positive rate in [0, 1]."""

    def _log_ratio(self, direction: Direction, side: Side) -> float:
        """Bound on the essential supremum of the log-likelihood ratio: ε at δ = 0, and log TPR/FPR as FPR → 0."""
        return float("inf") if side == "upper" else 0.0

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the worlds are known to have the same curve: one is then asked for both."""
        return False

    def hockey_sticks(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """H_γ made safe: see :func:`sane_hockey_sticks`."""
        way = directions(direction, self.symmetric)[0]
        ask = partial(self._hockey_stick, direction=way, side=side)
        return sane_hockey_sticks(ask, partial(self.log_ratio_bound, way, "upper"), log_gamma, side)

    def rates(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """Largest true positive rates made safe: see :func:`sane_rates`."""
        way = directions(direction, self.symmetric)[0]
        return sane_rates(partial(self._roc, direction=way, side=side), fpr, side)

    def log_ratio_bound(self, direction: Direction, side: Side) -> float:
        """Bound on the essential supremum of the log-likelihood ratio, which is at least 0."""
        known = self._log_ratio(direction, side)
        return max(known, 0.0) if not np.isnan(known) else (float("inf") if side == "upper" else 0.0)

    @overload
    def hockey_stick(self, gamma: float, direction: Direction = ..., side: Side = ...) -> float: ...
    @overload
    def hockey_stick(self, gamma: ArrayLike, direction: Direction = ..., side: Side = ...) -> FloatArray: ...
    def hockey_stick(self, gamma: ArrayLike, direction: Direction = REMOVE, side: Side = "upper") -> float | FloatArray:
        """Return H_γ = sup over tests S of P(S) − γ·Q(S), for γ ≥ 0 (``direction="add"`` exchanges P and Q)."""
        g = numbers("gamma", gamma, at_least=0.0)
        choice("direction", direction, ("add", "remove"))
        with np.errstate(divide="ignore"):
            log_gamma = np.log(g.ravel())
        return shaped(g, self.hockey_sticks(lower_or_higher(log_gamma, valid_side(side)), direction, side))

    @overload
    def tpr(self, fpr: float, side: Side = ...) -> float: ...
    @overload
    def tpr(self, fpr: ArrayLike, side: Side = ...) -> FloatArray: ...
    def tpr(self, fpr: ArrayLike, side: Side = "upper") -> float | FloatArray:
        """Return the largest true positive rate of any attack whose false positive rate is at most ``fpr``."""
        a = numbers("fpr", fpr, at_least=0.0, at_most=1.0, hint="it is a rate, not a percentage")
        return shaped(a, self.rates(a.ravel(), "remove", valid_side(side)))

    @overload
    def advantage(self, prior: float = ..., side: Side = ...) -> float: ...
    @overload
    def advantage(self, prior: ArrayLike, side: Side = ...) -> FloatArray: ...
    def advantage(self, prior: ArrayLike = 0.5, side: Side = "upper") -> float | FloatArray:
        """Return 2·(accuracy − max(prior, 1 − prior)): what the release adds to guessing from the prior.

        At ``prior=0.5`` this is sup(TPR − FPR), the total variation distance of the two worlds.
        """
        pi = valid_prior(prior)
        return shaped(pi, self._advantage(pi.ravel(), valid_side(side)))

    @overload
    def accuracy(self, prior: float = ..., side: Side = ...) -> float: ...
    @overload
    def accuracy(self, prior: ArrayLike, side: Side = ...) -> FloatArray: ...
    def accuracy(self, prior: ArrayLike = 0.5, side: Side = "upper") -> float | FloatArray:
        """Return the accuracy of the Bayes-optimal attacker who believes beforehand P(in) = ``prior``."""
        pi = valid_prior(prior)
        flat = pi.ravel()
        return shaped(pi, np.clip(accuracy_from(flat, self._advantage(flat, valid_side(side)) / 2, side), 0.0, 1.0))

    @overload
    def precision(self, fpr: float, prior: float = ..., side: Side = ...) -> float: ...
    @overload
    def precision(self, fpr: ArrayLike, prior: ArrayLike = ..., side: Side = ...) -> FloatArray: ...
    def precision(self, fpr: ArrayLike, prior: ArrayLike = 0.5, side: Side = "upper") -> float | FloatArray:
        """Return the largest P(in | attack says in) of an attack with false positive rate exactly ``fpr``.

        At ``fpr=0`` it is the limit of ever rarer accusations: 1 unless the likelihood ratio is bounded.
        Source: Thudi et al. §3 ("positive accuracy"), at a stated FPR because for δ > 0 it has no other bound.
        """
        a = numbers("fpr", fpr, at_least=0.0, at_most=1.0, hint="it is a rate, not a percentage")
        pi = valid_prior(prior)
        a, pi = np.broadcast_arrays(a, pi)
        flat = a.ravel()
        rate = self.rates(flat, "remove", valid_side(side))
        return shaped(a, posterior(rate, flat, pi.ravel(), self.log_ratio_bound("remove", side), side))

    @overload
    def delta(self, epsilon: float, direction: AnyDirection = ..., side: Side = ...) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike, direction: AnyDirection = ..., side: Side = ...) -> FloatArray: ...
    def delta(self, epsilon: ArrayLike, direction: AnyDirection = "both", side: Side = "upper") -> float | FloatArray:
        """Return the smallest δ for which the mechanism is (``epsilon``, δ)-DP; ``epsilon`` may be negative."""
        eps = numbers("epsilon", epsilon)
        return shaped(eps, self.deltas(eps.ravel(), direction, valid_side(side)))

    @overload
    def epsilon(self, delta: float, direction: AnyDirection = ..., side: Side = ...) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike, direction: AnyDirection = ..., side: Side = ...) -> FloatArray: ...
    def epsilon(self, delta: ArrayLike, direction: AnyDirection = "both", side: Side = "upper") -> float | FloatArray:
        """Return the smallest ε for which the mechanism is (ε, ``delta``)-DP.

        It is at least 0, and ``inf`` where no ε reaches ``delta``. The upper side satisfies ``delta(eps) <= delta``
        (for finite ``eps``) as computed by this or any other object of the same mechanism and options, whatever either
        of them was asked before.
        """
        d = numbers("delta", delta, at_least=0.0, at_most=1.0)
        flat = d.ravel()
        low, high = np.full_like(flat, -np.inf), np.full_like(flat, np.inf)
        asked = flat > 0  # pure ε is a bound of its own, and no search finds it
        if asked.any():
            with np.errstate(all="ignore"):
                low[asked], high[asked] = self.epsilon_bracket(flat[asked], direction, valid_side(side))
        else:
            valid_side(side)
        certain = max(self.log_ratio_bound(way, side) for way in directions(direction))
        bound = np.where(flat == 0, certain, high if side == "upper" else low)
        return shaped(d, np.maximum(np.where(np.isnan(bound), np.inf if side == "upper" else 0.0, bound), 0.0))

    @property
    def universal(self) -> bool:
        """Whether the curve holds for every content of the record and every rest of the data."""
        return self.holds_for == EVERY_CASE

    @overload
    def reconstruction(self, baseline: float, side: Side = ...) -> float: ...
    @overload
    def reconstruction(self, baseline: ArrayLike, side: Side = ...) -> FloatArray: ...
    def reconstruction(self, baseline: ArrayLike, side: Side = "upper") -> float | FloatArray:
        """Return the largest chance of guessing a record's secret that blind guessing finds with chance ``baseline``.

        See :func:`deniable.risks.reconstruction`, also for what the lower side means.
        """
        from deniable import risks

        return risks.reconstruction(self, baseline, side)

    def attribute(self, prior: ArrayLike, weights: ArrayLike | None = None, side: Side = "upper") -> float:
        """Return the largest chance of naming an attribute; ``prior`` has a row for all that the attacker may know.

        See :func:`deniable.risks.attribute`.
        """
        from deniable import risks

        return risks.attribute(self, prior, weights, side)

    @overload
    def singling_out(self, n: float, weight: float, side: Side = ...) -> float: ...
    @overload
    def singling_out(self, n: ArrayLike, weight: ArrayLike, side: Side = ...) -> FloatArray: ...
    def singling_out(self, n: ArrayLike, weight: ArrayLike, side: Side = "upper") -> float | FloatArray:
        """Return the largest chance that a predicate of ``weight`` matches exactly one of ``n`` independent records.

        See :func:`deniable.risks.singling_out`; the lower side is what a predicate fixed beforehand reaches.
        """
        from deniable import risks

        return risks.singling_out(self, n, weight, side)

    def group(self, k: int) -> Tradeoff:
        """Return the curve for ``k`` records that are in or out together: see :func:`deniable.risks.group`."""
        from deniable import risks

        return risks.group(self, k)

    @overload
    def renyi(self, order: float, direction: AnyDirection = ...) -> float: ...
    @overload
    def renyi(self, order: ArrayLike, direction: AnyDirection = ...) -> FloatArray: ...
    def renyi(self, order: ArrayLike, direction: AnyDirection = "both") -> float | FloatArray:
        """Return an upper bound on the Rényi divergence of an ``order`` above 1, for other accountants.

        ``"remove"`` is D_α(P‖Q), ``"add"`` D_α(Q‖P), ``"both"`` (what Rényi DP asks for) the larger; order inf is ε at
        δ = 0. It is ``inf`` where the divergence is (an (ε, δ) guarantee with δ > 0) or no bound is known.

        Raises
        ------
        InputError
            For curves whose divergences are not known: Monte Carlo bands, certificates, chains.
        """
        alpha = numbers("order", order, above=1.0, hint="an order just above 1 stands for the KL divergence")
        flat = alpha.ravel()
        with np.errstate(all="ignore"):
            found = np.max([self.renyi_divergences(flat, way) for way in directions(direction)], axis=0)
        found = np.where(
            np.isinf(flat), max(self.log_ratio_bound(way, "upper") for way in directions(direction)), found
        )
        return shaped(alpha, np.where(np.isnan(found), np.inf, np.maximum(found, 0.0)))

    def renyi_divergences(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Upper bounds on the Rényi divergence; those at order inf are not used."""
        raise InputError(
            f"renyi is not known for curves computed by {self.method!r} ({type(self).__name__}); use "
            "the default curve of the mechanism, or its (ε, δ)"
        )

    def explain(
        self, *, fpr: float | None = None, epsilon: float | None = None, direction: AnyDirection | None = None
    ) -> Answer:
        """Return one point of the curve with both bounds, the engine that supplied them, and what it charged.

        Parameters
        ----------
        fpr
            A false positive rate: the answer is about ``tpr(fpr)``.
        epsilon
            The answer is about ``delta(epsilon)``, in the larger of both directions unless ``direction`` says which.
        direction
            With ``epsilon``: ``"add"``, ``"remove"`` or ``"both"``.

        Without any of them the answer is about ``advantage()``.

        Raises
        ------
        InputError
            If both points are given, or a direction without ``epsilon``.
        """
        return explained(self, fpr, epsilon, direction)

    def charges(self, question: Question, at: float, direction: Direction) -> Charged:
        """Who supplies the bounds at a log γ or a false positive rate inside (0, 1), and what was charged."""
        try:
            with np.errstate(all="ignore"):
                return self._supplied(question, at, direction)
        except InputError:
            raise
        except FAILURES:
            return Charged("trivial bound: the engine failed")

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        """The same, by a subclass that knows more than its method; it may raise what an engine raises."""
        return Charged(self.method, exact=self._closed)

    def inverse(self) -> Tradeoff:
        """Return the trade-off with the two worlds exchanged: H0 = in, H1 = out."""
        from deniable.curves.combined import _Inverse

        return _Inverse(
            self,
            method=self.method,
            assumptions=self.assumptions,
            confidence=self.confidence,
            holds_for="the two worlds exchanged (H0 = in)",
        )

    def sketch(self) -> Tradeoff:
        """Return bounds for a picture: just as valid, but up to about 0.1 % wider where that is quicker."""
        return self._sketched or self

    @cached_property
    def _sketched(self) -> Tradeoff | None:
        """The same made of the sketches of all curves that it is made of, if they have any, for what these keep."""
        exact = {each.name: value for each in fields(self) if _curves_in(value := getattr(self, each.name))}
        rough = {name: _rough(value) for name, value in exact.items()}
        return None if rough == exact else replace(self, **rough)

    def plot(self, *beside: Tradeoff, ax: Axes | None = None, label: str | Sequence[str] | None = None) -> Axes:
        """Draw the upper ROC, and those of other curves ``beside`` it, on log–log axes; return the matplotlib axes.

        Parameters
        ----------
        beside
            Other curves: ``t.plot(u, v)``.
        ax
            Where to draw; fresh axes if None.
        label
            What the legend calls the curves: a text for one, as many texts as curves for several. By default the
            methods, numbered where two are the same.
        """
        from deniable._plot import draw_rocs, labels_of, marked

        curves = (self, *beside)
        if wrong := [type(one).__name__ for one in beside if not hasattr(one, "tpr")]:
            raise InputError(f"curves must be trade-offs, got {wrong[0]}; deniable.tradeoff(mechanism) makes one")
        axes = draw_rocs([one.tpr for one in curves], labels_of([one.method for one in curves], label), ax=ax)
        return marked(axes, any(one.insecure for one in curves))

    def __post_init__(self) -> None:
        """Take over the notes of the curves that this one is made of."""
        parts = [part for value in vars(self).values() for part in _curves_in(value)]
        notes = dict.fromkeys(note for one in (self, *parts) for note in one.assumptions.notes)
        if (every := tuple(notes)) != self.assumptions.notes:
            object.__setattr__(self, "assumptions", replace(self.assumptions, notes=every))

    def __init_subclass__(cls) -> None:
        cls.__repr__ = vars(cls).get("__repr__", two_lines)  # type: ignore[method-assign]  # not every array

    def _text(self) -> str:
        return curve_text(self)

    def _advantage(self, prior: FloatArray, side: Side) -> FloatArray:
        """2·min(π, 1−π)·H_γ with γ ≥ 1, in the direction that keeps relative precision (theory: Bayes accuracy)."""
        rare = np.minimum(prior, 1 - prior)
        log_gamma = lower_or_higher(np.log1p((1 - 2 * rare) / rare), side)
        member_rare = prior <= 0.5
        out = np.empty_like(prior)
        for mask, direction in ((member_rare, REMOVE), (~member_rare, ADD)):
            if mask.any():
                out[mask] = self.hockey_sticks(log_gamma[mask], direction, side)
        gained = 2 * rare * out
        return np.where(rare == 0.5, gained, np.minimum(outward(gained, EPS * gained, side), 2 * rare))

    def deltas(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        """δ at each ε, made safe."""
        ways = directions(direction, self.symmetric)
        return np.asarray(np.max([self.hockey_sticks(epsilon, way, side) for way in ways], axis=0))

    def epsilon_bracket(self, delta: FloatArray, direction: AnyDirection, side: Side) -> tuple[FloatArray, FloatArray]:
        """Bracket δ(ε) for all ``delta`` at once: δ(low) > delta ≥ δ(high), or an infinite end where none exists."""
        try:
            with np.errstate(all="ignore"):
                near, step = self.epsilon_near(delta, direction)
        except FAILURES:
            near, step = np.zeros_like(delta), np.ones_like(delta)

        def compared(epsilon: FloatArray) -> FloatArray:
            return self.compared(epsilon, np.resize(delta, epsilon.size), direction, side)

        low, high = EpsilonSearch(compared, self._epsilon_apart).bracket(delta, near, step)
        search = EpsilonSearch(lambda epsilon: self.deltas(epsilon, direction, side), self._epsilon_apart)
        return low, search.settled(np.maximum(high, 0.0), delta) if side == "upper" else high

    def compared(self, epsilon: FloatArray, delta: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        """δ at each ε, or a wider bound that is on the same side of ``delta``."""
        return self.deltas(epsilon, direction, side)

    def epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Where to look for ε first, and how far around; a bad guess costs time, no more."""
        return np.zeros_like(delta), np.ones_like(delta)


def _rough(value: Any) -> Any:
    """A field with the sketches of its curves, in tuples of it, too."""
    if isinstance(value, tuple):
        return tuple(map(_rough, value))
    return value.sketch() if isinstance(value, Tradeoff) else value


def _curves_in(value: Any) -> list[Tradeoff]:
    """The curves in a field, in tuples of it, too."""
    if isinstance(value, tuple):
        return [curve for part in value for curve in _curves_in(part)]
    return [value] if isinstance(value, Tradeoff) else []
