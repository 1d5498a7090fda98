"""How a release is bounded: every way as one function from what is asked to a proven scale, and the choice among them.

A way first makes a plan (what was run, what is known); :func:`settle` turns any plan into the least scale of its noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deniable._check import FloatArray
from deniable.noise import NoiseLaw
from deniable.releases import plans
from deniable.releases.certificate import Alternative
from deniable.releases.direct import direct_share, plan_by_direct
from deniable.releases.evidence import ExactRows, NoGuaranteeError, ReleaseError
from deniable.releases.plans import ROUNDING, CouplingGame, NoisePlan, Shaper
from deniable.releases.resampling import Algorithm, Runner
from deniable.releases.statistics import ExactSwap

BOUNDS = ("auto", "direct", "swap", "centre")
_LARGEST_ENUMERATION = 1000  # training sets; up to this many, "swap" runs all of them (twice), and nothing is sampled
_RESAMPLES = 256  # of "centre" unless ``n_resamples`` is given
_FEW_NUMBERS = 3  # up to which "auto" compares a closed form with thousands of runs
_WORTH_RUNNING = 0.5  # largest share of the gain that the runs may cost the direct bound for "auto" to try it


@dataclass(frozen=True)
class ReleaseTask:
    """The arguments of a release, checked."""

    algorithm: Algorithm
    game: CouplingGame
    shaper: Shaper
    runner: Runner
    n_resamples: int | None = None

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
    law = plan.law.with_scale(plan.evidence.least_scale(plan.law, game.level, game.log_gamma))
    reached = game.gain
    if isinstance(plan.evidence, ExactRows):
        worst = game.rare * game.inflation * plan.evidence.worst(law, game.log_gamma)
        reached = min(game.gain, worst * (1 + ROUNDING))
    return Settled(bound, game, plan, law, reached)


def choose(task: ReleaseTask) -> tuple[Settled, tuple[Alternative, ...]]:
    """Return the way with the least expected error, and the table of those compared.

    The ways share one game, in which the whole data set is known, so comparing them on it is free; at most one of them
    is sampled. All lose the same by training on a part, so the least noise has the least error.
    """
    closed = isinstance(task.algorithm, ExactSwap)
    settled = [settle(task, "swap")] if closed else []
    few = not settled or 0 < settled[0].plan.coordinates.free.size <= _FEW_NUMBERS
    if few and direct_share(task.game, task.n_resamples) <= _WORTH_RUNNING:
        try:
            settled.append(settle(task, "direct"))
        except NoGuaranteeError:  # known before any run that certifies
            if not settled:
                settled.append(settle(task, "centre"))
        except ReleaseError:
            if not settled:
                raise
    elif not settled:
        settled.append(settle(task, "centre"))
    best = min(settled, key=_relative)
    return best, tuple(_row(one, one is best) for one in settled)


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
    return plans.plan_by_pairs(task.algorithm, task.runner, task.game, task.shaper, task.resamples)


def _by_direct(task: ReleaseTask) -> NoisePlan:
    return plan_by_direct(task.algorithm, task.runner, task.game, task.shaper, task.n_resamples)


def _by_swap(task: ReleaseTask) -> NoisePlan:
    if isinstance(task.algorithm, ExactSwap):
        return plans.plan_from_closed_form(task.algorithm, task.game, task.shaper)
    found = plans.plan_by_enumeration(task.algorithm, task.game, task.shaper) if task.small else None
    if found is not None:
        return found
    raise NoGuaranteeError(
        "bound='swap' is proven for Mean, SecondMoment and Histogram of deniable.noise and for at most 1,000 training "
        "sets, not for this; use bound='auto', 'direct' or 'centre', which cover any algorithm"
    )


_WAYS: dict[str, Callable[[ReleaseTask], NoisePlan]] = {
    "centre": _by_centre,
    "direct": _by_direct,
    "swap": _by_swap,
}
