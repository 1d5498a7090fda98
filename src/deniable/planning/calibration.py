"""Calibration: the parameter with which a mechanism just meets a privacy target, never less private than asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from deniable._check import InputError, integer, number
from deniable.accounting.door import tradeoff
from deniable.curves import Tradeoff
from deniable.mechanisms import Mechanism
from deniable.planning.targets import Target, read_target, target_arguments

_FAR = 800.0  # stands for an infinite score: |log| of any positive double is smaller
_JUST = 1e-300  # the score of a target missed by less than a rounding

_Point = tuple[float, float]  # a parameter and its score


def _score_of(target: Target, curve: Tradeoff) -> float:
    """Log of the leakage over the limit, both above the floor: ≤ 0 exactly where the target is met."""
    leakage = target.leakage(curve)
    excess, allowed = leakage - target.floor, target.allowed - target.floor
    if not leakage <= target.allowed:  # decided on the numbers themselves, never on their logarithms
        return max(math.log(excess) - math.log(allowed), _JUST) if excess < math.inf and allowed > 0 else _FAR
    return min(math.log(excess) - math.log(allowed), 0.0) if excess > 0 else -_FAR


def calibrate(
    make_mechanism: Callable[[Any], Mechanism],
    bracket: tuple[float, float],
    *,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    accuracy: float | None = None,
    prior: ArrayLike | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    reconstruction: float | None = None,
    baseline: float | None = None,
    singling_out: float | None = None,
    n: int | None = None,
    weight: float | None = None,
    attribute: float | None = None,
    group: int = 1,
    adjacency: str = "add-remove",
    integer: bool = False,
    tolerance: float = 1e-9,
) -> float:
    """Return the parameter in ``bracket`` whose mechanism leaks as much as allowed and not more.

    The mechanism of the returned number satisfies the target with its *upper* bound, as computed; within ``tolerance``
    there is a parameter that misses it. Whether privacy grows with the parameter (noise) or falls (steps, rate, μ, ε)
    is determined by trying two values.

    Parameters
    ----------
    make_mechanism
        From a number to a mechanism, for example ``lambda sigma: SubsampledGaussian(sigma, 0.01, 5000)``.
    bracket
        Two different finite numbers (low, high) between which to search.
    advantage
        Target: membership advantage of every attacker with the given ``prior`` (½ unless said otherwise).
    tpr, fpr
        Target: true positive rate ``tpr`` of every attack with false positive rate ``fpr``.
    accuracy
        Target: accuracy of every attacker with the given ``prior`` (½ unless said otherwise).
    prior
        Probability of membership for ``advantage`` and ``accuracy``; what is known of the values for ``attribute``.
    epsilon, delta
        Target: (``epsilon``, ``delta``)-differential privacy, both directions.
    reconstruction, baseline
        Target: probability ``reconstruction`` of guessing a record's secret which blind guessing finds with
        probability ``baseline`` (:func:`deniable.risks.reconstruction`).
    singling_out, n, weight
        Target: probability ``singling_out`` that a predicate of at most this ``weight``, read off the output, matches
        exactly one of ``n`` independent records (:func:`deniable.risks.singling_out`).
    attribute
        Target: probability ``attribute`` of naming an attribute of a record whose values an attacker who knows all the
        rest believes in with probabilities ``prior``, shape (situations, values) or (values,), situations equally
        likely (:func:`deniable.risks.attribute`).
    group
        The target must hold for this many records that are in or out together (:func:`deniable.risks.group`).
    adjacency
        ``"add-remove"`` or ``"replace"``: for which neighbouring data sets the target is to hold.
    integer
        Search whole numbers only (steps); ``make_mechanism`` then gets an ``int`` and one is returned.
    tolerance
        Relative distance (absolute, if the bracket reaches 0 or below) of the returned number to one that misses
        the target. Leakage should be monotone in the parameter; if it is not, the number still meets the target but
        need not be the best one.

    Returns
    -------
    float
        The parameter. If the whole bracket meets the target it is the end that leaks most: the bracket, not
        the target, was the limit.

    Raises
    ------
    InputError
        If not exactly one target is given, it cannot be met at all, or neither end of the bracket meets it.
    """
    target = read_target(target_arguments(locals()), group=group)
    return parameter_for(target, make_mechanism, bracket, adjacency=adjacency, integer=integer, tolerance=tolerance)


def parameter_for(
    target: Target,
    make_mechanism: Callable[[Any], Mechanism],
    bracket: tuple[float, float],
    *,
    adjacency: str = "add-remove",
    integer: bool = False,
    tolerance: float = 1e-9,
) -> float:
    """:func:`calibrate` to a target that has been read."""
    number("tolerance", tolerance, above=0.0, below=1.0)
    axis = _axis(bracket, integer)

    def curve_at(parameter: float) -> Tradeoff:
        return tradeoff(make_mechanism(parameter), adjacency=adjacency)

    def measure(parameter: float) -> _Point:
        return parameter, _score_of(target, curve_at(parameter))

    safe, unsafe = sorted(_straddle(measure, axis), key=_score)
    if _score(unsafe) <= 0:
        return unsafe[0]
    if _score(safe) > 0:
        leak = target.leakage(curve_at(safe[0]))
        raise InputError(
            f"bracket must contain a parameter with {target.name} at most {target.allowed:g}, but its better end "
            f"{safe[0]:g} gives {leak:.6g}; widen the bracket {axis.ends}"
        )
    return _narrow(measure, safe, unsafe, axis, tolerance)


def _score(point: _Point) -> float:
    return point[1]


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


def _straddle(measure: Callable[[float], _Point], axis: _SearchScale) -> tuple[_Point, _Point]:
    """Two points on either side of the limit; or of equal sign, one of them the end of the bracket nearest to it.

    Goes outwards from the middle: far ends of a generous bracket can be costly to evaluate and are rarely needed.
    """
    low, high = axis.ends
    middle = axis.between(low, high, 0.5)
    beside = None if middle is None else axis.between(middle, high, 0.2)
    if middle is None or beside is None:
        return measure(low), measure(high)
    near, far = sorted((measure(middle), measure(beside)), key=lambda point: abs(_score(point)))
    if _score(near) == _score(far):  # no slope to follow
        return measure(low), measure(high)
    end = low if near[0] < far[0] else high
    while _score(near) * _score(far) > 0 and near[0] != end:
        ahead = abs(axis.coordinate(near[0]) - axis.coordinate(far[0]))
        secant = 1.5 * abs(_score(near)) / max(abs(_score(far)) - abs(_score(near)), 1e-300)
        share = ahead * max(min(secant, 1e3), 1.0) / abs(axis.coordinate(end) - axis.coordinate(near[0]))
        further = axis.between(near[0], end, share) if share < 1 else None
        near, far = measure(end if further is None else further), near
    return near, far


def _narrow(
    measure: Callable[[float], _Point], safe: _Point, unsafe: _Point, axis: _SearchScale, tolerance: float
) -> float:
    """Chandrupatla's (1997) bracketing search: inverse quadratic steps where they are trusted, else bisection."""
    newest, opposite, share = unsafe, safe, 0.5
    while True:
        x = axis.between(newest[0], opposite[0], share)
        if x is None:
            break
        point = measure(x)
        if (_score(point) <= 0) == (_score(newest) <= 0):
            third, newest = newest, point
        else:
            third, opposite, newest = opposite, newest, point
        u, v, w = (axis.coordinate(p[0]) for p in (newest, opposite, third))
        if not axis.integer and abs(u - v) <= tolerance:
            break
        share = _share((u, _score(newest)), (v, _score(opposite)), (w, _score(third)))
        margin = min(tolerance / (2 * abs(u - v)), 0.5)
        share = min(max(share, margin), 1 - margin)
    return newest[0] if _score(newest) <= 0 else opposite[0]


def _share(a: _Point, b: _Point, c: _Point) -> float:
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
