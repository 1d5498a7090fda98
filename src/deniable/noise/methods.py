"""How a release is bounded: every way as one function from what is asked to a proven scale, and the choice among them.

A way first makes a plan (what was run, what is known); :func:`settle` turns any plan into the least scale of its noise.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray
from deniable.noise import plans
from deniable.noise.certificate import Alternative
from deniable.noise.direct import (
    NEGLIGIBLE,
    direct_share,
    least_noise,
    plan_by_all_sets,
    plan_by_direct,
    plan_by_known_law,
)
from deniable.noise.evidence import ExactRows, NoGuaranteeError, ReleaseError
from deniable.noise.kinds import ExactSwap
from deniable.noise.known_law import HasKnownLaw, KnownEvidence
from deniable.noise.laws import NoiseLaw
from deniable.noise.plans import ROUNDING, CouplingGame, NoisePlan
from deniable.noise.resampling import Algorithm, Runner
from deniable.noise.shaping import Shaper

BOUNDS = ("auto", "coupling", "direct", "swap", "centre")
_LARGEST_ENUMERATION = 1000  # training sets; up to this many are all run (twice), and nothing is sampled
_RESAMPLES = 256  # of "centre" unless ``n_resamples`` is given
_CENTRE_AT_LEAST = 0.25  # below 1/π, what "centre" needs in units of the spread, times the gain, if halves are normal
_WORTH_INTEGRATING = 1.25  # factor by which "direct" must promise to reduce the error of several numbers
_OPTIMISTIC = 1.1  # factor between the error that "direct" finds and the guess at it
_FEW_NUMBERS = 3  # numbers up to which every bound that may serve is compared
_CLOSED_FORMS = {
    np.mean: "Mean()", np.average: "Mean()", statistics.mean: "Mean()", statistics.fmean: "Mean()",
    np.median: "Quantile(0.5)", statistics.median: "Quantile(0.5)", statistics.median_low: "Quantile(0.5)",
}  # fmt: skip
_WORTH_RUNNING = 0.5  # largest share of the gain that the runs may cost the direct bound for "auto" to try it


@dataclass(frozen=True)
class ReleaseTask:
    """The arguments of a release, checked."""

    algorithm: Algorithm
    game: CouplingGame
    shaper: Shaper
    runner: Runner
    every: plans.Enumeration  # shared by the copies of a task for other bounds
    n_resamples: int | None = None
    max_seconds: float = 120.0
    direct: bool = True  # whether thousands of runs may be made to choose among the bounds

    @property
    def direct_share(self) -> float:
        """Share of the gain that the number of runs of "direct" costs, infinite where they are not made."""
        return direct_share(self.game, self.n_resamples) if self.direct else math.inf

    @property
    def resamples(self) -> int:
        """Resamples of "centre"."""
        return _RESAMPLES if self.n_resamples is None else self.n_resamples

    @property
    def small(self) -> bool:
        """Whether all training sets can be run."""
        n, k = self.game.population.n_records, self.game.population.n_train
        return n <= 16 and math.comb(n, k) <= _LARGEST_ENUMERATION


@dataclass(frozen=True, eq=False)
class Settled:
    """A plan with the scale of its noise; ``law`` is None if nothing varies or no noise is needed."""

    bound: str
    game: CouplingGame
    plan: NoisePlan
    law: NoiseLaw | None
    gain: float

    @property
    def noise(self) -> FloatArray:
        """Standard deviation of the noise on each coordinate, in the shape of the value."""
        spread = np.zeros(self.plan.coordinates.free.size) if self.law is None else self.law.standard_deviation
        return self.plan.coordinates.expand(spread, 0.0)


def settle(task: ReleaseTask, bound: str) -> Settled:
    """Plan by one way and find the least scale of noise that it proves."""
    game = replace(task.game, bound=bound)
    plan = _WAYS[bound](replace(task, game=game))
    if plan.law is None:
        return Settled(bound, game, plan, None, 0.0)
    if isinstance(plan.evidence, KnownEvidence) and plan.evidence.needs_no_noise(game.gain):
        return Settled(bound, game, plan, None, min(game.gain, plan.evidence.gain(None) * (1 + ROUNDING)))
    law = plan.law.with_scale(plan.evidence.least_scale(plan.law, game.level, game.log_gamma))
    reached = game.gain
    if isinstance(plan.evidence, ExactRows):
        worst = game.rare * game.inflation * plan.evidence.worst(law, game.log_gamma)
        reached = min(game.gain, worst * (1 + ROUNDING))
    elif isinstance(plan.evidence, KnownEvidence):
        reached = min(game.gain, plan.evidence.gain(law) * (1 + ROUNDING))
    return Settled(bound, game, plan, law, reached)


def choose(task: ReleaseTask) -> tuple[Settled, tuple[Alternative, ...]]:
    """Return the way with the least expected error, and the table of those compared.

    The ways share one game, in which the whole data set is known, so comparing them on it is free. What costs is to
    choose by the *draws* of sampled certificates: where two of them are compared, each gets half of the failure
    probability (union bound). All of them lose the same by training on a part, so the least noise has the least error.
    """
    ways: tuple[str, ...]
    if task.small:
        ways = ("swap", "direct", "centre") if task.direct else ("swap", "centre")
    else:
        any_algorithm = "direct" if task.direct_share <= _WORTH_RUNNING else "centre"
        closed = isinstance(task.algorithm, ExactSwap)
        if any_algorithm == "direct":
            _point_to_closed_form(task)
        ways = ("swap", any_algorithm) if closed else (any_algorithm,)
    if isinstance(task.algorithm, HasKnownLaw):
        known = plan_by_known_law(task.algorithm, replace(task.game, bound="direct"), task.shaper)
        ways = ways if known is None else ("direct",)
    sampled = len(ways) - isinstance(task.algorithm, ExactSwap)  # at most: small data need none if nothing is random
    if sampled > 1:
        failure = (1 - task.game.confidence) / sampled
        task = replace(task, game=replace(task.game, confidence=1 - failure))
    settled: list[Settled] = []
    for way in ways:
        settled += _attempt(task, way, required=not settled and way == ways[-1])
        if settled and (_enough(settled[-1]) or _rest_cannot_win(settled[-1], task)):
            break
    best = min(settled, key=lambda one: (_relative(one), one.plan.kind != "exact"))
    return best, tuple(_row(one, one is best) for one in settled)


def _point_to_closed_form(task: ReleaseTask) -> None:
    """Warn where thousands of runs are about to find what a theorem knows."""
    closed = _CLOSED_FORMS.get(task.algorithm) if isinstance(task.algorithm, Hashable) else None
    if closed is not None:
        name = f"{task.algorithm.__module__}.{task.algorithm.__name__}"
        warnings.warn(
            f"{name} is run thousands of times; release(deniable.noise.{closed}, ...) knows its law: exact, without "
            "runs, and usually with less noise",
            UserWarning,
            stacklevel=4,
        )


def _attempt(task: ReleaseTask, way: str, required: bool) -> list[Settled]:
    """Return the bound's result, or nothing if it cannot serve; where "direct" cannot, "centre" is tried."""
    try:
        return [settle(task, way)]
    except NoGuaranteeError:
        if way == "direct":
            return _attempt(task, "centre", required)
        if required:
            raise
    except ReleaseError:
        if required:
            raise
    return []


def _enough(found: Settled) -> bool:
    return found.law is None or _relative(found) <= NEGLIGIBLE


def _rest_cannot_win(found: Settled, task: ReleaseTask) -> bool:
    """Whether what is left, thousands of runs or the 512 of "centre", likely saves no noise on this many numbers.

    Thousands of runs and their integration must promise a fifth less error, at twice the noise that chance asks for.

    Beside an exact swap: if the swap's noise is c spreads, "direct" needs a total spread of about c/(1 − the share of
    the gain that its runs cost), where the swap has √(1 + c²). What it found was above that by 8 to 24 % (means of one
    column).

    "centre", if halves are normal: |a − b| is 2√(2/π) times the spread on average, its E TV about that over s√(2π), and
    the advantage, twice the gain, is wanted, so s is the spread over π times the gain; more in more dimensions. Only
    the time depends on this, no guarantee.
    """
    d, direct = found.plan.coordinates.free.size, task.direct_share
    if (
        found.bound == "swap"
        and isinstance(found.plan.evidence, ExactRows)
        and not task.small
        and direct <= _WORTH_RUNNING
    ):
        noise = _relative(found)
        if _OPTIMISTIC * noise >= (1 - direct) * math.hypot(1, noise):
            return True
    if d <= _FEW_NUMBERS or task.small:
        return False
    least = least_noise(task.game, task.n_resamples, d) if direct <= _WORTH_RUNNING else 0.0
    if least:
        return math.hypot(1, _relative(found)) <= _WORTH_INTEGRATING * math.hypot(1, 2 * least)
    return _relative(found) <= _CENTRE_AT_LEAST / task.game.gain


def _relative(found: Settled) -> float:
    """Root mean square over the coordinates of noise in units of the value's spread over training parts."""
    where = found.noise > 0
    if not where.any():
        return 0.0
    spread = found.plan.deviation
    if spread is None:
        return float("inf")
    spread = np.broadcast_to(spread, found.noise.shape)
    with np.errstate(divide="ignore"):
        return float(np.sqrt(np.mean((found.noise[where] / spread[where]) ** 2)))


def _row(found: Settled, chosen: bool) -> Alternative:
    noise, spread = found.noise, found.plan.deviation
    error = None if spread is None else _rms(np.hypot(noise, spread))
    return Alternative(
        bound=found.bound,
        kind=found.plan.kind,
        noise=_rms(noise),
        sampling=None if spread is None else _rms(np.asarray(spread)),
        error=error,
        relative_noise=_relative(found) if spread is not None else None,
        chosen=chosen,
    )


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def _by_centre(task: ReleaseTask) -> NoisePlan:
    found = plans.plan_by_enumeration(task.every, task.game, task.shaper) if task.small else None
    if found is not None:
        return found
    return plans.plan_by_pairs(task.algorithm, task.runner, task.game, task.shaper, task.resamples)


def _by_direct(task: ReleaseTask) -> NoisePlan:
    if isinstance(task.algorithm, HasKnownLaw):
        known = plan_by_known_law(task.algorithm, task.game, task.shaper)
        if known is not None:
            return known
    found = plan_by_all_sets(task.every, task.game, task.shaper) if task.small else None
    if found is not None:
        return found
    return plan_by_direct(task.algorithm, task.runner, task.game, task.shaper, task.n_resamples, task.max_seconds)


def _by_swap(task: ReleaseTask) -> NoisePlan:
    if isinstance(task.algorithm, ExactSwap):
        return plans.plan_from_closed_form(task.algorithm, task.game, task.shaper)
    found = plans.plan_by_enumeration(task.every, task.game, task.shaper) if task.small else None
    if found is not None:
        return found
    raise NoGuaranteeError(
        "bound='swap' is proven for Mean, SecondMoment, Covariance and Histogram of deniable.noise and for at most "
        "1,000 training sets, not for this; use bound='auto', 'direct' or 'centre', which cover any algorithm"
    )


_WAYS: dict[str, Callable[[ReleaseTask], NoisePlan]] = {
    "centre": _by_centre,
    "direct": _by_direct,
    "swap": _by_swap,
}
