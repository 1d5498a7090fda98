"""What correct guesses about the canaries of one run prove: a bound for f-DP, and one for each (ε, δ).

The second reads the evidence canary by canary: every number of guesses at once, without choosing one beforehand.

Guesses are opened in an order that the output fixes, the most confident first. Under (ε, δ)-DP for each canary's coin,
let q = e^ε/(1 + e^ε) and let A be an increasing event: more right guesses never undo it. Then

    P(A) ≤ P(A if guesses are right independently with probability q) + m·δ·(1 − q).

Proof. Let p_j be the probability that the j-th guess is right given the output and the guesses opened before, and U_j
independent and uniform. "U_j ≤ p_j" has the law of the guesses; it implies B_j = "U_j ≤ q", independent of everything
before, or C_j = "q < U_j ≤ p_j". Unless one of the C_j happens, A happens for B; one of them happens with probability
ΣE C_j at most, and E C_j = E(p_j − q)₊. For one canary this is largest if all other coins are known (Jensen's
inequality). Then the outputs have densities p and p', and the outputs for which "in" is guessed contribute
½∫((1−q)p − qp')₊ = ½(1−q)∫(p − e^ε·p')₊ ≤ ½(1−q)δ, the others as much.

The events here grow with one number, the level, which is found without δ. So all (ε, δ) that are refuted are refuted
with the same probability of error, and the limit of ε falls in δ.

With δ = 0 and A = "at least v of r are right" this is the binomial bound of Steinke, Nasr & Jagielski (2023, Theorem
5.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from deniable._check import FloatArray
from deniable._search import bisect, bisect_integers, false_position
from deniable._tails import beta_quantile, binomial_above
from deniable.audit.intervals import Family, above
from deniable.audit.supermartingale import GAMMAS, GROWTH
from deniable.curves import Tradeoff

_FIRST = 8  # guesses opened before the first look
_LOOKS = 4  # all looks together err about this many times as often as a single one
_STEPS = 60  # values of ε that are tried from the largest down, where δ > 0
_TAIL = 1e-18  # probabilities below are counted with the event
_ERROR = 1e-7  # relative, charged to sums of products of binomial probabilities
_MOST = 20.0  # largest ε searched
# permitted error by order: from the top down ("in" alone), and from both ends ("in" and "out")
SHARES = (0.7, 0.3)


@dataclass(frozen=True)
class Ordered:
    """Right guesses among the first 8, 9, 10, 11, 13, … of ``canaries``; ``share`` of the permitted error."""

    canaries: int
    looks: tuple[int, ...]
    right: tuple[int, ...]
    share: float

    @classmethod
    def of(cls, guesses: NDArray[np.bool_], canaries: int, share: float) -> Ordered:
        """Return the counts of a sequence of guesses, True where right, the most confident first."""
        looks, right = [], np.cumsum(guesses)
        at = min(_FIRST, len(guesses))
        while at <= len(guesses):
            looks.append(at)
            at = max(at + 1, int(at * GROWTH))
        return cls(canaries, tuple(looks), tuple(right[np.array(looks) - 1].tolist()), share)

    def epsilon(self, delta: float, error: float) -> float:
        """Return an ε such that it and all below it are refuted at ``delta``, with error probability ``error``."""
        excess = self._excess(error)

        def largest(good: float, bad: float, delta: float) -> float:
            return false_position(lambda x: excess(x, delta), good, bad, relative=1e-5)[0]

        top = largest(0.0, _MOST, 0.0)
        if delta == 0 or top == 0:
            return top * (1 - 1e-12)
        # a small ε may be refuted only because a larger one is: 1 − q falls with ε
        tried = np.linspace(top, 0.0, _STEPS + 1)
        first = next((k for k, x in enumerate(tried) if excess(float(x), delta) <= 0), None)
        if not first:
            return 0.0 if first is None else top * (1 - 1e-12)
        return largest(float(tried[first]), float(tried[first - 1]), delta) * (1 - 1e-12)

    def _excess(self, error: float) -> Callable[[float, float], float]:
        """Return the test of one (ε, δ): what was seen is an event of probability at most ``error`` where it is ≤ 0."""
        looks, right, error = np.array(self.looks), np.array(self.right), error * self.share
        reached = beta_quantile(np.maximum(right, 1), looks - np.maximum(right, 1) + 1, error / _LOOKS, "lower")
        level = float(np.max(np.where(right > 0, reached, 0.0)))
        limits = _limits(looks, level, error / _LOOKS)
        seen = level > 0.5 and bool(np.any(right >= limits))

        def excess(epsilon: float, delta: float) -> float:
            q = float(expit(epsilon))
            p = _crossing(looks, limits, q) + self.canaries * delta * (1 - q)
            return above(min(p, 1.0), error) if seen else np.inf

        return excess


def guesses_in_order(inside: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which guesses are right, from the top down and from both ends in turn.

    Parameters
    ----------
    inside
        Whether each canary was in, ordered by its score, the highest last.
    """
    down, m = inside[::-1], len(inside)
    ends = np.empty(m, dtype=np.bool_)
    ends[0::2], ends[1::2] = down[: (m + 1) // 2], ~inside[: m // 2]
    return down, ends


def _limits(looks: NDArray[np.int_], rate: float, error: float) -> NDArray[np.int_]:
    """Return, for each number of guesses, the fewest right ones that have probability at most ``error``."""

    def enough(right: NDArray[np.int_]) -> NDArray[np.bool_]:
        return np.asarray(binomial_above(right - 1, looks, rate) <= error * (1 + 1e-6))

    return bisect_integers(enough, looks + 1, -1)[0]


def _crossing(looks: NDArray[np.int_], limits: NDArray[np.int_], q: float) -> float:
    """Return an upper bound on the chance that independent right guesses ever reach a limit at its look."""
    alive, least, done, crossed = np.ones(1), 0, 0, 1e-12  # law of the number right so far, from ``least`` on
    laws = {count: _binomial(count, q) for count in set(np.diff(looks, prepend=0).tolist())}
    for look, limit in zip(looks.tolist(), limits.tolist(), strict=True):
        steps, first = laws[look - done]
        alive, least, done = np.convolve(alive, steps), least + first, look
        below = max(0, limit - least)
        crossed += float(alive[below:].sum()) + (look + 1) * _TAIL
        alive = alive[:below]
        kept = np.flatnonzero(alive > _TAIL)
        if kept.size == 0:
            break
        crossed += float(alive[: kept[0]].sum())
        alive, least = alive[kept[0] :], least + int(kept[0])
    return min(1.0, crossed * (1 + _ERROR))


def _binomial(n: int, q: float) -> tuple[FloatArray, int]:
    """Return the probabilities of Bin(n, q) that are not tiny, and the number of successes of the first."""
    spread = 10 * np.sqrt(n * q * (1 - q)) + 40
    k = np.arange(max(0, int(n * q - spread)), min(n, int(n * q + spread)) + 1)
    log = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * np.log(q) + (n - k) * np.log1p(-q)
    return np.exp(log), int(k[0])


def rejects_f_dp(family: Family, value: float, m: int, r: int, v: int, error: float) -> bool:
    """Return whether P(at least v of r guesses right) ≤ ``error`` under a symmetric f-DP guarantee.

    Let p_j be the probability of j right guesses, R_j = Σ_{i≥j} i·p_i/m and H_j = Σ_{i≥j} (r−i)·p_i/m. Flipping the
    coin of one canary turns "right, j in all" into "wrong, j−1 in all"; by f-DP for each canary and concavity
    R_j ≤ f̄(H_{j−1}) with f̄ = 1 − f (Mahloujifar, Melis & Chaudhuri 2024, Theorem 9). Were the probability above
    ``error``, following the least H and R down to j = 0 could use no more than all probability, R_0 + H_0 = r/m.
    """
    if v == 0:
        return False
    R, H = error * v / m, error * (r - v) / m
    for j in range(v, 0, -1):
        # f̄⁻¹(R) = 1 − f̄(1 − R) for a symmetric trade-off
        needed = max(H, 1 - float(family.ceiling(np.asarray(1 - R), value)))
        used = needed > H
        R += (j - 1) / (r - j + 1) * (needed - H)
        H = needed
        if r / m < R + H:
            return True
        if not used:  # nothing changes further down either
            return False
    return False


@dataclass(frozen=True, eq=False)
class PromisedFamily(Family):
    """One promised curve, made symmetric: TPR ≤ min over γ of H_γ + γ·FPR, H the larger of both directions."""

    hockey_sticks: FloatArray

    @classmethod
    def of(cls, curve: Tradeoff) -> PromisedFamily:
        """Return the symmetric hull of a curve, from its hockey sticks at the slopes of :data:`GAMMAS`."""
        return cls(np.maximum(curve.hockey_stick(GAMMAS), curve.hockey_stick(GAMMAS, "add")))

    def ceiling(self, fpr: FloatArray, value: float | FloatArray) -> FloatArray:
        """Return the hull: concave, as a minimum of lines, and at least the promise; ``value`` is not used."""
        lines = self.hockey_sticks + GAMMAS * np.asarray(fpr)[..., None]
        return np.asarray(np.minimum(1.0, lines.min(axis=-1) * (1 + 1e-14)))


def largest_rejected(rejects: Callable[[float], bool]) -> float:
    """Return the largest rejected parameter, rounded down (0 if none)."""
    if not rejects(0.0):
        return 0.0
    return float(bisect(lambda value: rejects(float(value)), 0.0, Family.largest, relative=1e-6)[0])
