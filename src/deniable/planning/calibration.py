"""Calibration: the parameter with which a mechanism just meets a limit, never less private than asked.

Also what the arguments ``advantage`` and ``limit`` ask for, and a mechanism as a limit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from deniable._check import FloatArray, InputError, flag, function, integer, number
from deniable._search import bisect, bisect_integers
from deniable._shown import plural
from deniable._special import ndtri
from deniable.accounting import first_engine, tradeoff
from deniable.curves import Tradeoff
from deniable.limits import Limit
from deniable.mechanisms import Mechanism

_FAR = 800.0  # stands for an infinite score: |log| of any positive double is smaller
_PATIENT = 30  # points after which strides only grow
_JUST = 1e-300  # the score of a limit missed by less than a rounding
_CLEAR = 0.05  # with 5 % more noise than is needed, the first engine's bound is enough
_LEAST = 1e-30  # leakage of which nothing is known but that it is smaller: no slope is read off it
_SPAN = (1e-18, 1e18)  # numbers that are tried where no bracket is given; of whole ones 1 to 2⁵³
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
    """A parameter, its score (≤ 0 exactly where the limit is met), its curve, and whether the limit decided it."""

    parameter: float
    score: float
    curve: Tradeoff
    decided: bool = True  # False: the bracket did, all of which meets the limit


def _score_of(limit: Limit | AsTellingAs, curve: Tradeoff) -> float:
    """Log of the leakage over the limit, in Gaussian noise: ≤ 0 exactly where the limit is met."""
    leakage = limit.leakage(curve)
    found, allowed = _equal_noise(limit, leakage), _equal_noise(limit, limit.most)
    if not leakage <= limit.most:  # decided on the numbers themselves, never on their logarithms
        return min(max(math.log(found / allowed), _JUST), _FAR) if found < math.inf and allowed > 0 else _FAR
    return max(min(math.log(found / allowed), 0.0), -_FAR) if found > 0 and allowed < math.inf else -_FAR


def _equal_noise(limit: Limit | AsTellingAs, leakage: float) -> float:
    """About the μ of the Gaussian mechanism that leaks as much: nearly inverse to noise, so that secants find it.

    Of limits that no Gaussian mechanism meets, and of multiples of a mechanism, it is the leakage itself.
    """
    if limit.kind in ("epsilon", "mechanism") or not math.isfinite(leakage):
        return leakage - limit.floor
    excess = max(leakage - limit.floor, _LEAST)
    if limit.kind == "delta":
        tail, epsilon = -_probit(excess), vars(limit)["epsilon"]
        usual = epsilon > 0 and excess < 1
        return 2 * epsilon / (tail + math.hypot(tail, math.sqrt(2 * epsilon))) if usual else excess
    if limit.floor > 0:
        return max(_probit(leakage) - _probit(limit.floor), _LEAST)
    return 2 * _probit((1 + excess) / 2) if excess > 1e-9 else 2.5 * excess


def _probit(rate: float) -> float:
    return float(ndtri(rate)) if 0 < rate < 1 else math.copysign(math.inf, rate - 0.5)


def calibrate(
    make_mechanism: Callable[[Any], Mechanism],
    bracket: tuple[float, float] | None = None,
    *,
    advantage: float | None = None,
    limit: Limit | Mechanism | None = None,
    adjacency: str = "add-remove",
    integer: bool = False,
    tolerance: float = 1e-9,
) -> float:
    """Return the parameter whose mechanism leaks as much as allowed and not more.

    The mechanism of the returned number meets the limit with its *upper* bound, as computed; within ``tolerance``
    there is a parameter that misses it. Whether privacy grows with the parameter (noise) or falls (steps, rate, μ, ε)
    is found by trying.

    Parameters
    ----------
    make_mechanism
        From a number to a mechanism, for example ``lambda sigma: SubsampledGaussian(sigma, 0.01, 5000)``.
    bracket
        Two different finite numbers (low, high) between which to search; ``None``: around 1, as far as needed, among
        the positive numbers with which a mechanism can be made.
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
        The parameter. If the whole bracket meets the limit it is the end that leaks most, and a warning says that the
        bracket decided.

    Raises
    ------
    InputError
        If not exactly one limit is given, or neither end of the bracket meets it.

    Examples
    --------
    See ``Limit``.
    """
    asked = as_limit(advantage, limit)
    found = search(asked, make_mechanism, bracket, adjacency=adjacency, integer=integer, tolerance=tolerance)
    if found.score > 0:
        where = "" if bracket is None else f"; widen the bracket {_axis(bracket, integer).ends}, or leave it out"
        raise InputError(
            f"bracket must contain a parameter with {asked.name} at most {asked.most:g}, but its better end "
            f"{found.parameter:g} gives {asked.leakage(found.curve):.6g}{where}"
        )
    if not found.decided:
        warnings.warn(
            f"every parameter that was tried keeps {asked.name} at most {asked.most:g}: {found.parameter:g} is where "
            "the bracket ends, not where the limit is",
            stacklevel=2,
        )
    return found.parameter


def search(
    limit: Limit | AsTellingAs,
    make_mechanism: Callable[[Any], Mechanism],
    bracket: tuple[float, float] | None = None,
    *,
    adjacency: str = "add-remove",
    integer: bool = False,
    tolerance: float = 1e-9,
    near: float | None = None,
    rough: bool = False,
) -> Measured:
    """:func:`calibrate` with its curve; the better end of the bracket where neither meets the limit.

    The search begins at ``near``: only the time depends on it.
    ``rough``: by sketches of the curves, which are bounds as valid, and mostly up to 0.1 % wider.
    """
    number("tolerance", tolerance, above=0.0, below=1.0)
    function("make_mechanism", make_mechanism, "of a parameter that returns a mechanism")
    flag("integer", integer)
    if bracket is None:
        low, near, high = domain(make_mechanism, integer, near)
        bracket = low, high
    axis = _axis(bracket, integer)

    def measure(parameter: float, expected: float = 0.0) -> Measured:
        curve = tradeoff(make_mechanism(parameter), adjacency=adjacency)
        if rough:
            curve = curve.sketch()
        first = curve if abs(expected) < 10 * _CLEAR else first_engine(curve)
        score = _score_of(limit, first)
        if first is not curve and score > -_CLEAR:
            score = _score_of(limit, curve)
        return Measured(parameter, score, curve)

    low, high = axis.ends
    middle = axis.between(low, high, 0.5) if near is None else min(max(near, low), high)
    both = _straddle(measure, axis, low if middle is None else middle, tolerance)
    safe, unsafe = sorted(both, key=lambda point: point.score)
    if unsafe.score <= 0:
        return unsafe._replace(decided=False)
    return safe if safe.score > 0 else _narrow(measure, safe, unsafe, axis, tolerance)


@dataclass(frozen=True)
class _SearchScale:
    """The coordinate on which the search runs: logarithmic if the bracket is positive."""

    ends: tuple[float, float]
    logarithmic: bool
    integer: bool

    def coordinate(self, parameter: float) -> float:
        return math.log(parameter) if self.logarithmic else float(parameter)

    def stride(self, points: list[Measured], tolerance: float) -> float:
        """How far to go beyond the last point, to pass where the score is 0 by a little."""
        last = abs(points[-1].score)
        if len(points) == 1:
            return min(1.1 * last + 0.9 * tolerance, 2.0) if self.logarithmic else 0.2 * (self.ends[1] - self.ends[0])
        ahead = abs(self.coordinate(points[-1].parameter) - self.coordinate(points[-2].parameter))
        fallen = abs(points[-2].score) - last
        secant = 1.1 * last / fallen if fallen > 0 else math.inf
        return ahead * min(max(secant, 0.1 if len(points) < _PATIENT else 8.0), 8.0)

    def between(self, a: float, b: float, share: float) -> float | None:
        """The parameter ``share`` of the way from a to b, strictly inside, or None if there is none."""
        u = self.coordinate(a) + share * (self.coordinate(b) - self.coordinate(a))
        x = math.exp(u) if self.logarithmic else u
        low, high = min(a, b), max(a, b)
        if self.integer:
            return min(max(round(x), low + 1), high - 1) if high - low > 1 else None
        low, high = math.nextafter(low, high), math.nextafter(high, low)
        return min(max(x, low), high) if low < high else None


def domain(
    make_mechanism: Callable[[Any], Mechanism], whole: bool, near: float | None = None
) -> tuple[float, float, float]:
    """Return the least number with which a mechanism can be made, one to begin at (``near``, if it can), the largest.

    Raises
    ------
    InputError
        Or what else ``make_mechanism`` raises, if none can be made.
    """
    low, high = (1, 1 << 53) if whole else _SPAN

    def can(parameter: float) -> bool:
        try:
            make_mechanism(parameter)
        except (ValueError, ArithmeticError, MemoryError):  # ours among them; ∞, 1/0, ...
            return False
        return True

    powers = [2**k for k in range(1, 40)]
    tried = [near or 1, 1, *powers] if whole else [near or 1.0, 1.0, *(x for p in powers for x in (float(p), 1 / p))]
    if (start := next(filter(can, tried), None)) is None:
        make_mechanism(tried[0])  # raises what was wrong
        raise InputError("make_mechanism must return a mechanism for some number")

    def reached(end: float) -> float:
        if can(end):
            return end
        if whole:
            return int(bisect_integers(lambda k: can(int(k)), start, end)[0])
        return math.exp(bisect(lambda u: can(math.exp(u)), math.log(start), math.log(end), halvings=99)[0])

    return reached(low), start, reached(high)


def _straddle(
    measure: Callable[[float, float], Measured], axis: _SearchScale, start: float, tolerance: float
) -> tuple[Measured, Measured]:
    """Two points on either side of the limit; or of equal sign, the outermost that were tried.

    Goes outwards where the score is nearest to 0: far ends can be costly to evaluate and are rarely needed. A slope
    sends it the wrong way where curves are rough: either end is looked at before the bracket decides.
    """
    points, ends = [measure(start, _FAR)], list(axis.ends)  # in the order of their parameters
    safe = points[0].score <= 0
    while True:
        ways = [k for k in ((0, -1) if safe else (-1, 0)) if points[k].parameter != ends[k]]  # noise: less, more
        if not ways:
            return points[0], points[-1]
        way = min(ways, key=lambda k: abs(points[k].score))
        here, end = points[way].parameter, ends[way]
        stride = axis.stride(points if way else points[::-1], tolerance)
        most = abs(axis.coordinate(end) - axis.coordinate(here))
        further = axis.between(here, end, stride / most) if stride < most else None
        try:
            found = measure(end if further is None else further, points[way].score)
        except MemoryError:  # the bracket ends where curves do
            ends[way] = here
            continue
        if (found.score <= 0) != safe:
            return points[way], found
        points.insert(len(points) if way else 0, found)


def _narrow(
    measure: Callable[[float, float], Measured], safe: Measured, unsafe: Measured, axis: _SearchScale, tolerance: float
) -> Measured:
    """Chandrupatla's (1997) bracketing search: inverse quadratic steps where they are trusted, else bisection."""
    newest, opposite = unsafe, safe
    share = 0.5 if max(unsafe.score, -safe.score) == _FAR else unsafe.score / (unsafe.score - safe.score)
    if not axis.integer and abs(axis.coordinate(safe.parameter) - axis.coordinate(unsafe.parameter)) <= tolerance:
        return safe
    while True:
        x = axis.between(newest.parameter, opposite.parameter, share)
        if x is None:
            break
        point = measure(x, newest.score - opposite.score)
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
