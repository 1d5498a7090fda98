"""What an attacker can do: the trade-off between true and false positives of any membership attack.

Two worlds: H0, the record was *out* (law Q of the release), and H1, it was *in* (law P). An attack is a test;
its false positive rate is Q(S), its true positive rate P(S). Everything deniable knows about leakage is a
:class:`Tradeoff`: upper bounds on what every attack reaches and, where known, lower bounds on what the best one does.

Every public number passes through :func:`_sane`: whatever an engine does inside (NaN, overflow, no memory), what leaves
is in range and on its side, or it is the trivial bound.

Directions. ``"add"`` is the hockey stick of in against out, H_γ(P‖Q), and the ROC with out as the null hypothesis;
``"remove"`` exchanges the two worlds. ``"both"`` (the meaning in DP) is the larger of the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtr, ndtri

from deniable._check import FloatArray, InputError, choice, finite, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Side = Literal["upper", "lower"]
Direction = Literal["add", "remove"]
AnyDirection = Literal["add", "remove", "both"]

EVERY_CASE = "every record and every rest of the data"  # what a curve must hold for to bound other risks
ONE_CASE = "the record and the data set for which it was computed"

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
_FIRST_NORMAL = 1e-300  # false positive rates below have fewer digits, or none to spare for a product
_FARTHEST = 5e3  # |ε| beyond which exp() under- and overflows anyway
_MOST_ROUNDS = 60  # enough to get there
_FAILURES = (ArithmeticError, MemoryError, ValueError, np.linalg.LinAlgError)  # of an engine: its bound is trivial then


@dataclass(frozen=True)
class Assumptions:
    """The game in which a number holds: read it before quoting the number."""

    game: str = "the attacker knows the whole training set but for one record, and tests whether that record was in"
    adjacency: str = "add or remove one record"
    access: str = "everything that the mechanism outputs, intermediate steps included"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Tradeoff(ABC):
    """Bounds on every membership attack against one mechanism.

    All methods are vectorised: they return a float for scalar arguments and an array of the broadcast shape
    otherwise. ``side="upper"`` (the default) is never below the truth, ``side="lower"`` never above it.

    Subclasses give two primitives, ``_hockey_stick`` and ``_roc``, on one-dimensional arrays. Whoever needs a bound
    calls ``_sticks`` and ``_rates``, which return the same made safe: no NaN, H_γ ≥ (1 − γ)₊, TPR ≥ FPR, at most 1, and
    the trivial bound where the primitive fails.

    Attributes
    ----------
    method
        How the numbers were computed.
    assumptions
        Game, adjacency and access under which they hold.
    confidence
        Probability with which the bounds hold: 1 for a proof, less for a Monte Carlo or sampled certificate.
    holds_for
        The data sets and records for which it holds: ``EVERY_CASE`` on curves of mechanisms (:func:`deniable.tradeoff`
        sets it), otherwise words that say which. Risks that vary the record's content need the former and raise
        without it; that is the default, so that a subclass from elsewhere is refused until it claims more.
    """

    method: str = field(default="closed form", kw_only=True)
    assumptions: Assumptions = field(default_factory=Assumptions, kw_only=True)
    confidence: float = field(default=1.0, kw_only=True)
    holds_for: str = field(default=ONE_CASE, kw_only=True)

    @abstractmethod
    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """H_γ at γ = exp(log_gamma), in [0, 1]; log_gamma may be ±inf."""

    @abstractmethod
    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """Largest true positive rate at each false positive rate in [0, 1]."""

    def _largest_log_ratio(self, direction: Direction) -> float:
        """Upper bound on the log-likelihood ratio: ε at δ = 0, and log TPR/FPR as FPR → 0 (∞ unless known)."""
        return float("inf")

    def _least_log_ratio(self, direction: Direction) -> float:
        """Lower bound on the same essential supremum; where nothing is known, 0."""
        return self._largest_log_ratio(direction)

    def _hockey_sticks(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """H_γ made safe: see :func:`_sane`."""
        floor = _no_information(log_gamma, side)
        return _sane(lambda: self._hockey_stick(log_gamma, direction, side), floor, side)

    def _rates(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        """Largest true positive rates made safe: see :func:`_sane`.

        Among denormal rates nothing has relative accuracy: from above they get the bound of the first normal ones, from
        below the trivial one.
        """
        denormal = (fpr > 0) & (fpr < _FIRST_NORMAL)
        asked = np.where(denormal, _FIRST_NORMAL, fpr)
        found = _sane(lambda: self._roc(asked, direction, side), asked, side)
        return found if side == "upper" else np.where(denormal, fpr, found)

    def _ratio_bound(self, direction: Direction, side: Side) -> float:
        """Bound on the essential supremum of the log-likelihood ratio, which is at least 0."""
        known = self._largest_log_ratio(direction) if side == "upper" else self._least_log_ratio(direction)
        return max(known, 0.0) if not np.isnan(known) else (float("inf") if side == "upper" else 0.0)

    @overload
    def hockey_stick(self, gamma: float, direction: Direction = ..., side: Side = ...) -> float: ...
    @overload
    def hockey_stick(self, gamma: ArrayLike, direction: Direction = ..., side: Side = ...) -> FloatArray: ...
    def hockey_stick(self, gamma: ArrayLike, direction: Direction = "add", side: Side = "upper") -> float | FloatArray:
        """Return H_γ = sup over tests S of P(S) − γ·Q(S), for γ ≥ 0 (``direction="remove"`` exchanges P and Q)."""
        g = numbers("gamma", gamma, at_least=0.0)
        choice("direction", direction, ("add", "remove"))
        with np.errstate(divide="ignore"):
            log_gamma = np.log(g.ravel())
        return _shaped(g, self._hockey_sticks(_lower_or_higher(log_gamma, _side(side)), direction, side))

    @overload
    def tpr(self, fpr: float, side: Side = ...) -> float: ...
    @overload
    def tpr(self, fpr: ArrayLike, side: Side = ...) -> FloatArray: ...
    def tpr(self, fpr: ArrayLike, side: Side = "upper") -> float | FloatArray:
        """Return the largest true positive rate of any attack whose false positive rate is at most ``fpr``."""
        a = numbers("fpr", fpr, at_least=0.0, at_most=1.0, hint="it is a rate, not a percentage")
        return _shaped(a, self._rates(a.ravel(), "add", _side(side)))

    @overload
    def advantage(self, prior: float = ..., side: Side = ...) -> float: ...
    @overload
    def advantage(self, prior: ArrayLike, side: Side = ...) -> FloatArray: ...
    def advantage(self, prior: ArrayLike = 0.5, side: Side = "upper") -> float | FloatArray:
        """Return 2·(accuracy − max(prior, 1 − prior)): what the release adds to guessing from the prior.

        At ``prior=0.5`` this is sup(TPR − FPR), the total variation distance of the two worlds.
        """
        pi = _prior(prior)
        return _shaped(pi, self._advantage(pi.ravel(), _side(side)))

    @overload
    def accuracy(self, prior: float = ..., side: Side = ...) -> float: ...
    @overload
    def accuracy(self, prior: ArrayLike, side: Side = ...) -> FloatArray: ...
    def accuracy(self, prior: ArrayLike = 0.5, side: Side = "upper") -> float | FloatArray:
        """Return the accuracy of the Bayes-optimal attacker who believes beforehand P(in) = ``prior``."""
        pi = _prior(prior)
        flat = pi.ravel()
        best_guess, gained = np.maximum(flat, 1 - flat), self._advantage(flat, _side(side)) / 2
        return _shaped(pi, np.clip(_outward(best_guess + gained, 2 * _EPS * gained, side), best_guess, 1.0))

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
        pi = _prior(prior)
        a, pi = np.broadcast_arrays(a, pi)
        flat = a.ravel()
        rate = self._rates(flat, "add", _side(side))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            steepest = np.exp(self._ratio_bound("add", side)) * (1 + (_EPS if side == "upper" else -_EPS))
            ratio = np.where(flat > 0, rate / flat, np.where(rate > 0, np.inf, steepest))
            p = pi.ravel()
            value = 1 / (1 + (1 - p) / p / ratio)
        # a rate is at least fpr, so that the precision is at least the prior; 1 − value shrinks by a few roundings
        moved = 1 - (1 - value) * (1 - 8 * _EPS) if side == "upper" else value * (1 - 8 * _EPS)
        bound = np.clip(np.where(np.isfinite(ratio), moved, 1.0), p, 1.0)
        return _shaped(a, np.where(np.isnan(value), 1.0 if side == "upper" else p, bound))

    @overload
    def delta(self, epsilon: float, direction: AnyDirection = ..., side: Side = ...) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike, direction: AnyDirection = ..., side: Side = ...) -> FloatArray: ...
    def delta(self, epsilon: ArrayLike, direction: AnyDirection = "both", side: Side = "upper") -> float | FloatArray:
        """Return the smallest δ for which the mechanism is (``epsilon``, δ)-DP; ``epsilon`` may be negative."""
        eps = numbers("epsilon", epsilon)
        return _shaped(eps, self._delta(eps.ravel(), direction, _side(side)))

    @overload
    def epsilon(self, delta: float, direction: AnyDirection = ..., side: Side = ...) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike, direction: AnyDirection = ..., side: Side = ...) -> FloatArray: ...
    def epsilon(self, delta: ArrayLike, direction: AnyDirection = "both", side: Side = "upper") -> float | FloatArray:
        """Return the smallest ε for which the mechanism is (ε, ``delta``)-DP.

        It may be negative (nothing is floored at 0); it is ``inf`` where no ε reaches ``delta`` and ``-inf`` at
        ``delta=1``. The upper side satisfies ``delta(eps) <= delta`` (for finite ``eps``) as computed by this or any
        other object of the same mechanism and options, whatever either of them was asked before.
        """
        d = numbers("delta", delta, at_least=0.0, at_most=1.0)
        flat = d.ravel()
        with np.errstate(all="ignore"):
            low, high = self._epsilon_bracket(flat, direction, _side(side))
        certain = max(self._ratio_bound(way, side) for way in _directions(direction))
        with np.errstate(divide="ignore"):
            floor = _lower_or_higher(np.log1p(-flat), "upper")  # H_γ ≥ 1 − γ, so that ε ≥ log(1 − δ)
        bound = np.where(flat == 0, certain, np.maximum(high if side == "upper" else low, floor))
        return _shaped(d, np.where(np.isnan(bound), np.inf if side == "upper" else floor, bound))

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

        ``"add"`` is D_α(P‖Q), ``"remove"`` D_α(Q‖P), ``"both"`` (what Rényi DP asks for) the larger; order inf is ε at
        δ = 0. It is ``inf`` where the divergence is (an (ε, δ) guarantee with δ > 0) or no bound is known.

        Raises
        ------
        InputError
            For a kind of curve whose divergences are not known: a grid, a Monte Carlo band, a certificate, a chain.
        """
        alpha = numbers("order", order, above=1.0, hint="an order just above 1 stands for the KL divergence")
        flat = alpha.ravel()
        with np.errstate(all="ignore"):
            found = np.max([self._renyi(flat, way) for way in _directions(direction)], axis=0)
        found = np.where(np.isinf(flat), max(self._ratio_bound(way, "upper") for way in _directions(direction)), found)
        return _shaped(alpha, np.where(np.isnan(found), np.inf, np.maximum(found, 0.0)))

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        """Upper bounds on the Rényi divergence; those at order inf are not used."""
        raise InputError(
            f"renyi is not known for curves computed by {self.method!r} ({type(self).__name__}); ask the default curve "
            "of the mechanism, or use its (ε, δ)"
        )

    def inverse(self) -> Tradeoff:
        """Return the trade-off with the two worlds exchanged: H0 = in, H1 = out."""
        return _Inverse(
            self,
            method=self.method,
            assumptions=self.assumptions,
            confidence=self.confidence,
            holds_for="the two worlds exchanged (H0 = in)",
        )

    def sketch(self) -> Tradeoff:
        """Return bounds for a picture: as sound, but they may be wider by about 0.1 % where that is quicker."""
        return self

    def plot(
        self,
        *beside: Tradeoff | Axes | None,
        ax: Axes | None = None,
        label: str | Sequence[str] | None = None,
    ) -> Axes:
        """Draw the upper ROC, and those of other curves ``beside`` it, on log–log axes; return the matplotlib axes.

        Parameters
        ----------
        beside
            Other curves: ``t.plot(u, v)``. Axes among them are where to draw.
        ax
            Where to draw; fresh axes if None.
        label
            What the legend calls the curves: a text for one, as many texts as curves for several. By default the
            methods, numbered where two are the same.
        """
        from deniable._plot import draw_side_by_side

        return draw_side_by_side([self, *beside], ax, label, kind=Tradeoff)

    def _repr_html_(self) -> str:
        from deniable._notebook import curve_rows, panel

        sure = [] if self.confidence == 1 else [f"confidence {self.confidence:g}"]
        a = self.assumptions
        return panel(
            "What any attacker can reach", curve_rows(self), [f"Method: {self.method}", *sure, a.game, a.adjacency]
        )

    def _advantage(self, prior: FloatArray, side: Side) -> FloatArray:
        """2·min(π, 1−π)·H_γ with γ ≥ 1, in the direction that keeps relative precision (theory: Bayes accuracy)."""
        rare = np.minimum(prior, 1 - prior)
        log_gamma = _lower_or_higher(np.log1p((1 - 2 * rare) / rare), side)
        member_rare = prior <= 0.5
        out = np.empty_like(prior)
        for mask, direction in ((member_rare, _ADD), (~member_rare, _REMOVE)):
            if mask.any():
                out[mask] = self._hockey_sticks(log_gamma[mask], direction, side)
        gained = 2 * rare * out
        return np.where(rare == 0.5, gained, np.minimum(_outward(gained, _EPS * gained, side), 2 * rare))

    def _delta(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        found: FloatArray = np.max([self._hockey_sticks(epsilon, d, side) for d in _directions(direction)], axis=0)
        return found

    def _delta_settled(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        """δ(ε), on the safe side of what ``_delta`` returns for the same ε in any other array.

        Sums of products may differ in their last digits between arrays of different lengths. A subclass whose numbers
        come from such sums adds what that may change, so that ``epsilon`` keeps its promise whoever asks again.
        """
        return self._delta(epsilon, direction, side)

    def _epsilon_bracket(self, delta: FloatArray, direction: AnyDirection, side: Side) -> tuple[FloatArray, FloatArray]:
        """Bracket δ(ε) for all ``delta`` at once: δ(low) > delta ≥ δ(high), or an infinite end where none exists."""
        try:
            with np.errstate(all="ignore"):
                near, step = self._epsilon_near(delta, direction)
        except _FAILURES:
            near, step = np.zeros_like(delta), np.ones_like(delta)
        near = np.nan_to_num(near, posinf=0.0, neginf=0.0)
        farthest = np.maximum(_FARTHEST, 2 * np.abs(near))  # a subclass may know of larger ones
        step = np.where(np.isfinite(step) & (step > 0), step, 1.0)
        low, high = near - step, near + step
        for _ in range(_MOST_ROUNDS):  # far ends are costly
            too_low = (self._delta_settled(high, direction, side) > delta) & (high < farthest)
            too_high = (self._delta_settled(low, direction, side) <= delta) & (low > -farthest)
            if not (too_low.any() or too_high.any()):
                break
            step = 1.5 * step
            low, high = (
                np.where(too_low, high, np.where(too_high, low - step, low)),
                np.where(too_high, low, np.where(too_low, high + step, high)),
            )
        unreachable = self._delta_settled(high, direction, side) > delta
        always = self._delta_settled(low, direction, side) <= delta
        low, high = self._narrowed(delta, low, high, lambda epsilon: self._delta_settled(epsilon, direction, side))
        low = np.where(always | (delta >= 1), -np.inf, np.where(unreachable, high, low))
        high = np.where(always | (delta >= 1), -np.inf, np.where(unreachable, np.inf, high))
        return low, high

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """Where to look for ε first, and how far around; a bad guess costs time, no more."""
        return np.zeros_like(delta), np.ones_like(delta)

    @staticmethod
    def _narrowed(
        delta: FloatArray, low: FloatArray, high: FloatArray, at: Callable[[FloatArray], FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Narrow δ(low) > delta ≥ δ(high) down to neighbouring numbers.

        Each round looks at both sides of the secant of log δ, closer and closer to it, and at the middle, which alone
        would be bisection. Only comparisons of computed values move an end, whatever the secant is worth.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            target = np.log(np.maximum(delta, _TINY))
            f_low, f_high = (np.log(np.maximum(at(end), _TINY)) - target for end in (low, high))
            reach = np.full(delta.shape, 0.1)
            for _ in range(200):
                width, middle = high - low, (low + high) / 2
                if not np.any((middle > low) & (middle < high)):
                    break
                guess = low + width * f_low / (f_low - f_high)
                guess = np.where(np.isfinite(guess), guess, middle)
                step = np.maximum(reach * width, np.spacing(np.abs(guess)))
                points = np.sort(np.clip([guess - step, middle, guess + step], low, high), axis=0)
                found = at(points.ravel()).reshape(points.shape)
                for x, value in zip(points, found, strict=True):
                    f = np.log(np.maximum(value, _TINY)) - target
                    rises, falls = (value > delta) & (x > low) & (x < high), (value <= delta) & (x > low) & (x < high)
                    low, f_low = np.where(rises, x, low), np.where(rises, f, f_low)
                    high, f_high = np.where(falls, x, high), np.where(falls, f, f_high)
                reach = np.clip((high - low) / width, 1e-6, 0.1)
        return low, high


@dataclass(frozen=True)
class _Inverse(Tradeoff):
    """The same pair of laws with the roles of the two worlds exchanged."""

    of: Tradeoff

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self.of._hockey_sticks(log_gamma, _OPPOSITE[direction], side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self.of._rates(fpr, _OPPOSITE[direction], side)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.of._largest_log_ratio(_OPPOSITE[direction])

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.of._least_log_ratio(_OPPOSITE[direction])

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return self.of._renyi(order, _OPPOSITE[direction])

    def _delta_settled(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        return self.of._delta_settled(epsilon, direction if direction == "both" else _OPPOSITE[direction], side)

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        return self.of._epsilon_near(delta, direction if direction == "both" else _OPPOSITE[direction])

    def inverse(self) -> Tradeoff:
        return self.of

    def sketch(self) -> Tradeoff:
        return self.of.sketch().inverse()


@dataclass(frozen=True)
class ApproximateTradeoff(Tradeoff):
    """The worst pair of an (ε, δ)-DP mechanism (Kairouz, Oh & Viswanath 2015; Humphries et al.; Izzo Theorem 4).

    P = {δ, (1−δ)e^ε/(1+e^ε), (1−δ)/(1+e^ε), 0} against its mirror image: attained by randomised response, so upper
    and lower coincide as statements about the worst mechanism with that guarantee.
    """

    guaranteed_epsilon: float
    guaranteed_delta: float

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        eps = self.guaranteed_epsilon
        log_p = -float(np.log1p(np.exp(-eps)))  # p = e^ε/(1+e^ε), 1 − p = e^{log_p − ε}
        with np.errstate(over="ignore", invalid="ignore"):
            first = -np.exp(log_p) * np.expm1(np.minimum(log_gamma - eps, 0.0))
            second = -np.exp(log_p - eps) * np.expm1(np.minimum(log_gamma + eps, 0.0))
        if np.isinf(eps):
            first, second = np.ones_like(log_gamma), np.zeros_like(log_gamma)
        spread = (1 - self.guaranteed_delta) * (first + second)
        value = self.guaranteed_delta + spread
        return _outward(value, np.where(spread > 0, 8 * _EPS * value, 0.0), side)  # exactly δ from ε on

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            rising = self.guaranteed_delta + np.exp(self.guaranteed_epsilon + np.log(fpr))
        # 1 − e^{−ε}·(1 − δ − α)₊, written so that small ε + δ + α keep their digits
        shrink = np.exp(-self.guaranteed_epsilon)
        falling = -np.expm1(-self.guaranteed_epsilon) + shrink * np.minimum(self.guaranteed_delta + fpr, 1.0)
        value = np.minimum(np.minimum(rising, falling), 1.0)
        # exp(ε + log α) loses the rounding of its argument, whose size is at most ε + 745
        value = _outward(value, (8 + 2 * min(self.guaranteed_epsilon + 745, 1500)) * _EPS * value, side)
        return np.maximum(value, fpr)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return float("inf") if self.guaranteed_delta > 0 else self.guaranteed_epsilon

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        if self.guaranteed_delta > 0:
            return np.full(order.shape, np.inf)
        return randomized_response_divergence(self.guaranteed_epsilon, order)


@dataclass(frozen=True)
class GaussianTradeoff(Tradeoff):
    """N(0, 1) against N(μ, 1): TPR = Φ(Φ⁻¹(FPR) + μ), TV = 2Φ(μ/2) − 1 (Dong, Roth & Su 2022)."""

    mu: float

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if np.isinf(self.mu):
            return np.ones_like(log_gamma)
        if self.mu == 0:
            nothing = np.maximum(-np.expm1(log_gamma), 0.0)
            return _outward(nothing, 4 * _EPS * nothing, side)
        # the pair is symmetric, so H_γ = 1 − γ + γ·H_{1/γ}: only γ ≥ 1 needs a formula
        value, slack = self._above_one(np.abs(log_gamma))
        gamma = np.exp(np.minimum(log_gamma, 0.0))
        value, slack = gamma * value - np.expm1(np.minimum(log_gamma, 0.0)), gamma * slack
        return _outward(value, slack + np.where(gamma < 1, 4 * _EPS * value, 0.0), side)

    def _above_one(self, log_gamma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """H_γ for γ ≥ 1 and a bound on its rounding error.

        H = Φ(a) − γΦ(b) = φ(a)·(m(a) − m(b)) with the Mills ratio m = Φ/φ, which keeps relative precision in tails.
        """
        lg = np.minimum(log_gamma, 1e300)  # keeps ∞ out of the arithmetic; H underflows to 0 long before
        a, b = self.mu / 2 - lg / self.mu, -self.mu / 2 - lg / self.mu
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            mills = np.exp(-(a**2) / 2) / 2 * (erfcx(-a / np.sqrt(2)) - erfcx(-b / np.sqrt(2)))
            direct = ndtr(a) - np.exp(np.minimum(lg, 700.0)) * ndtr(b)
            value = np.where(a < 5, mills, direct)
            rounding = 8 + 4 * np.minimum((self.mu / 2 + lg / self.mu) ** 2, 1e300)
            slack = _EPS * np.where(ndtr(a) > 0, rounding * ndtr(a), 0.0)
        return np.clip(value, 0.0, 1.0), slack

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        quantile = ndtri(fpr)
        with np.errstate(invalid="ignore"):
            nudge = 8 * _EPS * (1 + np.abs(quantile) + self.mu) * (1 if side == "upper" else -1)
            value = ndtr(quantile + self.mu + nudge)
        value = _outward(value, 4 * _EPS * value, side)
        value = np.where(fpr == 0, float(np.isinf(self.mu)), np.where(fpr == 1, 1.0, value))
        return np.maximum(value, fpr)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return float("inf") if self.mu > 0 else 0.0

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """P(L > ε) = Φ(μ/2 − ε/μ) is about δ, or a little more."""
        if not 0 < self.mu < 1e150:
            return super()._epsilon_near(delta, direction)
        near = self.mu * (self.mu / 2 - ndtri(np.clip(delta, 1e-300, 1 - _EPS)))
        return near, np.full(delta.shape, max(self.mu, 1e-9))

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return np.asarray(order * (self.mu**2 / 2 * (1 + 4 * _EPS)))  # Mironov 2017, Proposition 7


@dataclass(frozen=True, eq=False)
class EnvelopeTradeoff(Tradeoff):
    """Upper bounds known only as hockey sticks at some γ, in both directions: a sampled or numerical certificate.

    ``log_gamma`` is increasing; ``add`` and ``remove`` hold upper bounds on H_γ there. Between the points H is
    bounded by convexity in γ (linear interpolation), and TPR ≤ min over the points of γ·FPR + H_γ. The lower side
    is the trivial one: it knows nothing.
    """

    log_gamma: FloatArray
    add: FloatArray
    remove: FloatArray

    def __post_init__(self) -> None:
        for name in ("log_gamma", "add", "remove"):
            object.__setattr__(self, name, finite(name, getattr(self, name)))
        points = self.log_gamma
        if points.ndim != 1 or points.size == 0 or not np.all(np.diff(points) > 0):
            raise InputError("log_gamma must be a non-empty increasing one-dimensional array")
        if not self.add.shape == self.remove.shape == points.shape:
            raise InputError(
                f"add and remove must be as long as log_gamma, got {self.add.shape} and {self.remove.shape}"
            )

    def _bounds(self, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """γ and H_γ with the ends γ = 0 (H = 1) and the last known value kept for ever larger γ."""
        values = self.add if direction == "add" else self.remove
        return np.concatenate([[0.0], np.exp(self.log_gamma)]), np.concatenate([[1.0], np.clip(values, 0.0, 1.0)])

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        with np.errstate(over="ignore"):
            gamma = np.exp(log_gamma)
        trivial: FloatArray = np.maximum(1 - gamma, 0.0)
        if side == "lower":
            return trivial
        points, values = self._bounds(direction)
        value = np.interp(gamma, points, values)
        # γ is rounded, and H falls: look a little to the left, but at the points themselves the values are known
        between = np.interp(gamma * (1 - 4 * _EPS), points, values) * (1 + 8 * _EPS)
        bound: FloatArray = np.where(np.isin(gamma, points), value, np.maximum(value, between))
        return np.maximum(np.clip(bound, 0.0, 1.0), trivial)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if side == "lower":
            return fpr.copy()
        points, values = self._bounds(direction)
        bound: FloatArray = np.clip(np.min(points * fpr[:, None] + values, axis=1) * (1 + 4 * _EPS), fpr, 1.0)
        return bound

    def _least_log_ratio(self, direction: Direction) -> float:
        return 0.0


@dataclass(frozen=True)
class SmallestTradeoff(Tradeoff):
    """Several upper bounds on one pair of worlds: the smallest holds, point by point; of lower sides the largest."""

    parts: tuple[Tradeoff, ...]

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._best([part._hockey_sticks(log_gamma, direction, side) for part in self.parts], side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._best([part._rates(fpr, direction, side) for part in self.parts], side)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return min(part._ratio_bound(direction, "upper") for part in self.parts)

    def _least_log_ratio(self, direction: Direction) -> float:
        return max(part._ratio_bound(direction, "lower") for part in self.parts)

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return np.asarray(np.min([part._renyi(order, direction) for part in self.parts], axis=0))

    def _delta_settled(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        if side == "lower":
            return self._delta(epsilon, direction, side)
        found = [
            self._best([part._delta_settled(epsilon, way, side) for part in self.parts], side)
            for way in _directions(direction)
        ]
        return np.asarray(np.max(found, axis=0))

    @staticmethod
    def _best(values: list[FloatArray], side: Side) -> FloatArray:
        return np.asarray(np.min(values, axis=0) if side == "upper" else np.max(values, axis=0))


@dataclass(frozen=True)
class BracketTradeoff(Tradeoff):
    """A trade-off known between two others: its upper side is ``above``'s, its lower side ``below``'s."""

    above: Tradeoff
    below: Tradeoff

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._on(side)._hockey_sticks(log_gamma, direction, side)

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        return self._on(side)._rates(fpr, direction, side)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return self.above._ratio_bound(direction, "upper")

    def _least_log_ratio(self, direction: Direction) -> float:
        return self.below._ratio_bound(direction, "lower")

    def _renyi(self, order: FloatArray, direction: Direction) -> FloatArray:
        return self.above._renyi(order, direction)

    def _delta_settled(self, epsilon: FloatArray, direction: AnyDirection, side: Side) -> FloatArray:
        return self._on(side)._delta_settled(epsilon, direction, side)

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        return self.above._epsilon_near(delta, direction)

    def _on(self, side: Side) -> Tradeoff:
        return self.above if side == "upper" else self.below


FIXED_BEFOREHAND = (
    "Noise, rates and the number of steps of every phase were fixed beforehand. If one was chosen from what earlier "
    "steps released (or training stopped for what the data showed), the bound of what happened to run is none."
)


def with_note(tradeoff: Tradeoff, note: str) -> Tradeoff:
    """Return ``tradeoff`` with a note added to its :class:`Assumptions`."""
    return with_assumptions(tradeoff, notes=(*tradeoff.assumptions.notes, note))


def with_assumptions(tradeoff: Tradeoff, **changes: Any) -> Tradeoff:
    """Return ``tradeoff`` with fields of its :class:`Assumptions` replaced."""
    return replace(tradeoff, assumptions=replace(tradeoff.assumptions, **changes))


_ADD: Direction = "add"
_REMOVE: Direction = "remove"
_OPPOSITE: dict[Direction, Direction] = {"add": "remove", "remove": "add"}


def randomized_response_divergence(epsilon: float, order: FloatArray) -> FloatArray:
    """D_α of randomised response, the worst pair of ε-DP, rounded up: at most ε and ε²α/2 (Bun & Steinke 2016, 3.3).

    D_α = log((e^{αε} + e^{(1−α)ε})/(1 + e^ε))/(α − 1), written as ε minus what lies below it.
    """
    if np.isinf(epsilon):
        return np.full(order.shape, np.inf)
    below = (np.log1p(np.exp(-epsilon)) - np.log1p(np.exp((1 - 2 * order) * epsilon))) / (order - 1)
    exact = epsilon - below + 8 * _EPS * (epsilon + 2 / (order - 1))
    return np.asarray(np.minimum(np.minimum(exact, epsilon), epsilon**2 / 2 * order * (1 + 4 * _EPS)))


def _directions(direction: str) -> tuple[Direction, ...]:
    choice("direction", direction, ("add", "remove", "both"))
    return ("add", "remove") if direction == "both" else (cast(Direction, direction),)


def _side(side: str) -> Side:
    return cast(Side, choice("side", side, ("upper", "lower")))


def _prior(prior: ArrayLike) -> FloatArray:
    return numbers(
        "prior", prior, above=0.0, below=1.0, hint="a prior of 0 or 1 is certainty: no attack can add anything to it"
    )


def _lower_or_higher(log_gamma: FloatArray, side: Side) -> FloatArray:
    """Move a rounded logarithm of γ to where H_γ is on its side: H falls in γ. 0 is exact."""
    slack = 4 * _EPS * np.where(np.isfinite(log_gamma), np.abs(log_gamma), 0.0)
    return log_gamma - slack if side == "upper" else log_gamma + slack


def _no_information(log_gamma: FloatArray, side: Side) -> FloatArray:
    """(1 − γ)₊, the hockey stick of two equal laws and a lower bound on every other, rounded to its side."""
    plain = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
    return np.where(np.isneginf(log_gamma), 1.0, _outward(plain, 4 * _EPS * plain, side))


def _sane(compute: Callable[[], FloatArray], floor: FloatArray, side: Side) -> FloatArray:
    """Return what ``compute`` finds as bounds on something in [``floor``, 1]: the one place where bounds are checked.

    NaN and infinities are not bounds: they, and an engine that fails (no memory, overflow), give the trivial bound,
    which is 1 from above and ``floor`` from below. What the caller did wrong (:class:`InputError`) is still raised.
    """
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(compute(), dtype=np.float64)
    except InputError:
        raise
    except _FAILURES:
        found = np.full(floor.shape, np.nan)
    trivial = np.ones_like(floor) if side == "upper" else floor
    return np.where(np.isfinite(found), np.clip(found, floor, 1.0), trivial)


def _outward(value: FloatArray, slack: FloatArray, side: Side) -> FloatArray:
    """Move a probability to its safe side by ``slack``, staying in [0, 1]."""
    return np.clip(value + slack if side == "upper" else value - slack, 0.0, 1.0)


def _shaped(like: FloatArray, flat: FloatArray) -> float | FloatArray:
    return float(flat[0]) if like.ndim == 0 else flat.reshape(like.shape)
