"""From distances between coupled outputs to the least noise that a proof allows.

A coupling turns "in" against "out" into pairs of outputs a, b with H_γ(P_in‖P_out) ≤ E H_γ(N_a‖N_b) (joint convexity),
and H_γ(N_a‖N_b) depends on the distance of a and b alone. What is known of the law of that distance is an *evidence*:
all of it (:class:`ExactRows`), record by record, or independent draws (:class:`SampledPairs`).

Every bound below decreases with the scale of the noise, so the least scale that passes is found by bisection and the
passing end of the bracket is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from deniable._check import FloatArray, Indices, InputError
from deniable._search import false_position
from deniable._tails import beta_quantile
from deniable.noise import NoiseLaw

_AT_FIRST = 8  # records, those likely to need most noise, that are looked at before the others
_AT_ONCE = 64  # records added to a search
_BETS = np.linspace(0.02, 0.98, 49)  # as shares of the largest bet that keeps the capital positive
_DOUBLINGS = 400  # of a scale, after which no noise is enough
_FINEST = 8192  # distances per record with which a scale is searched
_FINE, _COARSE = 1024, 64  # distances per record of a curve, and to tell which records can be the worst there
_ROUGH = 256  # distances per record with which shapes of noise are compared
_RANKS = 14  # order statistics at which a dominating law is bounded: more cost confidence, fewer cost width
_ROUNDING = 1e-12  # relative: sums over up to 8,192 distances round by less
_NARROW = 1e-10  # relative width of the final bracket of a scale
_NO_NOISE = 1e-280  # scales below are as good as none
_TO_SPARE = 1.05  # times the resamples with which the bet could just be won
_IN_REACH = 0.999  # share of the log capital that bets win if nothing leaks, which no finite scale reaches


class ReleaseError(InputError):
    """Nothing was released: the algorithm misbehaved or the guarantee cannot be certified.

    Attributes
    ----------
    rows
        Row numbers of the random part of the records on which the algorithm failed, to try it there again; never those
        of the secret training part. None if something else went wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> rows = np.random.default_rng(0).normal(size=(100, 1))
    >>> try:
    ...     dn.release(lambda part: 1 / 0, rows, advantage=0.2)
    ... except dn.releases.ReleaseError as error:
    ...     print(error)
    the algorithm failed on ... with ZeroDivisionError; nothing was released
    >>> issubclass(dn.releases.ReleaseWarning, UserWarning)             # said where the noise drowns the answer
    True
    """

    rows: Indices | None = None


class NoGuaranteeError(ReleaseError):
    """Nothing is proven for this algorithm in the way that was asked for; the message names the way that is."""


@dataclass(frozen=True, eq=False)
class ExactRows:
    """The whole law of the distance, record by record: no confidence is spent.

    Attributes
    ----------
    distances
        Shape (records, partners), each row uniform over its partners.
    rest
        Upper bound on the mean distance of every record that has no row; 0 if none is missing.
    weights
        Chances of the partners, in the shape of ``distances``, where they are not equal; each row sums to 1.
    """

    distances: FloatArray
    rest: float = 0.0
    weights: FloatArray | None = None
    failure: ClassVar[float] = 0.0  # nothing is sampled

    def __post_init__(self) -> None:
        _numbers_only(self.distances, np.array(self.rest))

    def rough(self) -> ExactRows:
        """Return the same, long rows rounded up to 256 equally likely distances: to compare shapes with."""
        return self._coarse(_ROUGH)

    def worst(self, law: NoiseLaw, log_gamma: float) -> float:
        """Return an upper bound on max over records of E H_γ(N_a‖N_b)."""
        seen = float(self.leak_of_each(law, log_gamma).max(initial=0.0))
        return max(seen, self._rest_leak(law, log_gamma))

    def least_scale(self, law: NoiseLaw, level: float, log_gamma: float) -> float:
        """Return the least scale at which the worst record is at most ``level``.

        Rows of more than 8,192 distances are first rounded up to this many, at the cost of a thousandth of the noise.
        """
        found = self._coarse(_FINEST)

        def excess(scale: float, records: Indices) -> FloatArray:
            return np.asarray(found.leak_of_each(law.with_scale(scale), log_gamma, records) - level)

        order = np.argsort(-found.mean_of_each(found.distances))
        scale = least_for_all(excess, order, float(found.distances.max(initial=0.0)))
        if self._rest_leak(law.with_scale(scale), log_gamma) <= level:
            return scale
        return least_scale(lambda s: self._rest_leak(law.with_scale(s), log_gamma) - level, start=self.rest)

    def curve(self, law: NoiseLaw, log_gammas: FloatArray) -> FloatArray:
        """Return the worst record at each γ; long rows are first rounded up to 1,024 equally likely distances.

        Rounded up to 64 distances they tell which records can be the worst; only those are looked at closely.
        """
        fine, rough = self._coarse(_FINE), self._coarse(_COARSE)

        def worst(log_gamma: float) -> float:
            above = rough.leak_of_each(law, log_gamma)
            seen = self._rest_leak(law, log_gamma)
            order = np.argsort(-above)
            for some in np.split(order, range(_AT_FIRST, len(order), _AT_FIRST)):
                if above[some[0]] <= seen:
                    break
                seen = max(seen, float(fine.leak_of_each(law, log_gamma, some).max()))
            return seen

        return np.array([worst(float(g)) for g in log_gammas])

    def _coarse(self, cells: int) -> ExactRows:
        """Return the same, rows of more than this many equally likely distances rounded up."""
        if self.weights is not None or self.distances.shape[1] <= cells:
            return self
        return ExactRows(_coarsen(self.distances, cells), self.rest)

    def mean_of_each(self, values: FloatArray, records: Indices | slice = slice(None)) -> FloatArray:
        """Return the mean of each row over its partners."""
        if self.weights is None:
            return np.asarray(values.mean(axis=1))
        return np.asarray(np.sum(values * self.weights[records], axis=1) * (1 + _ROUNDING))

    def leak_of_each(self, law: NoiseLaw, log_gamma: float, records: Indices | slice = slice(None)) -> FloatArray:
        """Return each record's mean hockey stick at γ over its partners."""
        leak = law.leakage(log_gamma, self.distances[records] / law.scale)
        return np.asarray(np.minimum(self.mean_of_each(leak, records), 1.0))

    def _rest_leak(self, law: NoiseLaw, log_gamma: float) -> float:
        if not self.rest > 0:
            return 0.0
        return min(float(concave_leakage(law, log_gamma, np.array(self.rest / law.scale))), 1.0)


@dataclass(frozen=True, eq=False)
class SampledPairs:
    """Independent draws of one distance that counts for every record. The gain takes half of ``failure``.

    Attributes
    ----------
    selection, certification
        Distances, shape (draws,); only the second certifies anything.
    failure
        1 − confidence, in (0, 1).
    """

    selection: FloatArray
    certification: FloatArray
    failure: float

    def __post_init__(self) -> None:
        _numbers_only(self.selection, self.certification)

    @property
    def _threshold(self) -> float:
        """Log capital at which a bet is won."""
        return float(np.log(2 / self.failure))

    def least_scale(self, law: NoiseLaw, level: float, log_gamma: float) -> float:
        """Return the least scale at which the betting test rejects "E H_γ > level".

        For a fixed bet λ < 1/(1 − level), the capital Π(1 + λ(level − T_b)) has mean at most 1 when E T ≥ level, so
        it reaches 1/β with probability at most β (Markov; Waudby-Smith & Ramdas 2024). The capital grows with the
        scale, so the scale may be tuned *on the certification draws themselves*: a scale that is too small is
        accepted only if the test at the true threshold, one fixed scale, fails. The bet comes from the selection draws.
        """
        bet = self._choose_bet(law, level, log_gamma)

        def excess(scale: float) -> float:
            leak = law.leakage(log_gamma, self.certification / scale)
            return self._threshold - float(np.log1p(bet * (level - leak)).sum())

        return least_scale(excess, start=_largest_finite(self.certification)) * (1 + _ROUNDING)

    def curve(self, law: NoiseLaw, log_gammas: FloatArray) -> FloatArray:
        """Return bounds from a law that dominates that of the distance, with the other half of ``failure``."""
        points, weights = dominating_law(self.certification, self.failure / 2)
        return np.array([float(law.leakage(float(g), points / law.scale) @ weights) for g in log_gammas])

    def _choose_bet(self, law: NoiseLaw, level: float, log_gamma: float) -> float:
        """Return the bet that would certify the selection draws at the least scale."""
        repeat = len(self.certification) / len(self.selection)
        bets = _BETS / (1 - level)

        def capitals(scale: float) -> FloatArray:
            leak = law.leakage(log_gamma, self.selection / scale)[:, None]
            return np.asarray(repeat * np.log1p(bets * (level - leak)).sum(axis=0))

        if not np.isfinite(self.selection).all():
            return float(bets[-1] / 2)
        most = repeat * len(self.selection) * float(np.log1p(bets[-1] * level))
        reachable = min(self._threshold, _IN_REACH * most)
        scale = least_scale(lambda s: float(reachable - capitals(s).max()), start=_largest_finite(self.selection))
        return float(bets[np.argmax(capitals(scale))])


def needed_resamples(level: float, failure: float) -> int:
    """Return the number of certifying resamples below which ``level`` is out of reach, however little leaks."""
    most_per_resample = np.log1p(_BETS[-1] * level / (1 - level))
    return int(np.ceil(_TO_SPARE * np.log(2 / failure) / most_per_resample))


def dominating_law(distances: FloatArray, failure: float) -> tuple[FloatArray, FloatArray]:
    """Return (points, weights) of a law that is stochastically larger than the law of ``distances``, shape (draws,).

    Holds with probability 1 − ``failure`` for independent
    draws, without assumptions: at a few ranks j, dense towards the largest, F(x_(j)) exceeds the
    failure-quantile of Beta(j, n − j + 1) (Clopper & Pearson), by a union bound over the ranks; what remains above the
    largest draw is put at infinity. Means of increasing functions under it are upper bounds, for all functions at once.
    """
    n = len(distances)
    below = np.unique(np.round(np.geomspace(1, n, min(n, _RANKS))).astype(int)) - 1  # ranks below the largest
    ranks = n - below[::-1]
    reached = beta_quantile(ranks, n - ranks + 1, failure / len(ranks), "lower")
    reached = np.maximum.accumulate(reached)
    points = np.append(np.sort(distances)[ranks - 1], np.inf)
    return points, np.diff(np.concatenate([[0.0], reached, [1.0]]))


def concave_leakage(law: NoiseLaw, log_gamma: float, distance: FloatArray) -> FloatArray:
    """Return a concave function of the distance that is never below H_γ, so that E H_γ(ρ) ≤ its value at E ρ.

    H_1 of every law here is concave. For γ > 1, H_γ ≤ H_1 and H_γ ≤ ρ·sup H_γ(r)/r; the smaller of two concave
    functions is concave. The supremum is bounded cell by cell on a grid of r, H_γ being increasing.
    """
    top = law.leakage(0.0, distance)
    if log_gamma == 0:
        return top
    grid = np.geomspace(1e-6, 1e6, 4001)  # 0.7 % a cell, by which the slope may be too steep; ends count on their own
    values = law.leakage(log_gamma, grid)
    first_cell = float(law.leakage(0.0, grid[:1])[0] / grid[0]) if values[0] > 0 else 0.0
    slope = max(float(np.max(values[1:] / grid[:-1])), first_cell)
    with np.errstate(over="ignore"):
        return np.minimum(top, slope * distance)


def _largest_finite(distances: FloatArray) -> float:
    return float(np.max(distances[np.isfinite(distances)], initial=0.0))


def _numbers_only(*distances: FloatArray) -> None:
    if any(np.isnan(part).any() for part in distances):
        raise ReleaseError("some distances between outputs are not numbers; nothing was released")


def _coarsen(rows: FloatArray, cells: int) -> FloatArray:
    """Round every row up to at most ``cells`` equally likely values (the largest of each group)."""
    partners = rows.shape[1]
    size = -(-partners // cells)
    ordered = np.sort(rows, axis=1)
    # copies of the largest value fill the last group: they only make the law larger
    padded = np.concatenate([ordered, np.repeat(ordered[:, -1:], -partners % size, axis=1)], axis=1)
    groups = padded.reshape(len(rows), -1, size)[:, :, -1]
    return np.asarray(groups)


def least_for_all(
    excess: Callable[[float, Indices], FloatArray],
    order: Indices,
    start: float,
    relative: float = _NARROW,
    floor: float = 0.0,
) -> float:
    """Return the least scale from ``floor`` on at which no record is in excess, which falls as the scale grows.

    Searches with the first few of ``order`` alone, who should be those likely to need most, then tries the others; it
    goes on with the worst of those that fail. Whoever was seen safe at one scale is so at larger ones.
    """
    active, left, scale = order[:_AT_FIRST], order, floor
    while True:
        found = least_scale(partial(_largest, excess, active), scale or start, relative)
        scale = max(scale, found * (1 + _ROUNDING))  # sums over fewer records may round otherwise
        left = np.setdiff1d(left, active)
        over = excess(scale, left)
        fails = ~(over <= 0)
        if not fails.any():
            return scale
        left, over = left[fails], over[fails]
        active = left[np.argsort(-over)[:_AT_ONCE]]


def _largest(excess: Callable[[float, Indices], FloatArray], records: Indices, scale: float) -> float:
    return float(np.max(excess(scale, records), initial=-np.inf))


def least_scale(excess: Callable[[float], float], start: float, relative: float = _NARROW) -> float:
    """Return the passing end of a bracket around the least scale at which a decreasing ``excess`` is 0 or less."""
    high = start if 0 < start < np.inf else 1.0
    for _ in range(_DOUBLINGS):
        if excess(high) <= 0:
            break
        high *= 2
    else:
        raise ReleaseError(
            "no finite noise certifies the target: some outputs are infinitely far apart, as are fits that depend on "
            "one record; for a regression, standardise the columns or raise the penalty"
        )
    low = high / 2
    while excess(low) <= 0:
        if low < _NO_NOISE:
            return low
        low, high = low / 2, low
    return false_position(excess, high, low, relative=relative)[0]
