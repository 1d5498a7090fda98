"""Evidence from one run, read canary by canary: every number of guesses at once, without choosing one beforehand.

Guesses are opened in an order that the output fixes, the most confident first. Under (ε, δ)-DP for each canary's coin,
let q = e^ε/(1 + e^ε) and let A be an event that more right guesses can only help to happen. Then for every k ≥ 0

    P(A) ≤ P(A after at most k wrong guesses are made right; right guesses independent with probability q)
           + m·δ·(1 − q)/(k + 1).

Proof. Let p_j be the probability that the j-th guess is right given the output and the guesses opened before, and U_j
independent and uniform. "U_j ≤ p_j" has the law of the guesses; it implies B_j = "U_j ≤ q", independent of everything
before, or C_j = "q < U_j ≤ p_j". Unless more than k of the C_j happen, A happens for B with at most k changes; by
Markov's inequality more than k happen with probability E ΣC_j/(k + 1) at most, and E C_j = E(p_j − q)₊. For one canary
this is largest if all other coins are known (Jensen's inequality). Then the outputs have densities p and p', and the
outputs for which "in" is guessed contribute ½∫((1−q)p − qp')₊ = ½(1−q)∫(p − e^ε·p')₊ ≤ ½(1−q)δ, the others as much.

With δ = 0 and A = "at least v of r are right" this is the binomial bound of Steinke, Nasr & Jagielski (2023, Theorem
5.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from deniable._check import FloatArray
from deniable._search import bisect
from deniable._tails import beta_quantile, binomial_above

_FIRST = 8  # guesses after which one looks for the first time
_RATIO = 1.1  # from one look to the next
_LOOKS = 4  # all looks together err about this many times as often as one of them
_PAID = 0.7  # of the permitted error: the term with δ takes no more (and much less if ε is large)
_TAIL = 1e-18  # probabilities below are counted with the event
_ERROR = 1e-7  # relative, charged to sums of products of binomial probabilities
_MOST = 1 - 1e-9  # share of right guesses; above it ε would be over 20
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
            at = max(at + 1, int(at * _RATIO))
        return cls(canaries, tuple(looks), tuple(right[np.array(looks) - 1].tolist()), share)

    def epsilon(self, delta: float, error: float) -> float:
        """Return an ε that, with all below it, is refuted at ``delta`` with error probability ``error``."""
        looks, error = np.array(self.looks), error * self.share
        k = max(
            0, math.ceil(self.canaries * delta / (2 * _PAID * error)) - 1
        )  # of the theorem: no more than is paid for
        right = np.array(self.right) - k
        told = beta_quantile(np.maximum(right, 1), np.maximum(looks - right + 1, 1), error / _LOOKS, "lower")
        level = float(np.max(np.where(right > 0, told, 0.0)))
        limits = _limits(looks, level, error / _LOOKS)
        if level <= 0.5 or not np.any(right >= limits):
            return 0.0

        def largest(q: float, weight: float) -> float:
            """Return the largest q that is refuted with ``weight`` for 1 − q; 0 if the given one is not."""
            left = error - self.canaries * delta * weight / (k + 1)
            if _crossing(looks, limits, q) > left:
                return 0.0
            return float(bisect(lambda x: _crossing(looks, limits, float(x)) <= left, q, _MOST, relative=1e-5)[0])

        # 1 − q falls with q: with ½ in its place all up to the first answer is refuted, with 1 − q at that answer, all
        # from there to the second
        q = largest(0.5, 0.5)
        if q > 0.5 and delta > 0:
            q = max(q, largest(q, 1 - q))
        return max(0.0, float(np.log(q / (1 - q))) * (1 - 1e-12)) if q > 0.5 else 0.0


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
    """Return for each number of guesses the fewest that are right with probability ``error`` at most."""
    low, high = np.zeros_like(looks) - 1, looks + 1  # the first is too few, the second enough
    while np.any(high - low > 1):
        middle = (low + high) // 2
        enough = binomial_above(middle - 1, looks, rate) <= error * (1 + 1e-6)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _crossing(looks: NDArray[np.int_], limits: NDArray[np.int_], q: float) -> float:
    """Return an upper bound on the chance that independent right guesses ever reach a limit at its look."""
    alive, least, done, crossed = np.ones(1), 0, 0, 1e-12  # law of the number right so far, from ``least`` on
    for look, limit in zip(looks.tolist(), limits.tolist(), strict=True):
        steps, first = _binomial(look - done, q)
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
