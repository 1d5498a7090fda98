"""Bets against ROC ceilings: what a bettor who doubts a promise gains, and how the bets are chosen.

A *bet* is a threshold t, a slope γ > 0, a point q₀ and a stake c ≥ 0, all fixed before the pair that they are used on.
Let the promise say that no attack exceeds the ROC g, and let δ = sup_q g(q) − γq (the hockey stick H_γ). For a member's
score X and a nonmember's score Y, with p₀ = δ + γq₀, a bet multiplies the capital by

    S = (1 + c·(1{X > t} − p₀)) · (1 − cγ·(1{Y > t} − q₀))        (0 if c·p₀ ≥ 1).

*Nobody gains on average under the promise.* Given the past, let X and Y be independent with P(X > t) = p and P(Y > t) =
q, any rates with p ≤ g(q). Then E[S] = (1 + x)(1 + y) with x = c(p − p₀) and y = −cγ(q − q₀). Stakes keep both factors
at least 0, hence E[S] ≤ exp(x + y), and x + y = c(p − γq − δ) ≤ 0 as p ≤ g(q) ≤ δ + γq. So the capital is a nonnegative
supermartingale, and by Ville's inequality the probability that it ever reaches 1/a is at most a, however often one
looks.

*Bets do not depend on the promise* that they test, and S falls as δ grows: the more a promise allows, the less is
gained against it, bet by bet. All conclusions are therefore nested: a promise below a refuted one is refuted.

The best bet at a threshold with true rates (p, q) is the ratio of (p, q) to the closest permitted point in
relative entropy; at the line p = δ + γq that point is (p₀, q₀) (Turner, Ly & Grünwald 2024, for convex hypotheses).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, IntArray
from deniable._search import bisect
from deniable.audit.fixed_sample import candidate_ranks
from deniable.curves import ApproximateTradeoff, GaussianTradeoff, Tradeoff

_FINE, _WIDE = np.arange(-40, 41) / 10, np.array([5.0, 6.0, 7.0, 8.0, 10.0])
GAMMAS: FloatArray = np.exp(np.concatenate([-_WIDE[::-1], _FINE, _WIDE]))  # slopes γ that bets may use

# ε, μ and advantages of the curves against which the bets for limits of whole families are tuned
EPSILONS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0)
MUS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
ADVANTAGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

THRESHOLDS = 3  # chosen for each reference curve
_TAIL = 0.1  # a threshold with a rate up to this counts as one in a tail
_SHARE = 0.7  # of the stake that would be best if the past rates were the true ones: they are estimates
_HALVINGS = 26  # of [0, 1]: q₀ is then known to 1.5e-8
_FIRST = 4  # pairs without bets, since nothing is known before them
GROWTH = 1.1  # of the number of pairs, or of guesses, from one look at them to the next
ROUNDING = 1e-9  # rounding error charged to logarithms of the capital
_LARGEST = 0.99  # of a stake, as a share of what keeps the capital above 0


@dataclass(frozen=True, eq=False)
class Bets:
    """One bet per strategy, as arrays of one shape; ``gamma`` are indices into :data:`GAMMAS`."""

    threshold: FloatArray
    gamma: IntArray
    q0: FloatArray
    stake: FloatArray

    @classmethod
    def joined(cls, each: list[Bets]) -> Bets:
        """Return bets made at several times as arrays, one row per time."""
        names = ("threshold", "gamma", "q0", "stake")
        return cls(*(np.stack([getattr(bets, name) for bets in each]) for name in names))

    @classmethod
    def none(cls, strategies: int) -> Bets:
        """Return bets with stake 0, for a time at which nothing is known."""
        zero = np.zeros(strategies)
        return cls(zero, np.zeros(strategies, dtype=np.int64), zero, zero)


def log_gain(bets: Bets, above: IntArray, false: IntArray, pairs: ArrayLike, delta: FloatArray) -> FloatArray:
    """Return log of the product of S (module docstring) over ``pairs`` pairs, for a promise with H_γ = ``delta``.

    ``above`` and ``false`` count members and nonmembers above the threshold; ``delta`` belongs to GAMMAS.
    """
    slope, q0, stake = GAMMAS[bets.gamma], bets.q0, bets.stake
    p0, n = delta[bets.gamma] + slope * q0, np.asarray(pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.log1p(-np.minimum(stake * p0, 1.0))
        gained = above * np.log1p(np.maximum(stake * (1 - p0), -1.0)) + (n - above) * lost
        gained = np.where(stake * p0 < 1, gained, np.where(n > 0, -np.inf, 0.0))
    tipped = stake * slope
    kept = false * np.log1p(-tipped * (1 - q0)) + (n - false) * np.log1p(tipped * q0)
    return np.asarray(gained + kept)


@cache
def reference_curves() -> FloatArray:
    """Return H_γ of the curves against which the bets for families are tuned, shape (curves, slopes)."""
    curves: list[Tradeoff] = [ApproximateTradeoff(e, 0.0) for e in EPSILONS] + [GaussianTradeoff(m) for m in MUS]
    curves += [ApproximateTradeoff(0.0, a) for a in ADVANTAGES]
    return np.stack([curve.hockey_stick(GAMMAS) for curve in curves])


def choose(member: FloatArray, nonmember: FloatArray, references: FloatArray) -> Bets:
    """Choose bets by earlier scores (sorted, equally many): three thresholds for each reference curve.

    The thresholds are the one that contradicts the reference most (in standard errors, over all slopes), and the same
    among those that accuse at most a tenth of the nonmembers, or spare at most a tenth of the members.
    """
    t = _candidates(member, nonmember)
    p, q = _rates(member, t), _rates(nonmember, t)
    loud = _loudness(p, q, references)
    slopes = loud.argmax(axis=2)
    best = np.take_along_axis(loud, slopes[:, :, None], axis=2)[:, :, 0]
    groups: list[NDArray[np.bool_]] = [np.ones(len(t), dtype=bool), q <= _TAIL, 1 - p <= _TAIL]
    places = np.stack([np.where(g, best, -np.inf).argmax(axis=1) for g in groups], axis=1)  # curves × groups
    promising = np.stack([np.where(g, best, -np.inf).max(axis=1) for g in groups], axis=1) > 0
    slope = np.take_along_axis(slopes, places, axis=1)
    delta = np.take_along_axis(references, slope, axis=1)
    q0, stake = _closest(p[places], q[places], GAMMAS[slope], delta)
    return Bets(t[places].ravel(), slope.ravel(), q0.ravel(), np.where(promising, _SHARE * stake, 0.0).ravel())


def loudest(member: FloatArray, nonmember: FloatArray, delta: FloatArray) -> float:
    """Return how strongly scores contradict a promise with H_γ = ``delta``: the largest excess, in standard errors.

    An estimate for choosing among attacks, without any guarantee.
    """
    inside, outside = np.sort(member), np.sort(nonmember)
    t = _candidates(inside, outside)
    return float(_loudness(_rates(inside, t), _rates(outside, t), delta[None]).max())


def _rates(scores: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Return the shares of sorted scores above each threshold, kept away from 0 and 1."""
    n = len(scores)
    return np.asarray((n - np.searchsorted(scores, thresholds, side="right") + 0.5) / (n + 1))


def _loudness(p: FloatArray, q: FloatArray, references: FloatArray) -> FloatArray:
    """Return (p − γq − H_γ) in standard errors of one pair, shape (curves, thresholds, slopes)."""
    error = np.sqrt((p * (1 - p))[:, None] + GAMMAS**2 * (q * (1 - q))[:, None])
    return np.asarray(((p[:, None] - GAMMAS * q[:, None]) - references[:, None, :]) / error)


def _candidates(member: FloatArray, nonmember: FloatArray) -> FloatArray:
    """Return thresholds: scores at ranks evenly spaced in the log-odds of the rate, of either side."""
    ranks = candidate_ranks(len(member))[::2]
    return np.unique(np.concatenate([member[-ranks], nonmember[-ranks]]))


def _closest(p: FloatArray, q: FloatArray, gamma: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return q₀ of the point on p₀ = δ + γq₀ closest to (p, q) in relative entropy, and the stake that it suggests.

    The derivative along the line falls in q₀; where its sign changes is found by halving. An inexact root costs a
    little gain and nothing else: the stake is made to fit it.
    """

    def rises(q0: FloatArray) -> NDArray[np.bool_]:
        p0 = delta + gamma * q0
        return np.asarray(gamma * (p / p0 - (1 - p) / (1 - p0)) + (q / q0 - (1 - q) / (1 - q0)) > 0)

    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = bisect(rises, np.zeros_like(q), np.clip((1 - delta) / gamma, 0.0, 1.0), halvings=_HALVINGS)
        q0 = np.clip((low + high) / 2, 1e-12, 1 - 1e-12)
        p0 = np.clip(delta + gamma * q0, 1e-12, 1 - 1e-12)
        stake = p / p0 - (1 - p) / (1 - p0)
    most = _LARGEST * np.minimum(1 / p0, 1 / (gamma * (1 - q0)))
    return q0, np.clip(np.nan_to_num(stake), 0.0, most)


class Capital:
    """The capital of a bettor who doubts that H_γ = ``own``, on pairs of scores as they come; he starts with 1.

    It is spread over three thresholds for each reference curve, half of it for ``own``. ``needed`` is the logarithm at
    which the promise is refuted.
    """

    def __init__(self, own: FloatArray, needed: float) -> None:
        self._own, self._needed = own, needed
        self._references = np.vstack([own, reference_curves()])
        others = len(self._references) - 1
        share = np.repeat([0.5, *[0.5 / others] * others], THRESHOLDS) / THRESHOLDS
        self._log_share: FloatArray = np.log(share)
        self._ends = np.inf, -np.inf  # the smallest and the largest score
        self.higher_lower = np.zeros(2, dtype=np.int64)  # pairs in which the member scores higher, and lower
        self._past: list[tuple[FloatArray, FloatArray]] = []
        self.pairs = 0
        self._bets = Bets.none(len(share))
        self._next = _FIRST  # pairs at which bets are chosen anew
        self._used: list[tuple[Bets, IntArray, IntArray, int]] = []  # bets, hits of members and nonmembers, pairs
        self._now = self._log_share  # logarithms, one per strategy, under the promise
        self.path: list[FloatArray] = [np.zeros(1)]
        self._largest = 0.0  # logarithm of the capital at its peak
        self._crossed = False
        self._last = 0.0, False  # capital at the last time kept, and whether the promise was refuted there

    @property
    def constant(self) -> bool:
        """Whether all scores are equal."""
        return bool(self._ends[0] == self._ends[1])

    @property
    def violates(self) -> bool:
        """Whether the capital ever was what refutes the promise."""
        return self._largest >= self._needed

    @property
    def times(self) -> IntArray:
        """Pairs at the start and at all times kept."""
        return np.cumsum([0, *(used[3] for used in self._used)])

    def take(self, member: FloatArray, nonmember: FloatArray) -> None:
        """Bet on more pairs, one after the other."""
        both = np.concatenate([member, nonmember])
        self._ends = both.min(initial=self._ends[0]), both.max(initial=self._ends[1])
        self.higher_lower = self.higher_lower + (np.sum(member > nonmember), np.sum(member < nonmember))
        while len(member):
            if self.pairs >= self._next:
                inside, outside = (np.sort(np.concatenate(side)) for side in zip(*self._past, strict=True))
                self._past = [(inside, outside)]
                self._bets = choose(inside, outside, self._references)
                self._next = max(self.pairs + 1, int(np.ceil(self.pairs * GROWTH)))
            room = self._next - self.pairs
            self._bet(member[:room], nonmember[:room])
            member, nonmember = member[room:], nonmember[room:]

    def _bet(self, member: FloatArray, nonmember: FloatArray) -> None:
        """Use the present bets on some pairs; times at which the capital may have peaked are remembered."""
        hits, false = (
            np.cumsum(side[:, None] > self._bets.threshold, axis=0, dtype=np.int64) for side in (member, nonmember)
        )
        pairs = np.arange(1, len(member) + 1)[:, None]
        capital = self._now + log_gain(self._bets, hits, false, pairs, self._own)
        wealth = np.logaddexp.reduce(capital, axis=1)
        peak, last, before = int(np.argmax(wealth)), len(member) - 1, 0
        self._largest = max(self._largest, float(wealth[peak]))
        zero = np.zeros_like(hits[0])
        seen = zero, zero
        ends = {peak, last}
        if not self._crossed and wealth[peak] >= self._needed:
            ends.add(int(np.argmax(wealth >= self._needed)))
        for end in sorted(ends):
            self._keep(hits[end] - seen[0], false[end] - seen[1], end + 1 - before, float(wealth[end]))
            seen, before = (hits[end], false[end]), end + 1
        self._now = capital[-1]
        self.path.append(wealth)
        self._past.append((member, nonmember))
        self.pairs += len(member)

    def _keep(self, hits: IntArray, false: IntArray, pairs: int, wealth: float) -> None:
        """Remember a time at which limits are computed; of those with the same bets the last, the peak, the violation.

        The time before is forgotten (its pairs are not) unless it was one of the latter two: fewer times cannot raise a
        limit, and the verdict on the promise itself stays the same.
        """
        before, violation = self._last
        if self._used and self._used[-1][0] is self._bets and not violation and before < self._largest:
            _, old_hits, old_false, old_pairs = self._used.pop()
            hits, false, pairs = hits + old_hits, false + old_false, pairs + old_pairs
        self._used.append((self._bets, hits, false, pairs))
        crossed = wealth >= self._needed and not self._crossed
        self._crossed = self._crossed or crossed
        self._last = wealth, crossed

    def against(self, delta: FloatArray) -> FloatArray:
        """Logarithms of the capital, for a promise with H_γ = ``delta``, at the start and at all times kept."""
        if not self._used:
            return np.zeros(1)
        bets, hits, false, pairs = zip(*self._used, strict=True)
        gains = log_gain(Bets.joined(list(bets)), np.stack(hits), np.stack(false), np.array(pairs)[:, None], delta)
        return np.append(0.0, np.logaddexp.reduce(self._log_share + np.cumsum(gains, axis=0), axis=1))
