"""Release the output of any algorithm with a bound on what it reveals about anyone's membership."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np

from deniable import testing
from deniable._check import FloatArray, Indices, InputError, Seed, choice, integer, number, seeded
from deniable._floats import EPS
from deniable._parallel import checked_jobs
from deniable.curves import Assumptions, EnvelopeTradeoff, Tradeoff
from deniable.noise import NoiseLaw, sealed
from deniable.releases import plans
from deniable.releases.certificate import GAME, Alternative, HalfCertificate, Release, ReleaseWarning
from deniable.releases.direct import direct_share, plan_by_direct
from deniable.releases.evidence import ExactRows, NoGuaranteeError, ReleaseError
from deniable.releases.plans import ROUNDING, NoisePlan, ReleaseTask
from deniable.releases.resampling import Algorithm, Population, Runner, evaluate
from deniable.releases.statistics import swaps_known

_FEW_NUMBERS = 3  # up to which "auto" compares a closed form with thousands of runs
_WORTH_RUNNING = 0.5  # largest share of the gain that the runs may cost the direct bound for "auto" to try it
_LOG_GAMMAS = np.concatenate([np.linspace(0.0, 1.0, 11), np.geomspace(1.2, 24.0, 22)])  # of a certified curve


def release(
    algorithm: Algorithm,
    data: Any,
    *,
    advantage: float,
    noise: Literal["gaussian", "norm-laplace", "laplace"] = "gaussian",
    bound: Literal["auto", "direct", "swap", "centre"] = "auto",
    fraction: float = 0.5,
    n_resamples: int | None = None,
    confidence: float = 0.99,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Release:
    """Run ``algorithm`` on a secret random part of ``data`` and add the least noise that certifies ``advantage``.

    Guarantee: an attacker who knows all of ``data``, the algorithm and this call tells the membership of a record in
    the training part with accuracy at most max(π, 1 − π) + ``advantage``/2, where π is the share of records in
    training, and with a true positive rate below ``certificate.tradeoff`` at every false positive rate. This holds in
    every dimension. The game takes ``data`` as given: who is in *it* (rather than in the training part) is not what is
    hidden.

    Parameters
    ----------
    algorithm
        Called with a part of ``data`` of the same type; returns a number or an array whose shape never changes.
        The closed forms of :mod:`deniable.noise` (``Mean``, ``SecondMoment``, ``Histogram``) have a known swap bound.
    data
        Array, DataFrame, or tuple such as (X, y), with one record in each row; at least 4 records. A Parquet file or
        folder, a Dask data frame, an iterator of blocks or a function that returns one becomes an array, or a tuple
        (X, y), in a file that the operating system maps (:func:`deniable.tables.mapped_rows`).
    advantage
        Largest membership advantage of any attack, 2·(accuracy − max(π, 1 − π)), in (0, 2·min(π, 1 − π)). With a secret
        half (π = ½) 0.2: at even odds, no attack names a record's half more often than 60 % of the time. Izzo et al.
        write η for half of it.
    noise
        "gaussian"; "norm-laplace" (density e^{−‖x‖/c}, radius Gamma(d, c)); "laplace" (one-dimensional values).
    bound
        How the noise is bounded. "auto" takes "swap" where it is a closed form, "direct" where its runs cost at most
        half of the target, else "centre"; of up to three numbers with a closed form the lesser of the first two: the
        table is ``alternatives``. "direct" compares the laws of the output with and without each record directly, on
        thousands of random training sets: any algorithm, every record at once, by far the least noise for medians,
        ratios and other functions without a closed form. With more than one number that varies it serves at most a
        few thousand records unless ``n_resamples`` is given, and needs more noise the more numbers there are. "swap"
        pairs training sets that differ in one record and takes the worst record; proved where the swap distances are
        known in closed form, otherwise it is refused.
        "centre" pairs opposite training sets: any algorithm, any dimension, every record, most noise.
    fraction
        Share of the records used for training.
    n_resamples
        Random resamples of the whole data set behind a sampled certificate. None: for "direct" between 4,096 and
        32,768, more for a smaller ``advantage`` and no more than fit into two minutes (64 further ones shape the noise
        and are timed; the certificate says what decided); otherwise 256 (a quarter shapes it).
    confidence
        Probability, over the resampling, that the certificate holds.
    rng
        Seeds the resampling only. The training part and the noise always use fresh operating-system entropy.
    n_jobs, progress
        joblib's number of workers (inside any joblib backend); a progress bar on stderr (None: if it is a terminal).

    Returns
    -------
    Release
        With ``value``, ``noise_scale`` (standard deviation of each coordinate), ``standard_error``, ``interval()``,
        ``to_frame()``, ``plot()``, ``certificate`` and ``alternatives``.

    Warns
    -----
    ReleaseWarning
        Where the value is below two standard deviations of its noise, which is larger than its spread over training
        parts: such a value is uninformative.

    Raises
    ------
    InputError
        For arguments out of range, and (as its subclass ``ReleaseError``) when the algorithm fails, returns NaN or
        changes shape, or when the target cannot be certified. Nothing is released then.

    Notes
    -----
    Definition: Izzo et al., Definition 1. The proof is in the documentation page on releases.
    Coordinates that are the same on every resample are published as that constant, which says nothing about
    membership; coordinates that always agree (a symmetric matrix) share one draw of noise.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> rows = np.random.default_rng(0).normal(size=(500, 1))
    >>> r = dn.release(np.median, rows, advantage=0.2)
    >>> isinstance(r, dn.releases.Release), r.certificate.advantage <= 0.2, r.alternatives[0].bound
    (True, True, 'direct')
    """
    choice("noise", noise, ("gaussian", "norm-laplace", "laplace"))
    choice("bound", bound, ("auto", *_PLANS))
    if not callable(algorithm):
        raise InputError(f"algorithm must be callable with a part of the data, got {algorithm!r}")
    population = Population.of(_as_arrays(data), fraction)
    certain = number("confidence", confidence, above=0.0, below=1.0)
    resamples = None if n_resamples is None else integer("n_resamples", n_resamples, at_least=8)
    task = ReleaseTask(
        algorithm,
        population,
        _valid_advantage(advantage, population),
        noise,
        bound,
        _runner(rng, n_jobs, progress),
        resamples,
        1 - certain,
    )
    found, alternatives = choose(task) if bound == "auto" else (settle(task, bound), ())
    return _carry_out(found, alternatives)


def _as_arrays(data: Any) -> Any:
    """Files and blocks as arrays; a list is the records themselves."""
    if not (isinstance(data, str | PathLike | Iterator) or hasattr(data, "to_delayed") or inspect.isroutine(data)):
        return data
    from deniable.tables import mapped_rows  # needs pandas

    return mapped_rows(data)


def _valid_advantage(advantage: Any, population: Population) -> float:
    rare = min(population.prior, 1 - population.prior)
    hint = f"no attack reaches more with {population.n_train} of {population.n_records} records in training"
    return number("advantage", advantage, above=0.0, below=2 * rare, hint=hint)


def _runner(rng: Seed, n_jobs: int | None, progress: bool | None) -> Runner:
    checked_jobs(n_jobs)
    return Runner(int(seeded(rng).integers(2**63)), n_jobs, progress)


@dataclass(frozen=True, eq=False)
class Settled:
    """A plan with the scale of its noise; ``law`` is None if nothing varies or no noise is needed."""

    task: ReleaseTask
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
    task = replace(task, bound=bound)
    plan = _PLANS[bound](task)
    if plan.law is None:
        return Settled(task, plan, None, 0.0)
    law = plan.law.with_scale(plan.evidence.least_scale(plan.law, task.level, task.log_gamma))
    reached = task.gain
    if isinstance(plan.evidence, ExactRows):
        worst = task.rare * task.inflation * plan.evidence.worst(law, task.log_gamma)
        reached = min(task.gain, worst * (1 + ROUNDING))
    return Settled(task, plan, law, reached)


def choose(task: ReleaseTask) -> tuple[Settled, tuple[Alternative, ...]]:
    """Return the way with the least expected error, and the table of those compared.

    The ways share one game, in which the whole data set is known, so comparing them on it is free; at most one of them
    is sampled. All lose the same by training on a part, so the least noise has the least error.
    """
    closed = swaps_known(task.algorithm)
    settled = [settle(task, "swap")] if closed else []
    few = not settled or 0 < settled[0].plan.coordinates.free.size <= _FEW_NUMBERS
    direct = few and direct_share(task) <= _WORTH_RUNNING
    if direct or not settled:
        try:
            settled.append(settle(task, "direct" if direct else "centre"))
        except ReleaseError as error:
            if not settled and not (direct and isinstance(error, NoGuaranteeError)):
                raise
            settled = settled or [settle(task, "centre")]  # known before any run that certifies
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
        bound=found.task.bound,
        kind=found.plan.kind,
        noise=_rms(noise),
        sampling=None if spread is None else _rms(np.asarray(spread)),
        error=error,
        chosen=chosen,
    )


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def _by_swap(task: ReleaseTask) -> NoisePlan:
    if swaps_known(task.algorithm):
        return plans.plan_from_closed_form(task, task.algorithm)
    raise NoGuaranteeError(
        "bound='swap' is proven for Mean, SecondMoment and Histogram of deniable.releases, not for this; use "
        "bound='auto', 'direct' or 'centre', which cover any algorithm"
    )


_PLANS: dict[str, Callable[[ReleaseTask], NoisePlan]] = {
    "direct": plan_by_direct,
    "swap": _by_swap,
    "centre": plans.plan_by_pairs,
}


def _carry_out(found: Settled, alternatives: tuple[Alternative, ...]) -> Release:
    """Draw the training part, run, add noise: the only place where the released value is touched.

    If nothing varies, the constant is published: the whole data set determines it, so it says nothing about membership.
    """
    task, plan, law = found.task, found.plan, found.law
    population, coordinates = task.population, plan.coordinates
    tradeoff = _certified_curve(found)
    sampler = "no noise was drawn"
    released = np.zeros(0)
    if plan.law is not None:
        rows = population.secret_subset()
        released = _on_training_part(task.algorithm, population, rows, coordinates.shape).ravel()[coordinates.free]
        assert law is not None  # for the type checker: what varies has a law
        released = law.perturb(released)
        sampler = testing.INSECURE if testing.insecure() else law.sampler
    value = coordinates.expand(released, coordinates.constants)
    warning = _useless(found, value)
    if warning is not None:
        warnings.warn(warning, ReleaseWarning, stacklevel=3)
    certificate = HalfCertificate(
        advantage=2 * found.gain,
        target=task.advantage,
        kind=plan.kind,
        confidence=1 - plan.evidence.failure,
        tradeoff=tradeoff,
        coupling=plan.coupling,
        n_records=population.n_records,
        n_train=population.n_train,
        n_resamples=plan.resamples,
        algorithm_runs=plan.runs,
        noise=task.noise if law is not None else "none",
        sampler=sampler,
        noise_scale=found.noise,
        assumptions=(GAME, *plan.assumptions),
        bound=task.bound,
        warning=warning,
    )
    return Release(value, found.noise, certificate, plan.deviation, alternatives, plan.bias)


def _useless(found: Settled, value: FloatArray) -> str | None:
    """Return a warning where the noise is most of what was released, and larger than its spread over training parts.

    Judged by what is released alone.
    """
    spread = found.plan.deviation
    if found.law is None or spread is None:
        return None
    noise, where = found.noise, found.noise > 0
    size = np.maximum(np.abs(value) / 2, spread)  # a value of 0 with this noise is below two standard deviations
    relative = noise[where] / np.maximum(size[where], 1e-300)
    if not np.median(relative) > 1:
        return None
    most = int(np.argsort(relative)[len(relative) // 2])
    which = "" if len(relative) == 1 else "for half of the numbers or more "
    return (
        f"this answers next to nothing: {which}the released value ({value[where][most]:.3g}) is less than two standard "
        f"deviations of its noise ({noise[where][most]:.3g}); release fewer numbers, give public bounds (bounds=...), "
        "raise advantage, or use more records"
    )


def _on_training_part(
    algorithm: Algorithm, population: Population, rows: Indices, shape: tuple[int, ...]
) -> FloatArray:
    """Run on the secret part.

    A failure is an output like any other: the certificate from the resamples covers that it happens (a pair with one
    failure would have counted as distinguished), but its message must not describe the part. Nor may anything else that
    the algorithm says there.
    """
    value = None
    with sealed(), suppress(ReleaseError, SystemExit):
        value = evaluate(algorithm, population, rows, "on the training part")
    if value is None or value.shape != shape:
        raise ReleaseError(
            f"the algorithm did not return numbers of shape {shape} on the training part; nothing was released, and "
            "what it did is withheld because it may reveal who trains: try it on other random parts of the data"
        )
    return value


def _certified_curve(found: Settled) -> Tradeoff:
    """Return the certified ROC: H_γ at a grid of γ ≥ 1, which the gain itself bounds from its own γ on.

    It is extended by H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P), as the bounds are equal in both directions. The gain of the
    direct way at uneven odds is of one direction alone: it bounds neither then.
    """
    task, plan, population = found.task, found.plan, found.task.population
    log_gammas, bound = _LOG_GAMMAS, np.zeros_like(_LOG_GAMMAS)
    if found.law is not None:
        log_gammas = np.unique(np.append(_LOG_GAMMAS, task.log_gamma))
        bound = np.minimum(task.inflation * plan.evidence.curve(found.law, log_gammas), 1.0)
        far = (log_gammas >= task.log_gamma) & (task.bound != "direct" or task.log_gamma == 0)
        bound[far] = np.minimum(bound[far], found.gain * (1 - ROUNDING) / task.rare)
        bound = np.minimum.accumulate(bound)
    small = np.exp(-log_gammas[:0:-1])
    both = np.concatenate([np.minimum(1 - small + small * bound[:0:-1] + 8 * EPS, 1.0), bound])
    drawn = f"a uniform {population.n_train} of {population.n_records} records, with or without one"
    return EnvelopeTradeoff(
        np.concatenate([-log_gammas[:0:-1], log_gammas]),
        both,
        both,
        method=plan.coupling,
        assumptions=Assumptions(game=GAME, adjacency=drawn, access="the released value"),
        confidence=1 - plan.evidence.failure,
        holds_for=f"{drawn} (a release certificate)",
    )
