"""Where the nodes in u must lie for trapezoid sums of φ(u)·r(u)^w to be exact up to a stated error.

With w = c + it, θ = y/σ and the odds ρ(u) = q/(1 − q)·e^{u/σ − 1/(2σ²)}, on the line Im u = y, 0 < θ < π,

    log|φ·r^w| ≤ y²/2 − u²/2 + c·log|r| + t·arg r,   |r| = (1 − q)·|1 + ρe^{iθ}|,   arg r = arg(1 + ρe^{iθ}),

where arg r grows with u and |r| has one dip, of (1 − q)·sin θ at ρ = −cos θ if θ > π/2, and none otherwise.

A sum with spacing h differs from the integral by at most Σ± ∫ |f|/(e^{2π|Im u|/h} − 1) along any curve on either side
of the real line that f is analytic up to. Ours runs at height Y above the window in which f is not negligible on the
real line, and comes down at the window's ends, where all heights between 0 and Y have to be checked too: beyond the
window f on Im u = Y may be astronomically large. If the window ends at a ceiling where f is not negligible, the sum
over the nodes up to there differs from the integral up to half a spacing beyond the last of them by at most twice the
last summand: the factor 1.25 below makes |f|·e^{−2πy/h} ≤ |f(b)|·e^{−2πy/5h} on the way down, 0.8·h·|f(b)| a side.

Every maximum over u is taken cell by cell from bounds, not samples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray
from deniable._floats import PRODUCT_EXPONENT, SQUARE_EXPONENT
from deniable.accounting.steps.base import TooSlowError

_STRIP = np.array([0.04, 0.1, 0.2, 0.32, 0.45, 0.6, 0.75, 0.97])  # heights, as fractions of the strip of analyticity
_HIGHEST = 9.0  # for large σ the normal density, not r, sets the height worth having
_PLAIN = 0.55  # spacing that is enough for the normal density itself
_SLACK = 4.0  # asked beyond the digits: sums of several bounds, and the window's own tails
_AMPLIFIED = 2.5  # log of how much larger than on the real line weights may be
_EASY = 4.0  # real parts up to which bounds in closed form serve
_FURTHEST_LEFT = 1e3  # of nodes
_BLOCK = 1 << 16  # (phases, heights, cells) at a time


class Nodes(NamedTuple):
    """Range and spacing of nodes in u, their imaginary part, and the growth of the weights that it costs."""

    low: float
    high: float
    spacing: float
    shift: float = 0.0
    amplification: float = 1.0


def nodes(
    noise: FloatArray,
    rate: FloatArray,
    ceiling: float,
    points: tuple[float, ...],
    t_max: float,
    digits: float,
    lifted: bool = True,
) -> Nodes:
    """Nodes that serve every phase on the lines Re w = c for every c between the ``points``, for 0 ≤ t ≤ ``t_max``.

    Unless ``lifted``, they stay on the real line.

    Raises
    ------
    TooSlowError
        If a tilted law is out of reach.
    """
    if noise.size == 0:
        return Nodes(-1.0, 1.0, 1.0)
    if min(points) >= (0.0 if t_max > 0 else -_EASY) and max(points) <= (1.0 if t_max > 0 else _EASY):
        return _easy(noise, rate, ceiling, min(points), max(points), t_max, digits + _SLACK, lifted)
    found = [_at(noise, rate, ceiling, c, t_max, digits, lifted) for c in _with_between(points)]
    if len(found) == 1:
        return found[0]
    # what lies between the points needs the middle of the normal law as well
    low, high = min(-10.5, *(n.low for n in found)), max(10.5, *(n.high for n in found))
    return Nodes(low, min(high, ceiling), min(n.spacing for n in found))


def _easy(
    noise: FloatArray,
    rate: FloatArray,
    ceiling: float,
    least: float,
    most: float,
    t_max: float,
    margin: float,
    lifted: bool,
) -> Nodes:
    """The same near the real axis, for c between ``least`` and ``most``, from bounds in closed form.

    For c ≥ 0 and θ ≤ π/2 the logarithm above is at most y²/2 + W(u) + t·κ(u)·θ, W = c·L − u²/2 on the real line,
    κ = max(ρ/(1 + ρ), (2/π)·arctan ρ); for c < 0 and t = 0 at most y²/2 + W(u) + |c|·θ²/4.
    """
    narrow = float(noise.min())
    # M(c) itself is small where q is close to 1
    margin += float(np.minimum(-np.log1p(-rate) / 2, 1 / (8 * noise**2)).max())
    reach = math.sqrt(2 * (margin + max(-least, 0.0) * float(np.max(-np.log1p(-rate)))))
    low, high = -reach, min(reach + max(most, 0.0) / narrow, ceiling)
    curved = 1 + max(-least, 0.0) / (2 * (narrow * narrow))
    height = min((0.97 if least >= 0 else 0.5) * math.pi * narrow, math.sqrt(2 * margin / curved))
    if t_max == 0:
        return Nodes(low, high, min(2 * math.pi / (margin / height + height * curved / 2), _PLAIN))
    shift = min(height / 2, math.sqrt(2 * _AMPLIFIED))
    shifted = min(shift / margin, (height - shift) / (margin + height**2 / 2), _PLAIN / (2 * math.pi))
    u = np.linspace(low, high, int(min((high - low) / min(0.3, 0.3 * narrow), 4000)) + 2)
    sigma, q = noise[:, None], rate[:, None]
    odds = q / (1 - q) * np.exp(np.minimum(u / sigma - 1 / (2 * sigma**2), PRODUCT_EXPONENT))
    weight = most * (np.log1p(odds) + np.log1p(-q)) - u**2 / 2
    between = (u[1] - u[0]) ** 2 / 8 * (1 + 1 / (4 * (narrow * narrow)))  # what interpolation may miss
    weight = margin + between + np.maximum(np.maximum(weight[:, 1:], weight[:, :-1]), -(u[1:] ** 2) / 2)
    swing = t_max * np.maximum(odds / (1 + odds), 2 / math.pi * np.arctan(odds))[:, 1:] / sigma  # κ grows with u
    y = np.array([0.1, 0.25, 0.5])[:, None, None] * min(math.pi * narrow, 2 * math.sqrt(2 * margin))
    asked = np.where(weight > 0, weight / y + y / 2 + swing, 0.0).max(axis=(1, 2))
    density = float(asked.min()) / (2 * math.pi)
    if lifted and 1 / density < 2 * math.pi * shifted / 3:
        return Nodes(low, high, 2 * math.pi * shifted, shift, math.exp(shift**2 / 2))
    return Nodes(low, high, min(1 / density, _PLAIN))


def _with_between(points: tuple[float, ...]) -> tuple[float, ...]:
    """Add points on the way from a very negative one: there the resting height is not monotone in c.

    For c ≥ 0 it is at most Y²/2 whatever c is, since |r(u + iy)| ≤ r(u).
    """
    c, found = min(points), set(points)
    while len(points) > 1 and c < -4 and c / 3 < max(points):
        c /= 3
        found.add(c)
    return tuple(sorted(found))


def _at(
    noise: FloatArray,
    rate: FloatArray,
    ceiling: float,
    c: float,
    t_max: float,
    digits: float,
    lifted: bool,
) -> Nodes:
    margin = digits + _SLACK
    heights = _STRIP * min(math.pi * float(noise.min()), _HIGHEST)
    u = _cells(noise, rate, ceiling, c, margin + heights[-1] ** 2 / 2)
    size = max(1, _BLOCK // (heights.size * u.size))
    need = [
        _needs(noise[k : k + size], rate[k : k + size], c, t_max, u, heights, margin)
        for k in range(0, noise.size, size)
    ]
    real, resting, windows = (np.stack(part) for part in zip(*need, strict=True))
    first, last = windows[:, 0].min(axis=0), windows[:, 1].max(axis=0) + 1
    spacing = min(float(np.max(1 / real.max(axis=0))), _PLAIN)
    if t_max > 0 and lifted:
        rest = resting.max(axis=0)
        above = 2 * math.pi * (heights - heights[:, None]) / (margin + rest)  # nodes at a row's height, curve above
        reach = np.minimum(above, 2 * math.pi * heights[:, None] / margin)
        reach = np.where(rest[:, None] < _AMPLIFIED, np.minimum(reach, _PLAIN), 0.0)
        row, column = np.unravel_index(int(np.argmax(reach)), reach.shape)
        if spacing < reach[row, column] / 3:
            low, high = u[first[1 + column]], u[last[1 + column]]
            amplification = float(np.exp(rest[row]))
            return Nodes(float(low), float(high), float(reach[row, column]), float(heights[row]), amplification)
    return Nodes(float(u[first[0]]), float(u[last[0]]), spacing)


def _cells(noise: FloatArray, rate: FloatArray, ceiling: float, c: float, margin: float) -> FloatArray:
    """Cell boundaries around all u at which φ·max(r^c, 1) is within e^{−margin} of its largest value.

    The size of that is bounded on coarse cells: r^c is monotone. Its logarithm rises by at least 30 − (u − low) per
    unit of u from ``low`` on, as L′ ≤ q/σ for u < 0, and falls by at least 30 per unit beyond ``high``, as L′ ≤ 1/σ:
    what lies outside is below e^{−450}.
    """
    left = max(-c, 0.0) * float((rate / noise).max())
    low, high = -30.0 - min(left, _FURTHEST_LEFT), min(30.0 + max(c, 0.0) / float(noise.min()), ceiling)
    coarse = np.linspace(low, high, int(min(3 * (high - low), 4000)))
    log_odds, q = _log_odds(coarse, noise[:, None]), rate[:, None]
    rise = np.maximum(c * _log_modulus(log_odds, _odds(log_odds, q), q, 1.0), 0.0)
    peak = (rise - coarse**2 / 2).max(axis=1, keepdims=True)
    if not np.all(peak < 1e6):
        raise TooSlowError(f"the law tilted by {c:g} overflows")
    nearest = np.where(coarse[:-1] > 0, coarse[:-1], np.minimum(coarse[1:], 0.0))
    most = np.maximum(rise[:, 1:], rise[:, :-1]) - nearest**2 / 2
    inside = np.flatnonzero((most > peak - margin).any(axis=0))
    if inside[0] == 0 and left > _FURTHEST_LEFT:
        raise TooSlowError(f"the law tilted by {c:g} is too far out")
    a, b = coarse[max(inside[0] - 1, 0)], coarse[min(inside[-1] + 2, coarse.size - 1)]  # and a cell that is not
    cells: FloatArray = np.linspace(a, b, int(min((b - a) / min(0.3, 0.5 * float(noise.min())), 4000)) + 2)
    return cells


def _log_odds(u: FloatArray, sigma: FloatArray) -> FloatArray:
    """log ρ(u) without its factor q/(1 − q)."""
    return u / sigma - 1 / (2 * sigma**2)


def _odds(a: FloatArray, q: FloatArray) -> FloatArray:
    """ρ, or as much of it as may be squared."""
    return np.exp(np.minimum(a, SQUARE_EXPONENT)) * (q / (1 - q))


def _log_modulus(a: FloatArray, odds: FloatArray, q: FloatArray, cosine: FloatArray | float) -> FloatArray:
    """log|r| on Im u = σθ, from cos θ."""
    value: FloatArray = np.log1p(-q) + np.log1p(odds * (2 * cosine + odds)) / 2 + np.maximum(a - SQUARE_EXPONENT, 0.0)
    return value


class _Heights(NamedTuple):
    """What phases ask for at each height Y.

    The 1/h that a curve there asks of real nodes; the log of the largest size on Im u = Y at t = 0 (∞ if something is
    left beyond the cells); first and last cell of the window of real nodes, and of each height.
    """

    density: FloatArray
    resting: FloatArray
    windows: NDArray[np.intp]


def _needs(
    noise: FloatArray,
    rate: FloatArray,
    c: float,
    t_max: float,
    u: FloatArray,
    heights: FloatArray,
    margin: float,
) -> _Heights:
    """What these phases ask for; of the nodes on the real line alone where ``t_max`` is 0."""
    sigma, q = noise[:, None], rate[:, None]
    nearest = np.where(u[:-1] > 0, u[:-1], np.minimum(u[1:], 0.0))
    bell = np.broadcast_to(-(nearest**2) / 2, (noise.size, u.size - 1))  # largest in every cell
    log_odds = _log_odds(u, sigma)
    flat = _odds(log_odds, q)
    real = c * _log_modulus(log_odds, flat, q, 1.0)
    peak = np.maximum((np.maximum(real, 0.0) - u**2 / 2).max(axis=1, keepdims=True), 0.0)
    real = bell - peak + np.maximum(real[:, 1:], real[:, :-1])  # (phases, cells)

    angle = heights[:, None] / sigma[:, :, None]  # (phases, heights, 1)
    cosine, sine = np.cos(angle), np.sin(angle)
    odds = flat[:, None, :]
    turned = c * _log_modulus(log_odds[:, None, :], odds, q[:, :, None], cosine)
    still = np.maximum(turned[..., 1:], turned[..., :-1])
    deepest = c * (np.log1p(-q)[:, :, None] + np.log(sine)) if c < 0 else np.zeros(1)
    if c < 0:
        dips = (odds[..., :-1] <= -cosine) & (odds[..., 1:] >= -cosine)
        still = np.where(dips, deepest, still)
    rise = heights[:, None] ** 2 / 2 - peak[:, :, None]
    still = still + bell[:, None] + rise

    window = real > -margin
    moving = still
    ends = np.stack(_ends(window), axis=1)
    ends[:, 1] += 1
    at_ends = np.take_along_axis(odds, ends[:, None, :], axis=2)  # (phases, 1, 2)
    sink = max(-c, 0.0) * at_ends / (1 + 2 * at_ends * np.minimum(cosine, 0.0) + at_ends**2)
    if t_max > 0:
        moving = still + t_max * np.arctan2(odds * sine, 1 + odds * cosine)[..., 1:]  # grows with u
        swing = np.maximum(
            at_ends / (1 + at_ends),  # arg r ≤ this·θ for odds ≤ 1, where it is concave in θ, and
            np.arctan2(at_ends * sine, 1 + at_ends * cosine) / angle,  # where it is convex
        )
        sink = sink + t_max * swing
    moving = np.where(window[:, None, :], moving, 0.0).max(axis=2)
    descent = (heights[:, None] / 2 + sink / sigma[:, :, None]).max(axis=2)
    density = (np.maximum((margin + moving) / heights, 1.25 * descent) / (2 * math.pi)).max(axis=0)
    alive = (np.maximum(real, bell - peak) > -margin).any(axis=0)[None]
    if t_max == 0:
        return _Heights(density, np.zeros_like(heights), np.stack(_ends(alive)))

    # no height up to Y has anything left where this is negligible: for c ≥ 0 |r| is largest on the real line
    cover = np.maximum(still if c < 0 else real[:, None] + heights[:, None] ** 2 / 2, bell[:, None] + rise)
    resting = np.maximum(np.maximum(still.max(axis=2), rise[:, :, 0]), 0.0)
    if c < 0:
        beyond = np.where(odds[:, :, -1:] < -cosine, deepest + bell[:, None, -1:] + rise, -np.inf)[:, :, 0]
        resting = np.where(beyond > -margin, np.inf, resting)
    resting = np.where(cover[:, :, -1] > -margin, np.inf, resting)  # cut off: real nodes only
    covered = (cover > -margin).any(axis=0)  # (heights, cells)
    return _Heights(density, resting.max(axis=0), np.stack(_ends(np.concatenate([alive, covered]))))


def _ends(inside: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and last True of every row."""
    return inside.argmax(axis=1), inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
