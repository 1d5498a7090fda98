"""Calibration: the parameter with which a mechanism just meets a limit, never less private than asked.

Also what the arguments ``advantage`` and ``limit`` ask for, a mechanism as a limit, and what a Gaussian release may
spend: a Gaussian DP parameter, and a δ where one is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from deniable._check import FloatArray, InputError, flag, function, integer, number
from deniable._floats import MANY_ROUNDINGS
from deniable._shown import plural
from deniable.accounting.dispatch import tradeoff
from deniable.curves import Tradeoff
from deniable.limits import Limit
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism, SubsampledGaussian
from deniable.mechanisms.core import parts_of

_FAR = 800.0  # stands for an infinite score: |log| of any positive double is smaller
_JUST = 1e-300  # the score of a limit missed by less than a rounding
_SLOPE = 1.2  # of log leakage against log noise, about
_BRACKET = (1e-6, 60.0)  # μ: below, the noise on a count exceeds a million; above, nothing is hidden
COMPARED_RATES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.25, 0.5)


@dataclass(frozen=True)
class AsTellingAs:
    """A mechanism as a limit: at each of ``COMPARED_RATES`` no attacker finds more than the best one finds under it.

    Its own adjacency counts. What is measured is the largest ratio, over these false positive rates, of what is found
    above guessing; it is compared with the lower bounds of the mechanism.
    """

    mechanism: Mechanism
    kind = "mechanism"
    most = 1.0
    floor = 0.0
    group_size = 1
    name = "what is found above guessing, as a multiple of what the limit allows,"

    @property
    def arguments(self) -> dict[str, Any]:
        """What was asked for, in plain types."""
        return {"mechanism": repr(self.mechanism)}

    def leakage(self, curve: Tradeoff) -> float:
        """Return how much a mechanism of this ``curve`` leaks, by its upper bound."""
        rates = np.array(COMPARED_RATES)
        found, allowed = curve.tpr(rates) - rates, _found_under(self.mechanism)
        ratios = np.where(found <= allowed, 1.0, np.inf)  # where the mechanism is not known to tell anything
        np.divide(found, allowed, out=ratios, where=allowed > 0)
        return float(np.max(ratios))

    def is_met(self, curve: Tradeoff) -> bool:
        """Whether a mechanism of this ``curve`` is proven to meet the limit."""
        return self.leakage(curve) <= self.most

    def words(self, unit: str = "record") -> str:
        """Return the whole promise, as certificates state it."""
        rates = ", ".join(f"{rate:g}" for rate in COMPARED_RATES)
        return f"at false positive rates of {rates} no attacker finds more {plural(unit)} than under {self.mechanism!r}"


def as_limit(
    advantage: float | None, limit: Limit | Mechanism | None, default: float | None = None
) -> Limit | AsTellingAs:
    """Return the one limit that a call asks for: ``advantage`` is short for ``Limit(advantage=…)``."""
    if advantage is not None and limit is not None:
        raise InputError(f"give advantage or limit, not both; got advantage={advantage!r} and limit={limit!r}")
    if limit is None:
        if advantage is None and default is None:
            raise InputError("give advantage=0.1 or another limit, such as limit=Limit(tpr=0.01, fpr=0.001); got none")
        return Limit(advantage=default if advantage is None else advantage)
    if isinstance(limit, Mechanism):
        return AsTellingAs(limit)
    if not isinstance(limit, Limit):
        raise InputError(f"limit must be a Limit, such as Limit(tpr=0.01, fpr=0.001), or a mechanism, got {limit!r}")
    return limit


@lru_cache(maxsize=64)
def _found_under(mechanism: Mechanism) -> FloatArray:
    """At least how much more than guessing an attacker finds at each of the rates that are compared."""
    rates = np.array(COMPARED_RATES)
    found: FloatArray = tradeoff(mechanism).tpr(rates, side="lower") - rates
    return found


_Place = tuple[float, float]  # a coordinate and its score


class Measured(NamedTuple):
    """A parameter, its score (≤ 0 exactly where the limit is met) and its curve."""

    parameter: float
    score: float
    curve: Tradeoff


def _score_of(limit: Limit | AsTellingAs, curve: Tradeoff) -> float:
    """Log of the leakage over the limit, both above the floor: ≤ 0 exactly where the limit is met."""
    leakage = limit.leakage(curve)
    excess, allowed = leakage - limit.floor, limit.most - limit.floor
    if not leakage <= limit.most:  # decided on the numbers themselves, never on their logarithms
        return max(math.log(excess) - math.log(allowed), _JUST) if excess < math.inf and allowed > 0 else _FAR
    return min(math.log(excess) - math.log(allowed), 0.0) if excess > 0 else -_FAR


def calibrate(
    make_mechanism: Callable[[Any], Mechanism],
    bracket: tuple[float, float],
    *,
    advantage: float | None = None,
    limit: Limit | Mechanism | None = None,
    adjacency: str = "add-remove",
    integer: bool = False,
    tolerance: float = 1e-9,
) -> float:
    """Return the parameter in ``bracket`` whose mechanism leaks as much as allowed and not more.

    The mechanism of the returned number meets the limit with its *upper* bound, as computed; within ``tolerance``
    there is a parameter that misses it. Whether privacy grows with the parameter (noise) or falls (steps, rate, μ, ε)
    is determined by trying two values.

    Parameters
    ----------
    make_mechanism
        From a number to a mechanism, for example ``lambda sigma: SubsampledGaussian(sigma, 0.01, 5000)``.
    bracket
        Two different finite numbers (low, high) between which to search.
    advantage
        Largest membership advantage of every attacker at even odds: short for ``limit=Limit(advantage=…)``.
    limit
        What an attacker may reach, as a :class:`deniable.Limit`, or a mechanism: at most as telling as this
        one, with its own adjacency, at the false positive rates 1e-9, 1e-8, …, 0.1, ¼ and ½.
    adjacency
        ``"add-remove"`` or ``"replace"``: for which neighbouring data sets the limit is to hold.
    integer
        Search whole numbers only (steps); ``make_mechanism`` then gets an ``int`` and one is returned.
    tolerance
        Relative distance (absolute, if the bracket reaches 0 or below) of the returned number to one that misses
        the limit. Leakage should be monotone in the parameter; if it is not, the number still meets it but
        need not be the best one.

    Returns
    -------
    float
        The parameter. If the whole bracket meets the limit it is the end that leaks most: the bracket decided.

    Raises
    ------
    InputError
        If not exactly one limit is given, or neither end of the bracket meets it.
    """
    asked = as_limit(advantage, limit)
    found = search(asked, make_mechanism, bracket, adjacency=adjacency, integer=integer, tolerance=tolerance)
    if found.score > 0:
        ends = _axis(bracket, integer).ends
        raise InputError(
            f"bracket must contain a parameter with {asked.name} at most {asked.most:g}, but its better end "
            f"{found.parameter:g} gives {asked.leakage(found.curve):.6g}; widen the bracket {ends}"
        )
    return found.parameter


def search(
    limit: Limit | AsTellingAs,
    make_mechanism: Callable[[Any], Mechanism],
    bracket: tuple[float, float],
    *,
    adjacency: str = "add-remove",
    integer: bool = False,
    tolerance: float = 1e-9,
    near: float | None = None,
    rough: bool = False,
) -> Measured:
    """:func:`calibrate` with its curve; the better end of the bracket where neither meets the limit.

    With ``near``, a noise multiplier in a positive bracket, the search begins there: only the time depends on it.
    ``rough``: by sketches of the curves, which are bounds as valid, and mostly up to 0.1 % wider.
    """
    number("tolerance", tolerance, above=0.0, below=1.0)
    function("make_mechanism", make_mechanism, "of a parameter that returns a mechanism")
    axis = _axis(bracket, flag("integer", integer))

    def measure(parameter: float) -> Measured:
        curve = tradeoff(make_mechanism(parameter), adjacency=adjacency)
        if rough:
            curve = curve.sketch()
        return Measured(parameter, _score_of(limit, curve), curve)

    both = _straddle(measure, axis) if near is None else _astride(measure, axis, near, tolerance)
    safe, unsafe = sorted(both, key=lambda point: point.score)
    if unsafe.score <= 0:
        return unsafe
    if safe.score > 0:
        return safe
    share = 0.5 if near is None else unsafe.score / (unsafe.score - safe.score)
    return _narrow(measure, safe, unsafe, axis, tolerance, share)


@dataclass(frozen=True)
class _SearchScale:
    """The coordinate on which the search runs: logarithmic if the bracket is positive."""

    ends: tuple[float, float]
    logarithmic: bool
    integer: bool

    def coordinate(self, parameter: float) -> float:
        return math.log(parameter) if self.logarithmic else float(parameter)

    def between(self, a: float, b: float, share: float) -> float | None:
        """The parameter ``share`` of the way from a to b, strictly inside, or None if there is none."""
        u = self.coordinate(a) + share * (self.coordinate(b) - self.coordinate(a))
        x = math.exp(u) if self.logarithmic else u
        low, high = min(a, b), max(a, b)
        if self.integer:
            return min(max(round(x), low + 1), high - 1) if high - low > 1 else None
        low, high = math.nextafter(low, high), math.nextafter(high, low)
        return min(max(x, low), high) if low < high else None


def _straddle(measure: Callable[[float], Measured], axis: _SearchScale) -> tuple[Measured, Measured]:
    """Two points on either side of the limit; or of equal sign, one of them the end of the bracket nearest to it.

    Goes outwards from the middle: far ends of a generous bracket can be costly to evaluate and are rarely needed.
    """
    low, high = axis.ends
    middle = axis.between(low, high, 0.5)
    beside = None if middle is None else axis.between(middle, high, 0.2)
    if middle is None or beside is None:
        return measure(low), measure(high)
    return _outward(measure, axis, measure(middle), measure(beside))


def _astride(
    measure: Callable[[float], Measured], axis: _SearchScale, near: float, tolerance: float
) -> tuple[Measured, Measured]:
    """:func:`_straddle` from a guess outwards, and from where the limit is if leakage is about inverse to noise."""
    first = measure(near)
    end = axis.ends[1 if first.score > 0 else 0]
    step, most = _SLOPE * abs(first.score) + 0.9 * tolerance, abs(axis.coordinate(end) - axis.coordinate(near))
    second = axis.between(near, end, step / most) if step < most else None
    return _outward(measure, axis, first, measure(end if second is None else second))


def _outward(measure: Callable[[float], Measured], axis: _SearchScale, *two: Measured) -> tuple[Measured, Measured]:
    """From two points on: see :func:`_straddle`."""
    low, high = axis.ends
    near, far = sorted(two, key=lambda point: abs(point.score))
    if near.score == far.score:  # no slope to follow
        return measure(low), measure(high)
    end = low if near.parameter < far.parameter else high
    while near.score * far.score > 0 and near.parameter != end:
        ahead = abs(axis.coordinate(near.parameter) - axis.coordinate(far.parameter))
        secant = 1.5 * abs(near.score) / max(abs(far.score) - abs(near.score), 1e-300)
        share = ahead * max(min(secant, 1e3), 1.0) / abs(axis.coordinate(end) - axis.coordinate(near.parameter))
        further = axis.between(near.parameter, end, share) if share < 1 else None
        near, far = measure(end if further is None else further), near
    return near, far


def _narrow(
    measure: Callable[[float], Measured],
    safe: Measured,
    unsafe: Measured,
    axis: _SearchScale,
    tolerance: float,
    share: float,
) -> Measured:
    """Chandrupatla's (1997) bracketing search: inverse quadratic steps where they are trusted, else bisection.

    The first point is ``share`` of the way from the unsafe one to the safe one.
    """
    newest, opposite = unsafe, safe
    if not axis.integer and abs(axis.coordinate(safe.parameter) - axis.coordinate(unsafe.parameter)) <= tolerance:
        return safe
    while True:
        x = axis.between(newest.parameter, opposite.parameter, share)
        if x is None:
            break
        point = measure(x)
        if (point.score <= 0) == (newest.score <= 0):
            third, newest = newest, point
        else:
            third, opposite, newest = opposite, newest, point
        u, v, w = (axis.coordinate(p.parameter) for p in (newest, opposite, third))
        if not axis.integer and abs(u - v) <= tolerance:
            break
        share = _share((u, newest.score), (v, opposite.score), (w, third.score))
        margin = min(tolerance / (2 * abs(u - v)), 0.5)
        share = min(max(share, margin), 1 - margin)
    return newest if newest.score <= 0 else opposite


def _share(a: _Place, b: _Place, c: _Place) -> float:
    """How far from a to b the root of the inverse quadratic through a, b, c lies; ½ where that is not monotone."""
    (u, fa), (v, fb), (w, fc) = a, b, c
    xi, phi = (u - v) / (w - v), (fa - fb) / (fc - fb)
    if not (phi**2 < xi and (1 - phi) ** 2 < 1 - xi):
        return 0.5
    return fa / (fb - fa) * fc / (fb - fc) + (w - u) / (v - u) * fa / (fc - fa) * fb / (fc - fb)


def _axis(bracket: tuple[float, float], whole: bool) -> _SearchScale:
    try:
        first, last = bracket
    except (TypeError, ValueError):
        raise InputError(f"bracket must be a pair (low, high), got {bracket!r}") from None
    ends: list[float] = [
        integer(name, end) if whole else number(name, end, above=-math.inf, below=math.inf)
        for name, end in (("bracket[0]", first), ("bracket[1]", last))
    ]
    if not ends[0] < ends[1]:
        raise InputError(f"bracket must be a pair (low, high) with low < high, got {bracket!r}")
    return _SearchScale((ends[0], ends[1]), ends[0] > 0, whole)


@dataclass(frozen=True)
class Budget:
    """What may be spent: Gaussian DP ``mu`` and a failure probability ``delta``, and the limit in words."""

    mu: float
    delta: float
    words: str

    def mechanism(self) -> Mechanism:
        """Return everything together."""
        return _spent(self.mu, self.delta)


def budget(limit: Limit | AsTellingAs, *, unit: str = "record", failure: float = 0.0) -> Budget:
    """Return the largest budget that keeps a limit; it is rounded down.

    Parameters
    ----------
    limit
        What an attacker may reach; a mechanism must be full-batch Gaussian.
    unit
        What is in or out, in words: "record", "person" or "line of the file".
    failure
        Probability with which the discovery of categories may fail; the limit holds for both together.

    Raises
    ------
    InputError
        For a limit that no Gaussian noise meets, or that next to no noise meets.
    """
    if isinstance(limit, AsTellingAs):
        return _given(limit.mechanism, failure)
    return Budget(_largest_mu(failure, limit), failure, limit.words(unit))


@lru_cache(maxsize=64)
def _largest_mu(failure: float, limit: Limit) -> float:
    """Return the largest μ that keeps a limit together with a failure probability; the search takes milliseconds."""
    if limit.is_met(tradeoff(_spent(_BRACKET[1], failure))):
        raise InputError(f"the limit, {limit.words()}, promises nothing: next to no noise meets it")
    found = search(limit, lambda mu: _spent(mu, failure), _BRACKET)
    if found.score > 0:
        beside = f" with a failure probability of {failure:g}" if failure else ""
        raise InputError(f"no Gaussian noise{beside} meets {limit!r}: with the most, {limit.name} is still "
                         f"{limit.leakage(found.curve):.3g}")  # fmt: skip
    return found.parameter


def _spent(mu: float, failure: float) -> Mechanism:
    return Composition((GaussianDP(mu), ApproximateDP(0.0, failure))) if failure else GaussianDP(mu)


def _given(mechanism: Mechanism, failure: float) -> Budget:
    total = 0.0
    for part in parts_of(mechanism):
        if isinstance(part, GaussianDP):
            total += part.mu**2
        elif isinstance(part, SubsampledGaussian) and part.sample_rate == 1:
            total += part.steps * (part.records_per_person / part.noise_multiplier) ** 2
        else:
            raise InputError(
                "a mechanism as limit must be full-batch Gaussian here (GaussianDP, SubsampledGaussian with "
                f"sample_rate 1, or both), not {part!r}; say what is wanted instead, as epsilon=1, delta=1e-6"
            )
    mu = math.sqrt(total) * (1 - MANY_ROUNDINGS)
    if not 0 < mu < math.inf:
        raise InputError(f"a mechanism as limit must leave a positive, finite budget, got μ = {mu:g}")
    beside = f", but for a failure probability of {failure:g}" if failure else ""
    return Budget(mu, failure, f"as hard to attack as {mechanism!r}{beside}")
