"""One curve, other risks: what follows from a membership curve for secrets, predicates, groups and replaced records.

TPR(·) is the upper ROC, H0: the record is absent (law Q of the output), H1: it is present with content z (law P_z). It
is concave and non-decreasing. Everything here needs a curve that holds **for every content z and every rest of the
data**. Certificates of releases, curves of single records and profiles do not: n identical secret records and their
mean have membership advantage 0 without any noise, since which of them were drawn changes nothing, and yet everything
is published. Such curves are refused.

Sources: Hayes, Mahloujifar & Balle 2023 (reconstruction), Dong, Roth & Su 2022 (groups), Cohen & Nissim 2020 (singling
out as a legal notion). The proofs are in the docstrings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, integer, numbers
from deniable._floats import EPS
from deniable.curves import (
    EVERY_CASE,
    OPPOSITE,
    AnyDirection,
    ApproximateTradeoff,
    BracketTradeoff,
    Charged,
    Direction,
    GaussianTradeoff,
    Question,
    Side,
    Tradeoff,
)
from deniable.curves.answer import bound_of
from deniable.curves.safe import directions

_LADDER = 1 / (1 + np.exp(-np.sinh(np.linspace(-np.arcsinh(92.0), np.arcsinh(20.0), 129))))  # rates from 1e-40 on
_TRIED = np.linspace(-1.0, 1.0, 9)
_ROUNDS = 6  # each narrows the search for slopes fourfold, unless a parabola has found the least bound,
_SETTLED = 1e-5  # which it has where its prediction is this true
_POLISHED = 0.02  # the same around slopes that were found on sketches
_APART = 0.15  # log slopes around those of a ladder of tests in which the best ones are looked for first


def require_universal(tradeoff: Tradeoff, asked: str) -> None:
    """Raise ``InputError`` unless ``tradeoff`` holds for every content of the record and every rest of the data."""
    if not tradeoff.universal:
        raise InputError(
            f"{asked} needs a curve that holds for every content of a record and every rest of the data; this one "
            f"holds for {tradeoff.holds_for} only, and nothing follows from it for a secret that it did not vary (n "
            "identical secret records and their mean: no membership leaks, everything is published); use the curve of "
            "the mechanism, dn.tradeoff(mechanism)"
        )


def reconstruction(tradeoff: Tradeoff, baseline: ArrayLike, side: Side = "upper") -> float | FloatArray:
    """Return the largest probability of guessing a secret of a record: TPR(κ).

    ``baseline`` is κ = E_x max_a Pr(a ∈ B(z) | x), what the best guess reaches that never sees the output: z the
    record's content, x all that the attacker knows beforehand (the other records included), B(z) the guesses that count
    as right. It covers reconstruction, attribute inference and linkage. With m equally likely candidates κ = 1/m.

    *Proof.* Fix x. The guess a depends on the output and x. Success = E_z P_z(a ∈ B(z)) ≤ E_z TPR(Q(a ∈ B(z))), as
    {a ∈ B(z)} is a test for the presence of z; by concavity ≤ TPR(E_z Q(a ∈ B(z))), and under Q the output tells
    nothing of z, so that E_z Q(a ∈ B(z)) = E_a Pr(a ∈ B(z) | x) ≤ max_a Pr(a ∈ B(z) | x). Average over x: Jensen again.

    *The lower side* says what cannot be improved from the curve alone: some mechanism with this curve reaches TPR(κ).
    Let the output of the empty data set be uniform on a circle of length 1, and that of the record z a point at
    distance y from z, clockwise, y of density TPR'(y). Its curve is TPR; with z uniform and a guess right if it lies at
    most κ after z, blind guessing reaches κ and naming the output TPR(κ). A given mechanism may allow less.
    """
    require_universal(tradeoff, "reconstruction")
    numbers("baseline", baseline, at_least=0.0, at_most=1.0, hint="it is the chance of guessing right blindly")
    return tradeoff.tpr(baseline, side)


def attribute(tradeoff: Tradeoff, prior: ArrayLike, weights: ArrayLike | None = None, side: Side = "upper") -> float:
    """Return the largest probability of naming a record's attribute, given all its other data and the output.

    Parameters
    ----------
    tradeoff
        A curve that holds for every record and data set.
    prior
        P(attribute = a | x), shape (situations, values) or (values,) for a single situation; rows add up to 1. What the
        attacker knows (x) differs between situations, and with it the best blind guess: the largest prior of the
        attribute alone is unsafe wherever attributes correlate.
    weights
        How likely each situation is (equally, if None).
    side
        As in :func:`reconstruction`, which this is at κ = Σ_x weight_x · max_a prior[x, a].
    """
    return float(reconstruction(tradeoff, best_guess(prior, weights, side), side))


def best_guess(prior: ArrayLike, weights: ArrayLike | None = None, side: Side = "upper") -> float:
    """Return κ of :func:`attribute`: how often the best guess from the ``prior`` is right, rounded to ``side``."""
    rows = np.atleast_2d(numbers("prior", prior, at_least=0.0, at_most=1.0))
    if rows.ndim != 2 or rows.size == 0 or not np.allclose(rows.sum(axis=1), 1.0, rtol=0.0, atol=1e-6):
        raise InputError("prior must hold distributions: shape (situations, values), each row adding up to 1")
    w = np.ones(len(rows)) if weights is None else numbers("weights", weights, at_least=0.0, below=np.inf)
    if w.shape != (len(rows),) or not w.sum() > 0:
        raise InputError(f"weights must be {len(rows)} numbers that are not all 0, one a situation")
    best = float(np.sum(w / w.sum() * rows.max(axis=1)))
    slack = 8 * EPS * len(rows) * (1 if side == "upper" else -1)
    return min(max(best * (1 + slack), 0.0), 1.0)


def singling_out(tradeoff: Tradeoff, n: ArrayLike, weight: ArrayLike, side: Side = "upper") -> float | FloatArray:
    """Return the largest probability that a predicate read off the output matches exactly one of the ``n`` records.

    The records are drawn independently from a population in which the predicate (which may depend on the output)
    has weight at most ``weight``: the probability that a fresh person matches it.

    *Proof.* P(exactly one matches) ≤ Σ_i P(record i matches). Fix the other n − 1 records and write z for the i-th
    and W for the predicate: P(z ∈ W) = E_z P_z(z ∈ W) ≤ TPR(E_z Q(z ∈ W)) = TPR(E_W weight(W)) ≤ TPR(w), as in
    :func:`reconstruction`, since under Q the output does not depend on z. Hence at most min(1, n·TPR(w)). With a
    curve for replacing a record Q is the output for a fixed record instead, and the same holds.

    *The lower side* needs no output at all: a predicate fixed beforehand of weight v = min(w, 1/n) matches exactly
    one record with probability n·v·(1 − v)^{n−1} (if the population has predicates of every weight).
    """
    require_universal(tradeoff, "singling_out")
    counts = numbers("n", n, at_least=1.0, below=np.inf, hint="it is the number of records")
    if not np.array_equal(counts, np.floor(counts)):
        raise InputError(f"n must be a whole number of records, got {n!r}")
    w = numbers("weight", weight, at_least=0.0, at_most=1.0, hint="it is the share of the population that matches")
    counts, w = np.broadcast_arrays(counts, w)
    if side == "upper":
        found = np.minimum(counts * np.asarray(tradeoff.tpr(w, side)) * (1 + 2 * EPS), 1.0)
    elif side == "lower":
        v = np.minimum(w, 1 / counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(counts == 1, 1.0, np.exp((counts - 1) * np.log1p(-v)))
        found = np.maximum(counts * v * alone * (1 - 1e-12 - 4 * EPS * counts * v), 0.0)
    else:
        raise InputError(f"side must be one of 'upper', 'lower', got {side!r}")
    return float(found) if found.ndim == 0 else np.asarray(found)


def group(tradeoff: Tradeoff, k: int) -> Tradeoff:
    """Return the curve for a group of ``k`` records that are all in or all out: TPR∘…∘TPR, k times.

    *Proof.* Let R_j be the law with j of the records. R_j(S) ≤ TPR(R_{j−1}(S)) for every test S, and TPR is
    non-decreasing; substitute k times. For the Gaussian pair this is the pair with k·μ, and the sum of k equal
    vectors attains it. For DP-SGD :class:`~deniable.SubsampledGaussian` with ``records_per_person``, where it is
    offered, is sharper.

    The lower side is that of one record: a group of which the others change nothing.
    """
    require_universal(tradeoff, "group")
    count = integer("k", k, at_least=1, hint="it is the number of records of the group")
    if count == 1:
        return tradeoff
    many = {
        "add or remove one record": f"add or remove a group of {count} records",
        "replace one record": f"replace a group of {count} records",
    }
    told = replace(
        tradeoff.assumptions,
        adjacency=many.get(tradeoff.assumptions.adjacency, f"{count} times: {tradeoff.assumptions.adjacency}"),
    )
    if isinstance(tradeoff, GaussianTradeoff):
        return replace(tradeoff, mu=_up(count * tradeoff.mu), assumptions=told)
    if isinstance(tradeoff, BracketTradeoff):
        above = group(replace(tradeoff.above, holds_for=EVERY_CASE), count)
        return replace(tradeoff, above=above, assumptions=told)
    return ChainTradeoff(
        ((tradeoff, "add"),) * count,
        method=f"{tradeoff.method}; composed {count} times for a group",
        assumptions=told,
        confidence=tradeoff.confidence,
        holds_for=EVERY_CASE,
    )


def replaced(tradeoff: Tradeoff, *, any_mechanism: bool = False) -> Tradeoff:
    """Return the curve for *replacing* one record: TPR_add∘TPR_remove of a curve for adding or removing one.

    *Proof.* From the data with z' to those without it, and on to those with z: for every test S,
    P_z(S) ≤ TPR_add(Q(S)) and Q(S) ≤ TPR_remove(P_z'(S)). For the Gaussian pair this is exactly 2μ, which a sum of
    vectors attains that z and z' pull apart.

    *Lower side.* With ``any_mechanism=True`` the curve stands for all mechanisms with a guarantee, and the bound is
    attained by one of them: let Q be uniform on [0, 1), P_z have the density TPR_add'(u), and P_z' the cumulative
    distribution with TPR_remove(P_z'[0, u)) = u. Then p_z/p_z' decreases and the tests [0, u) are optimal. So an ε-DP
    mechanism allows TPR = min(e^{2ε}x, x + 1 − e^{−ε}, 1 − e^{−2ε}(1 − x)), which is less than what 2ε-DP does.
    Otherwise it is that of the two directions themselves: a record z' (or z) that changes nothing.
    """
    require_universal(tradeoff, 'adjacency="replace"')
    told = replace(tradeoff.assumptions, adjacency="replace one record")
    if isinstance(tradeoff, GaussianTradeoff):
        return replace(tradeoff, mu=2 * tradeoff.mu, assumptions=told)
    if isinstance(tradeoff, BracketTradeoff):
        above = replaced(replace(tradeoff.above, holds_for=EVERY_CASE))
        return replace(tradeoff, above=above, assumptions=told)
    return ChainTradeoff(
        ((tradeoff, "remove"), (tradeoff, "add")),
        any_mechanism,
        method=f"{tradeoff.method}; a removal followed by an addition",
        assumptions=told,
        confidence=tradeoff.confidence,
        holds_for=EVERY_CASE,
    )


@dataclass(frozen=True)
class ChainTradeoff(Tradeoff):
    """A walk over worlds W_0, …, W_k of which each neighbouring pair has a known curve: TPR_k∘…∘TPR_1.

    ``links`` holds the curves and their directions, from the null world on. Upper sides of hockey sticks follow from
    TPR_j(y) ≤ g_j·y + H_j(g_j) for any slopes g_j ≥ 0: with Π g_j ≤ γ,

        H_γ ≤ H_k(g_k) + g_k·H_{k−1}(g_{k−1}) + … + g_k⋯g_2·H_1(g_1).

    The slopes are searched for (the best ones are those of the curves at the best test); whatever they are, the bound
    holds. Lower sides: those of the links, or with ``attained`` what the composed lower sides reach at some test.
    """

    links: tuple[tuple[Tradeoff, Direction], ...]
    attained: bool = False
    _epsilon_apart: ClassVar[float] = 1e-9  # each δ(ε) is a search of its own

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        if question == "hockey stick":  # of every link at a slope of its own
            return Charged(self.method)
        engines, rate = [], at
        for curve, way in self._walk(direction):
            engines.append(curve._charged(question, rate, way).engine if 0 < rate < 1 else curve.method)
            rate = bound_of(curve, question, rate, way, "upper")
        return Charged(f"a chain of curves: {', '.join(dict.fromkeys(engines))}")

    def _walk(self, direction: Direction) -> tuple[tuple[Tradeoff, Direction], ...]:
        """The links from the null world of ``direction`` on."""
        return self.links if direction == "add" else tuple((t, OPPOSITE[d]) for t, d in reversed(self.links))

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        walk = self._walk(direction)
        if side == "upper" or self.attained:
            rate = fpr
            for curve, way in walk:
                rate = np.clip(curve._rates(rate, way, side), rate, 1.0)
            return rate
        best: FloatArray = np.max([curve._rates(fpr, way, side) for curve, way in walk], axis=0)
        return best

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        trivial = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0)
        walk = self._walk(direction)
        if side == "lower":
            each = [curve._hockey_sticks(log_gamma, way, side) for curve, way in walk]
            found: FloatArray = np.max([*each, self._reached(log_gamma, direction), trivial * (1 - 4 * EPS)], axis=0)
            return found
        bound = np.ones_like(log_gamma)
        inside = np.isfinite(log_gamma)
        bound[np.isposinf(log_gamma)] = self._roc(np.zeros(1), direction, side)[0]
        above = inside & (log_gamma >= 0)
        if above.any():
            bound[above] = self._searched(log_gamma[above], direction)
        below = inside & (log_gamma < 0)  # H_γ = 1 − γ + γ·H_{1/γ} with the worlds exchanged
        if below.any():
            gamma = np.exp(log_gamma[below])
            value = -np.expm1(log_gamma[below]) + gamma * self._searched(-log_gamma[below], OPPOSITE[direction])
            bound[below] = value * (1 + 8 * EPS)
        return np.clip(bound, trivial, 1.0)

    def _largest_log_ratio(self, direction: Direction) -> float:
        return sum(curve._ratio_bound(way, "upper") for curve, way in self._walk(direction)) * (1 + 4 * EPS)

    def _least_log_ratio(self, direction: Direction) -> float:
        known = [curve._ratio_bound(way, "lower") for curve, way in self._walk(direction)]
        return sum(known) * (1 - 4 * EPS) if self.attained else max(known)

    def _epsilon_near(self, delta: FloatArray, direction: AnyDirection) -> tuple[FloatArray, FloatArray]:
        """From the tangents at the ladder's tests, where they are known."""
        found = []
        for way in directions(direction):
            total, _, heights = self._slopes[way]
            known = heights > 0
            if known.any():
                logs = np.minimum.accumulate(np.log(heights[known]))
                found.append(np.interp(np.log(delta), logs[::-1], total[known][::-1]))
        if found:
            near: FloatArray = np.max(found, axis=0)
            return near, 0.01 * (1 + np.abs(near))
        each = [curve._epsilon_near(delta, direction) for curve, _ in self.links]
        return np.sum([at for at, _ in each], axis=0), np.max([step for _, step in each], axis=0) + 0.1

    def sketch(self) -> Tradeoff:
        """Return the chain of the links' sketches."""
        return self._sketched

    def _bound(self, slopes: FloatArray, walk: tuple[tuple[Tradeoff, Direction], ...]) -> FloatArray:
        """The bound of the class docstring at log slopes of shape (links, points)."""
        total, later = np.zeros(slopes.shape[1]), np.zeros(slopes.shape[1])
        for (curve, way), slope in zip(reversed(walk), slopes[::-1], strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                term = np.exp(later) * curve._hockey_sticks(slope, way, "upper")
            total += np.where(np.isnan(term), np.inf, term)
            later = later + slope
        far = np.abs(slopes).sum(axis=0)
        return np.asarray(total * (1 + (4 * len(walk) + 4 * far) * EPS))

    def _searched(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """The smallest bound found over slopes, for γ ≥ 1: found on sketches of the curves, then on the curves."""
        walk = self._walk(direction)
        rough = self._sketched._walk(direction)
        starts = self._starts(log_gamma, direction)
        known = bool(starts)
        if all(a is b for (a, _), (b, _) in zip(walk, rough, strict=True)):
            return self._descent(log_gamma, walk, starts, _APART if known else 0.25, _ROUNDS)[1]
        near, _ = self._descent(log_gamma, rough, starts, _APART if known else 0.25, _ROUNDS)
        return self._descent(log_gamma, walk, [near], _POLISHED, 1)[1]

    @cached_property
    def _sketched(self) -> ChainTradeoff:
        """The sketch, kept for what it keeps."""
        return replace(self, links=tuple((curve.sketch(), way) for curve, way in self.links))

    def _descent(
        self,
        log_gamma: FloatArray,
        walk: tuple[tuple[Tradeoff, Direction], ...],
        starts: list[FloatArray],
        apart: float,
        rounds: int,
    ) -> tuple[FloatArray, FloatArray]:
        """Log slopes, and the smallest bound found from ``starts`` on, or from equal slopes."""
        count = len(walk)
        best, value = np.empty((count, log_gamma.size)), np.full(log_gamma.size, np.inf)

        def take(slopes: FloatArray) -> None:
            nonlocal best, value
            slopes = slopes.copy()
            rest = slopes[1:].sum(axis=0)
            slopes[0] = log_gamma - rest
            slopes[0] -= 8 * count * EPS * (np.abs(log_gamma) + np.abs(slopes[1:]).sum(axis=0))  # Π g_j ≤ γ
            found = self._bound(slopes, walk)
            better = found < value
            best, value = np.where(better, slopes, best), np.where(better, found, value)

        for start in starts or [np.broadcast_to(log_gamma / count, best.shape)]:
            take(start)
        rows = np.arange(log_gamma.size)
        for i in range(1, count):  # the bound is convex in each slope: H is in γ, and so is g·H(γ/g) in g
            radius = apart * (1 + np.abs(best[i]))
            for _ in range(rounds):
                tried = best[:, :, None] + np.zeros(_TRIED.size)
                tried[i] += radius[:, None] * _TRIED
                tried[i - 1] -= radius[:, None] * _TRIED
                tried[0] -= 8 * count * EPS * np.abs(tried).sum(axis=0)
                found = self._bound(tried.reshape(count, -1), walk).reshape(log_gamma.size, -1)
                which = np.argmin(found, axis=1)
                better = found[rows, which] < value
                value = np.where(better, found[rows, which], value)
                best = np.where(better, tried[:, rows, which], best)
                within = np.clip(which, 1, _TRIED.size - 2)
                moved, least = _vertex(*(found[rows, within + k] for k in (-1, 0, 1)))
                slopes = tried[:, rows, within]
                slopes[i] += moved * radius * (_TRIED[1] - _TRIED[0])
                slopes[i - 1] -= moved * radius * (_TRIED[1] - _TRIED[0])
                take(slopes)
                if np.all((within == which) & (value <= least * (1 + _SETTLED))):
                    break
                radius = np.where(within == which, radius / 4, 2 * radius)
        return best, value

    def _starts(self, log_gamma: FloatArray, direction: Direction) -> list[FloatArray]:
        """Slopes to begin with: those of the curves where their product is γ, and those of the kinks of (ε, δ)-DP."""
        starts = []
        total, slopes, _ = self._slopes[direction]
        if total.size:
            starts.append(np.array([np.interp(log_gamma, total, slope) for slope in slopes]))
        kinks = [curve.guaranteed_epsilon for curve, _ in self.links if isinstance(curve, ApproximateTradeoff)]
        if len(kinks) == len(self.links):
            for order in (range(len(kinks)), range(len(kinks) - 1, -1, -1)):
                for fill in ("all", "some", "none"):
                    start, rest = np.empty((len(kinks), log_gamma.size)), log_gamma.copy()
                    for j in order:
                        start[j] = (
                            np.minimum(rest, kinks[j]) if fill == "some" else kinks[j] * (2 * (fill == "all") - 1)
                        )
                        rest = rest - start[j]
                    start[order[-1]] += rest
                    starts.append(start)
        return starts

    @cached_property
    def _slopes(self) -> dict[Direction, tuple[FloatArray, FloatArray, FloatArray]]:
        """For either direction, by growing sum: log slopes of all links along a ladder of tests, tangents' heights."""
        found: dict[Direction, tuple[FloatArray, FloatArray, FloatArray]] = {}
        for direction in ("add", "remove"):
            rates = [_LADDER]
            slopes = []
            for curve, way in self._walk(direction):
                rates.append(curve.sketch()._rates(rates[-1], way, "upper"))
                with np.errstate(divide="ignore", invalid="ignore"):
                    slopes.append(np.log(np.diff(rates[-1]) / np.diff(rates[-2])))
            stacked = np.array(slopes)[:, ::-1]
            fine = np.isfinite(stacked).all(axis=0)
            stacked = stacked[:, fine]
            total = stacked.sum(axis=0)
            order = np.argsort(total, kind="stable")
            with np.errstate(over="ignore", invalid="ignore"):
                heights = (rates[-1][1:][::-1][fine] - np.exp(total) * _LADDER[1:][::-1][fine])[order]
            found[direction] = total[order], stacked[:, order], np.nan_to_num(heights, nan=0.0, posinf=0.0, neginf=0.0)
        return found

    def _reached(self, log_gamma: FloatArray, direction: Direction) -> FloatArray:
        """What the composed lower sides reach at the tests of the ladder and at kinks, if they are attained."""
        if not self.attained:
            return np.zeros_like(log_gamma)
        tests = np.concatenate([[0.0], _LADDER, self._kinks(direction), [1.0]])
        hits = self._roc(tests, direction, "lower")
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(log_gamma)[:, None]
            value = hits - np.where(tests > 0, gamma * tests, 0.0)
            value = value - 4 * EPS * (1 + np.where(tests > 0, gamma * tests, 0.0))
        return np.asarray(np.nan_to_num(value, nan=0.0, neginf=0.0).max(axis=1).clip(0.0, 1.0))

    def _kinks(self, direction: Direction) -> FloatArray:
        """False positive rates at which a composition of (ε, δ)-DP curves bends."""
        walk = self._walk(direction)
        bends: list[float] = []
        for j, (curve, _) in enumerate(walk):
            if not isinstance(curve, ApproximateTradeoff):
                continue
            rate = (1 - curve.guaranteed_delta) / (1 + np.exp(curve.guaranteed_epsilon))
            for earlier, _ in reversed(walk[:j]):  # TPR⁻¹(y) = 1 − TPR of the exchanged worlds at 1 − y, symmetric here
                rate = 1 - float(earlier._rates(np.array([1 - rate]), "add", "lower")[0])
            bends.append(min(max(rate, 0.0), 1.0))
        return np.array(bends)


def _vertex(before: FloatArray, middle: FloatArray, after: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where the parabola through three values a step apart is least, in steps from the middle, and how much it is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = before - 2 * middle + after
        at = np.where(bend > 0, (before - after) / (2 * bend), 0.0)
    at = np.clip(np.nan_to_num(at), -1.0, 1.0)
    return at, middle - 0.25 * at * (before - after)


def _up(value: float) -> float:
    return float(np.nextafter(value, np.inf)) if 0 < value < np.inf else value
