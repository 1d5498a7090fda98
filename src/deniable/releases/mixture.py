"""The direct certificate: the two mixtures, "record in" and "record out", are compared directly, not pair by pair.

Draw m training sets S_j and outputs θ_j, independent of each other and of the release. For record i let P̂ be the mean
over all m of the noise density around θ_j where i is in S_j (0 elsewhere), and Q̂ the same where i is not. Then E P̂ =
π·p_in and E Q̂ = (1 − π)·p_out. Fix the *one* record and the one test h that distinguish best: Σ_j h(θ_j) is a sum of
independent bounded terms, and the supremum over all tests is computed from the draws. Hence no union over the records.

Accuracy (Hoeffding, given in which draws that record was): with P̂ and Q̂ brought to the masses π and 1 − π,
the gain over guessing, half the advantage, is at most max_i [½∫|P̂ − Q̂| + ½ − max(π, 1−π)] + √(ln(1/β)/(2m)), the root
a little larger where a record was in more or fewer draws than expected. Both sides shrink when noise is
added to noise (Gaussian, Laplace and Euclidean norm-Laplace laws of a larger scale are those of a smaller one convolved
with some law), so the least scale may be searched on the same draws: a scale that is too small is accepted only if the
bound is wrong at the true threshold, which is one fixed scale.

Hockey sticks: for λ, κ > 0 with (1−π)(e^κ − 1) = γπ(1 − e^{−λ}), E exp(Σ_j[κ·h(θ_j)1[out] − λ·h(θ_j)1[in]]) ≤
exp(−mπ(1 − e^{−λ})(P_in(h) − γP_out(h))), so by Markov H_γ ≤ [∫(λP̂ − κQ̂)₊ + ln(1/β)/m]/(π(1 − e^{−λ})): an error of
order 1/m where few outputs tell anything, against 1/√m for Hoeffding's. λ and the form are fixed before the draws are
seen. The scale is not, so this is claimed together at all scales s₀·1.2^k of a window around a pilot's, and a release
takes the next one below its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from deniable._check import FloatArray, Indices
from deniable.curves import GaussianTradeoff
from deniable.noise import NoiseLaw
from deniable.releases.evidence import ReleaseError, least_for_all
from deniable.releases.integration import IntegralBound, integrals

_TOLERANCE = 5e-3  # relative width of the final bracket of the scale
FLOOR = 0.03  # share of the spread over training parts: less noise would not be noticed next to it (0.05 %)
_TRIES = 8  # most final checks of a scale with fresh Monte Carlo points, which share the failure probability
_STEPS_UP = 1 + 0.015 * 2.0 ** np.arange(_TRIES)  # factors between their scales: 13 in all
_GAMMAS = np.array([0.0, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0])  # log γ at which the curve is claimed
_WINDOW = 1.2 ** np.arange(-30, 27)  # scales at which the curve is claimed, in units of the pilot's spread
_BITS = 2**20  # unpacked at a time
_RATES = np.geomspace(1e-3, 4.0, 60)  # λ to choose from


@dataclass(frozen=True, eq=False)
class MixtureEvidence:
    """Outputs on random training sets, and which records were in each.

    Attributes
    ----------
    outputs
        Free coordinates of the outputs, shape (m, d).
    members
        Bits, shape (n, ⌈m/8⌉): whether record i was in training set j (``numpy.packbits`` along the draws).
    prior
        π, share of the records in training.
    failure
        Failure probability, half of it for the gain and half for the curve.
    spread
        The pilot's estimate of the scale, independent of the draws.
    goal
        The gain over guessing that is allowed, which decides (before the draws) how the curve is bounded.
    entropy
        Seeds the Monte Carlo integration for d > 1.
    """

    outputs: FloatArray
    members: NDArray[np.uint8]
    prior: float
    failure: float
    spread: float
    goal: float
    entropy: int = 0
    _inside: FloatArray = field(init=False, repr=False)  # number of draws that held each record

    def __post_init__(self) -> None:
        counts = [int(np.unpackbits(row, count=len(self.outputs)).sum()) for row in self.members]
        object.__setattr__(self, "_inside", np.array(counts, dtype=np.float64))

    @property
    def draws(self) -> int:
        """Number m of training sets drawn."""
        return len(self.outputs)

    def least_scale(self, law: NoiseLaw, level: float, log_gamma: float) -> float:
        """Return the least scale, 3 % of the spread or more, at which every record gains ≤ ``level``·min(π, 1 − π).

        Less noise than that would not be noticed next to the spread (0.05 %), but would leave the true positive rate at
        small false positive rates as large as the gain allows: with next to no noise a value may prove a membership.
        ``log_gamma`` must be that of the gain: γ = max(π, 1−π)/min(π, 1−π). For d > 1 the points of the search are at
        last replaced by fresh ones, whose error is charged.
        """
        target = level * min(self.prior, 1 - self.prior)
        everyone = np.arange(len(self.members))
        exact = law.dimension == 1

        def excess(scale: float, records: Indices, attempt: int = 0) -> FloatArray:
            failure = self._integration_failure / 2 / _TRIES if attempt else None
            return np.asarray(self.gain(law.with_scale(scale), records, attempt, failure) - target)

        order = np.argsort(-self._shifts(law))
        scale = least_for_all(excess, order, self.spread, _TOLERANCE, floor=FLOOR * self.spread)
        if exact:
            return scale
        for attempt, factor in enumerate(_STEPS_UP, start=1):
            scale *= float(factor)
            if np.all(excess(scale, everyone, attempt) <= 0):
                return scale
        raise ReleaseError("the integration over the released value was too rough for this target; raise advantage")

    def gain(self, law: NoiseLaw, records: Indices, attempt: int = 0, failure: float | None = None) -> FloatArray:
        """Return upper bounds on these records' gain under ``law``, (records,); rough for d > 1 without ``failure``."""
        form = IntegralBound(
            1.0, 1.0, extra=0.5 - max(self.prior, 1 - self.prior), log_term=hoeffding_term(self.failure)
        )
        found = self._integrals(law, records, [form], attempt, failure)[:, 0]
        return form.bound(found, self._inside[records], self.draws, self.prior)

    def curve(self, law: NoiseLaw, log_gammas: FloatArray) -> FloatArray:
        """Return upper bounds on max over records of H_γ, both directions, for γ ≥ 1, all together, under ``law``."""
        below = _WINDOW[self.spread * _WINDOW <= law.scale]
        if below.size == 0:
            return np.ones_like(log_gammas)
        law = law.with_scale(float(self.spread * below[-1]))
        forms = [self._form(float(g), flipped) for flipped in (False, True) for g in _GAMMAS]
        everyone = np.arange(len(self.members))
        found = self._integrals(law, everyone, forms, _TRIES + 1, self._integration_failure / 2 / len(forms))
        bounds = np.array(
            [np.max(form.bound(found[:, j], self._inside, self.draws, self.prior)) for j, form in enumerate(forms)]
        )
        worst = np.clip(bounds.reshape(2, -1).max(axis=0), 0.0, 1.0)
        worst = np.minimum.accumulate(worst)
        # H_γ is convex in γ, so chords bound it; beyond the last γ it stays below its value there
        return np.asarray(np.interp(np.exp(log_gammas), np.exp(_GAMMAS), worst) * (1 + 1e-12)).clip(0.0, 1.0)

    def _shifts(self, law: NoiseLaw) -> FloatArray:
        """Return how far the mean output with each record is from the one without: who likely needs most."""
        white = law.whiten(self.outputs)
        white = white - white.mean(axis=0)
        at_once = max(1, _BITS // self.draws)
        sums = [
            np.unpackbits(self.members[start : start + at_once], axis=1, count=self.draws) @ white
            for start in range(0, len(self.members), at_once)
        ]
        inside, outside = np.maximum(self._inside, 1), np.maximum(self.draws - self._inside, 1)
        return np.asarray(np.linalg.norm(np.concatenate(sums), axis=1) * (1 / inside + 1 / outside))

    @property
    def _integration_failure(self) -> float:
        """What Monte Carlo integration may spend (d > 1): a tenth of the failure probability."""
        return self.failure / 10

    def _form(self, log_gamma: float, flipped: bool) -> IntegralBound:
        """Choose, before the draws are looked at, how H_γ is bounded: by a guess at what the ROC will be.

        ``flipped`` exchanges the roles of "in" and "out".
        """
        gamma, share = float(np.exp(log_gamma)), 1 - self.prior if flipped else self.prior
        loss = _curve_term(self.failure)
        guess = GaussianTradeoff(float(2 * ndtri(0.5 + min(self.goal, 0.49))))
        slack = float(np.sqrt(loss / (2 * self.draws) * (1 / share + gamma**2 / (1 - share))))
        best = IntegralBound(1 / share, gamma / (1 - share), False, flipped, 1.0, (1 - gamma) / 2, loss)
        promised = float(guess.delta(log_gamma)) + slack
        for rate in _RATES:
            kept = share * float(-np.expm1(-rate))
            other = float(np.log1p(gamma * kept / (1 - share)))
            ratio = float(np.log(other * (1 - share) / (rate * share)))
            value = (rate * share * float(guess.delta(ratio)) + loss / self.draws) / kept
            if value < promised:
                promised, best = (
                    value,
                    IntegralBound(float(rate), other, True, flipped, 1 / kept, float(loss / self.draws / kept)),
                )
        return best

    def _integrals(
        self, law: NoiseLaw, records: Indices, forms: Sequence[IntegralBound], attempt: int, failure: float | None
    ) -> FloatArray:
        rng = np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(2**31, attempt)))
        inside = self._inside[records]
        with np.errstate(divide="ignore"):
            balance = np.column_stack(
                [self.prior * self.draws / inside, (1 - self.prior) * self.draws / (self.draws - inside)]
            )
        balance = np.where(np.isfinite(balance), balance, 1.0)  # such a record's slack is infinite anyway
        return integrals(self.outputs, self.members, records, law, forms, balance, rng=rng, failure=failure)


def hoeffding_term(failure: float) -> float:
    """ln(1/β), β = 2/5 of ``failure``: half of it is the curve's, a tenth pays for integration."""
    return float(np.log(1 / (0.4 * failure)))


def _curve_term(failure: float) -> float:
    """ln(1/β) of each point of the curve: half the failure probability, shared by γ, directions and scales."""
    return float(np.log(2 * 2 * len(_GAMMAS) * len(_WINDOW) / failure))


def chernoff_slack(failure: float, draws: int, prior: float) -> float:
    """ln(1/β)/(m·min(π, 1−π)): the least that the number of draws adds to H_γ, so to every true positive rate."""
    return _curve_term(failure) / (draws * min(prior, 1 - prior))


def hoeffding_slack(failure: float, draws: int) -> float:
    """√(ln(1/β)/(2m)): what the number of draws adds to the gain."""
    return float(np.sqrt(hoeffding_term(failure) / (2 * draws)))


def runs_for(slack: float, failure: float) -> int:
    """Number of draws at which :func:`hoeffding_slack` is at most ``slack``."""
    return int(np.ceil(hoeffding_term(failure) / (2 * slack**2)))
