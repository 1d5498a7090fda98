"""Rare large losses of Gaussian mixtures: small ones on a lattice, large ones one by one.

Lines converge slowly where a tail is made by one or a few steps that show much, a thousand times as much as most do.
In real space everything is positive. Let S be the likelihood ratio of one step under Q, and c its infimum.

- *Points.* The law of S is replaced by one on points, once larger and once smaller in convex order
  (:mod:`deniable.accounting.steps.convex_order`, where it is proven that this brackets both hockey sticks under every
  composition): points c·e^{ηj} up to a place, "small", and a ladder beyond, "large".
- *How many are large.* The points are a partition, so that T steps are sorted by how many of them are large: with h and
  g the measures of small and large points, the law of the product of all ratios is

      Σ_m C(T, m)·h^{*(T − m)} * g^{*m},

  an identity, not a bound. What m > M steps hold is left out and charged: at most C(T, M + 1)·x^{M + 1} with x the mass
  of a large step, by the union bound over the sets of M + 1 steps that are all large.
- *Powers.* h^{*n} lives on c^n·e^{ηj}. Arrays of positive numbers are convolved directly, so that rounding is relative
  however small a tail; on the way lattices are made coarser, once larger and once smaller in convex order, which
  products with independent ratios preserve. g^{*m} is brought onto a ladder in the same way.
- *Questions.* With masses g_b at ratios r_b: H_γ = Σ_m C(T, m)·Σ_b g_b·r_b·H^{h, T − m}_{γ/r_b}. TPR ≤ γα + H_γ at any
  γ, of the larger law. Of the smaller law two tests "the ratio is above γ" with rates around α, one of them taken at
  random, have a rate of α and a true positive rate that an attacker reaches.

Errors: masses of single points are known up to a factor, which counts T times; what is pooled in convex order by slopes
has an absolute error that is relative where the point's mass allows it, else lost mass; left-out ends and outcomes
beyond the last point are lost, or count as giving the person away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._search import bisect
from deniable.accounting.engines.beside_finite import line, one_of_two
from deniable.accounting.engines.loss_points import SLACK, PointPlan, pooling_errors, small_powers
from deniable.accounting.steps.convex_order import Atoms, above, below
from deniable.accounting.steps.finite_law import FiniteLaw
from deniable.accounting.steps.gaussian_mixture import GaussianMixtureStep
from deniable.accounting.transform.mixture import MixtureLoss
from deniable.curves import Charged, Direction, Question, Side, Tradeoff

_MOST_LARGE = 11  # large steps of a run, and
_NOTHING = 1e-19  # mass of P with even more
_MOST_SUM = 600.0  # log-ratios of several large steps: masses under Q would underflow beyond
_PAIRS, _MORE, _OF_SEVERAL = 1500, 250, 4000  # points of one large step among two, and among several; of their products
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class _Part:
    """Runs in which this many steps are large: the law of these, and that of all others."""

    large: FiniteLaw
    small: FiniteLaw

    def swapped(self) -> _Part:
        """The worlds exchanged."""
        return _Part(self.large.swapped(), self.small.swapped())

    def hockey_stick(self, log_gamma: FloatArray, side: Side) -> FloatArray:
        """Σ_b P_b·H(log γ − l_b)."""
        sign = 1.0 if side == "upper" else -1.0
        level = np.subtract.outer(log_gamma, self.large.log_ratio)
        level -= sign * (2 * self.large.shift + 4 * EPS * (np.abs(log_gamma)[:, None] + np.abs(self.large.log_ratio)))
        found = self.small.hockey_stick(level.ravel(), side).reshape(level.shape) @ self.large.p
        extra = self.large.lost[0] + (self.large.only[0] if side == "upper" else 0.0)
        return np.asarray(found * (1 + sign * self._error) + sign * extra * SLACK)

    @property
    def _error(self) -> float:
        return self.large.relative_error + self.large.shift + (64 + self.large.p.size) * EPS

    def rates(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """False and true positive rates of the tests "the loss is above a level", the one rounded up, the other down.

        Outcomes far above the level, or below, are accepted, or refused, whatever the others are.
        """
        law, small = self.large, self.small
        hits, rates, error = small.tails
        above_p, above_q = self._above
        error = error + self._error
        found = np.zeros((2, level.size))
        for k, at in enumerate(level):
            first, last = np.searchsorted(law.log_ratio, [at - small.log_ratio[-1], at - small.log_ratio[0]])
            last = min(last + 1, law.log_ratio.size)
            place = np.searchsorted(small.log_ratio, at - law.log_ratio[first:last], side="right")
            found[0, k] = law.q[first:last] @ rates[place] + above_q[last] * rates[0]
            found[1, k] = law.p[first:last] @ hits[place] + above_p[last] * hits[0]
        return found[0] * (1 + error), found[1] * (1 - error)

    @cached_property
    def _above(self) -> tuple[FloatArray, FloatArray]:
        p, q = (np.append(np.cumsum(mass[::-1])[::-1], 0.0) for mass in (self.large.p, self.large.q))
        return p, q


@dataclass(frozen=True, eq=False)
class RareLossesTradeoff(Tradeoff):
    """Brackets from runs sorted by how many of their steps show much."""

    above: tuple[_Part, ...]
    below: tuple[_Part, ...]
    method: str = field(default="large losses one by one beside small ones on a lattice", kw_only=True)

    @cached_property
    def _swapped(self) -> RareLossesTradeoff:
        parts = (tuple(part.swapped() for part in side) for side in (self.above, self.below))
        return RareLossesTradeoff(*parts, method=self.method)

    def _hockey_stick(self, log_gamma: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if direction == "remove":
            return self._swapped._hockey_stick(log_gamma, "add", side)
        parts = self.above if side == "upper" else self.below
        total = np.sum([part.hockey_stick(log_gamma, side) for part in parts], axis=0)
        total = total * (1 + (16 * EPS if side == "upper" else -16 * EPS))
        least = np.maximum(-np.expm1(np.minimum(log_gamma, 0.0)), 0.0) * (1 - 4 * EPS)
        return np.asarray(np.clip(total, least, 1.0))

    def _roc(self, fpr: FloatArray, direction: Direction, side: Side) -> FloatArray:
        if direction == "remove":
            return self._swapped._roc(fpr, "add", side)
        inside, bound = (fpr > 0) & (fpr < 1), fpr.copy() if side == "lower" else np.ones_like(fpr)
        if not inside.any():
            return bound
        alpha = fpr[inside]
        more, less = self._levels(alpha)
        if side == "upper":
            bound[inside] = np.minimum(line(less, alpha) + self._hockey_stick(less, "add", "upper"), 1.0)
            return bound
        reached = one_of_two(alpha * (1 - 8 * EPS), self._rates_at(more), self._rates_at(less))
        bound[inside] = np.fmax(alpha, reached)
        return bound

    def _rates_at(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        rate, hit = (np.sum(x, axis=0) for x in zip(*(part.rates(level) for part in self.below), strict=True))
        wrong_hit, wrong_rate = (math.fsum(part.large.lost[k] for part in self.below) * SLACK for k in (0, 1))
        return rate * (1 + 16 * EPS) + wrong_rate, np.maximum(hit * (1 - 16 * EPS) - wrong_hit, 0.0)

    def _levels(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Neighbouring levels of which the tests have larger, and smaller, false positive rates."""
        low = min(float(part.large.log_ratio[0] + part.small.log_ratio[0]) for part in self.below) - 1.0
        high = max(float(part.large.log_ratio[-1] + part.small.log_ratio[-1]) for part in self.below) + 1.0
        ends = np.full(alpha.shape, high), np.full(alpha.shape, low)
        less, more = bisect(lambda level: self._rates_at(level)[0] <= alpha, *ends, halvings=_HALVINGS)
        return more, less

    def _largest_log_ratio(self, direction: Direction) -> float:
        return math.inf

    def _supplied(self, question: Question, at: float, direction: Direction) -> Charged:
        return Charged(self.method)


def rare_losses(loss: MixtureLoss) -> RareLossesTradeoff | None:
    """Return this engine for equal steps and nothing else; None where their losses are not small but for rare ones."""
    if len(loss.parts) != 1 or loss.gaussian > 0 or loss.randomized_responses:
        return None
    ((step, count),) = loss.parts
    if not isinstance(step, GaussianMixtureStep) or count < 2:
        return None
    plan = PointPlan.of(step, count)
    if plan is None:
        return None
    return RareLossesTradeoff(*(tuple(_composed(plan, side)) for side in ("upper", "lower")))


def _composed(plan: PointPlan, side: Side) -> Iterator[_Part]:
    """All runs, by how many of their steps are large."""
    step, count = plan.one(side), plan.count
    mean_p, mean_q = (count * float(mass.sum()) for mass in (step.large.p, step.large.q))
    most = 1
    while most < min(count, _MOST_LARGE) and max(_rest(mean_p, most + 1), _rest(mean_q, most + 1)) > _NOTHING:
        most += 1
    several = _powers(step.large, most, side)
    factor = 1.0
    for m, small in enumerate(small_powers(step.small, plan, most, side)):
        factor *= (count - m + 1) / m if m else 1.0
        large = _several(several[m - 1], factor, m) if m else _none_large(step.large, count)
        hidden = [float(mass.sum()) * SLACK for mass in (large.p, large.q)]
        lost = [x + y * mass for x, y, mass in zip(large.lost, small.lost, hidden, strict=True)]
        if m == most and most < count:
            lost = [x + _rest(mean, most + 1) for x, mean in zip(lost, (mean_p, mean_q), strict=True)]
        yield _Part(replace(large, lost=(lost[0], lost[1])), replace(small, lost=(0.0, 0.0)).law())


def _rest(mean: float, count: int) -> float:
    """Bound on the mass of runs with ``count`` large steps or more, given a bound on their mean number."""
    return mean**count / math.factorial(count) * (1 + 1e-9)


def _none_large(large: FiniteLaw, count: int) -> FiniteLaw:
    """What is beyond the last point, or missing, in any of all steps, is charged here."""
    one = np.ones(1)
    lost = count * large.lost[0], count * large.lost[1]
    return FiniteLaw(np.zeros(1), one, one, only=(min(count * large.only[0], 1.0) * SLACK, 0.0), lost=lost)


def _several(law: FiniteLaw, factor: float, count: int) -> FiniteLaw:
    """That many large steps among all."""
    error = law.relative_error + 4 * count * EPS
    only, lost = ((x * factor * SLACK, y * factor * SLACK) for x, y in (law.only, law.lost))
    return replace(law, p=law.p * factor, q=law.q * factor, relative_error=error, only=only, lost=lost)


def _powers(large: FiniteLaw, most: int, side: Side) -> list[FiniteLaw]:
    """Laws of 1, 2, … large steps."""
    one = replace(large, only=(0.0, 0.0), lost=(0.0, 0.0))
    found = [one]
    for m in range(2, most + 1):
        found.append(_product(_thin(found[-1], _PAIRS, side), _thin(one, _PAIRS if m == 2 else _MORE, side), side))
    return found


def _thin(law: FiniteLaw, most: int, side: Side) -> FiniteLaw:
    """At most about so many points."""
    every = -(-law.q.size // most)
    if every < 2:
        return law
    return _onto(law, np.append(law.log_ratio[:-1:every], law.log_ratio[-1]), side)


def _onto(law: FiniteLaw, log_nodes: FloatArray, side: Side) -> FiniteLaw:
    """The same on other points, larger or smaller in convex order; logarithms of points are sorted."""
    points = np.exp(law.log_ratio)
    nodes = np.exp(log_nodes)
    nodes[0], nodes[-1] = min(nodes[0], points[0]), max(nodes[-1], points[-1])
    spread = (above if side == "upper" else below)(Atoms(points, law.q), nodes)
    seen = spread.mass > 0
    relative, lost = pooling_errors(spread, nodes)
    lost = law.lost[0] + lost[0], law.lost[1] + lost[1]
    ratio = np.log(nodes[seen])
    shift = law.shift + 16 * EPS * (1 + float(np.max(np.abs(ratio), initial=0.0)))
    error = law.relative_error + 16 * EPS + relative + law.q.size * EPS
    return FiniteLaw(ratio, spread.mass[seen] * nodes[seen], spread.mass[seen], error, shift, law.only, lost)


def _product(a: FiniteLaw, b: FiniteLaw, side: Side) -> FiniteLaw:
    """One after the other, on a ladder.

    Beyond its end P is all there is: from above that counts as giving the person away; from below it stands on the end.
    What that does to Q, less than e^{−600}, is charged.
    """
    ratio, mass = np.add.outer(a.log_ratio, b.log_ratio).ravel(), np.multiply.outer(a.q, b.q).ravel()
    error = a.relative_error + b.relative_error + 4 * EPS
    masses = ((float(law.p.sum()), float(law.q.sum())) for law in (a, b))
    lost = [(x * (v + y) + y * u) * SLACK for x, y, u, v in zip(a.lost, b.lost, *masses, strict=True)]
    only, far = a.only[0] * float(b.p.sum()) * SLACK, ratio > _MOST_SUM
    if far.any():
        hit, least = float(np.multiply.outer(a.p, b.p).ravel()[far].sum()), math.exp(-_MOST_SUM)
        lost[1] += hit * least * SLACK
        ratio, mass = ratio[~far], mass[~far]
        if side == "upper":
            only += hit * (1 + error) * SLACK
        else:
            ratio, mass = np.append(ratio, _MOST_SUM), np.append(mass, hit * (1 - error) / SLACK * least)
    order = np.argsort(ratio, kind="stable")
    shift = a.shift + b.shift + 4 * EPS * float(np.max(np.abs(ratio), initial=0.0))
    whole = FiniteLaw(ratio[order], mass[order], mass[order], error, shift, (only, 0.0), (lost[0], lost[1]))
    low, high = float(whole.log_ratio[0]), float(whole.log_ratio[-1])
    nodes = low + (high - low) * np.linspace(0.0, 1.0, _OF_SEVERAL) ** 3
    return _onto(whole, nodes, side)
