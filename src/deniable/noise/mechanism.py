"""Release the output of any algorithm with a bound on what it tells about anyone's membership."""

from __future__ import annotations

import warnings
from math import comb
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, choice, integer, number
from deniable.curves import Assumptions, EnvelopeTradeoff, Tradeoff
from deniable.noise import plans
from deniable.noise.certificate import GAME, Certificate, Release
from deniable.noise.evidence import ExactRows, NoGuaranteeError, ReleaseError
from deniable.noise.laws import NoiseLaw
from deniable.noise.plans import ROUNDING, Game, Plan, Shaper
from deniable.noise.resampling import Algorithm, Population, Runner, cache_label, evaluate
from deniable.noise.statistics import ExactSwap, ResampledSwap

_LARGEST_ENUMERATION = 1000  # training sets; up to so many are all run (twice), and nothing is sampled
_LOG_GAMMAS = np.concatenate([np.linspace(0.0, 1.0, 11), np.geomspace(1.2, 24.0, 22)])


def release(
    algorithm: Algorithm,
    data: Any,
    *,
    eta: float,
    noise: Literal["gaussian", "norm-laplace", "laplace", "published"] = "gaussian",
    bound: Literal["centre", "swap"] = "centre",
    covariance: Literal["diagonal", "full"] = "diagonal",
    fraction: float = 0.5,
    n_resamples: int = 256,
    confidence: float = 0.99,
    known_std: ArrayLike | None = None,
    swap_records: int = 8,
    allow_estimate: bool = False,
    moment: float = 2.0,
    reproduce: bool = False,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    cache_dir: str | PathLike[str] | None = None,
    progress: bool | None = None,
    insecure_testing_rng: np.random.Generator | None = None,
) -> Release:
    """Run ``algorithm`` on a secret random part of ``data`` and add the least noise that certifies ``eta``.

    Guarantee: whoever knows all of ``data``, the algorithm and this call names the membership of a record in the
    training part with accuracy at most max(π, 1 − π) + ``eta``, π being the share of records in training; and his
    true positive rate is below ``certificate.tradeoff`` at every false positive rate. This holds in every dimension.
    The game takes ``data`` as given: who is in *it* (rather than in the training part) is not what is hidden.

    Parameters
    ----------
    algorithm
        Called with a part of ``data`` of the same type; returns a number or an array whose shape never changes.
        The closed forms of :mod:`deniable.noise` (``Mean``, ``Covariance``, ``Ridge``, …) know their swap bound.
    data
        Array, DataFrame, or tuple such as (X, y), with one record in each row; at least 4 records.
    eta
        Largest gain of any attack over guessing from the prior, in (0, min(π, 1 − π)).
    noise
        "gaussian"; "norm-laplace" (density e^{−‖x‖/c}, radius Gamma(d, c)); "laplace" (one-dimensional values);
        "published" (Izzo Corollary 10 as printed, no guarantee beyond one dimension, needs ``reproduce=True``).
    bound
        "centre" covers every record at once for any algorithm: it pairs the outputs of two opposite training sets,
        which is never worse than comparing each output with a fixed centre. "swap" pairs training sets that differ
        in one record and takes the worst record: much less noise, but proved only where the swap distances are known
        in closed form, or when there are at most 1,000 training sets (then all are run); otherwise it is refused.
    allow_estimate
        Whether "swap" may shape the noise by what it finds on ``swap_records`` random records where nothing is proven.
        The other records were seen at four to five times the η asked for, so ``certificate.eta`` is then NaN, the
        curve is the trivial one, and there is a warning: such a value is released without a guarantee.
    covariance
        Shape of the noise: "diagonal" (standard deviations ∝ √ of each coordinate's spread) or "full".
    fraction
        Share of the records that trains.
    n_resamples
        Random resamples of the whole data set behind a sampled certificate; a quarter of them shapes the noise.
    confidence
        Probability, over the resampling, that the certificate holds.
    known_std
        Proven upper bounds on the standard deviation of each coordinate over random training sets (shape of the
        value, or a number): the certificate is then exact, with no resampling.
    swap_records
        Number of records on which an unknown algorithm's swap bound is estimated.
    moment, reproduce
        M of the published noise, and the consent to use it.
    rng
        Seeds the resampling only. The training part and the noise always use fresh operating-system entropy.
    n_jobs, progress
        joblib's number of workers (inside any joblib backend); a progress bar on stderr (None: if it is a terminal).
    cache_dir
        Directory that keeps the resamples' outputs so that a broken run can be resumed; needs ``rng``. It holds
        unprotected outputs: keep it as secret as the data.
    insecure_testing_rng
        Replaces fresh entropy and hardened samplers by a reproducible generator. Never use it to release anything.

    Returns
    -------
    Release
        With ``value``, ``noise_scale`` (standard deviation of each coordinate) and ``certificate``.

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
    """
    choice("noise", noise, ("gaussian", "norm-laplace", "laplace", "published"))
    choice("bound", bound, ("centre", "swap"))
    choice("covariance", covariance, ("diagonal", "full"))
    if not callable(algorithm):
        raise InputError(f"algorithm must be callable with a part of the data, got {algorithm!r}")
    population = Population.of(data, fraction)
    certain = number("confidence", confidence, above=0.0, below=1.0)
    game = Game(population, _valid_eta(eta, population), bound, certain)
    shaper = Shaper(noise, covariance)
    resamples = integer("n_resamples", n_resamples, at_least=8)
    label = cache_label(algorithm, population, bound, noise, covariance, resamples, swap_records)
    runner = _runner(rng, n_jobs, progress, cache_dir, label)
    if noise == "published":
        game = Game(population, game.eta, "centre", certain)
        return _published(algorithm, runner, game, resamples, moment, reproduce, insecure_testing_rng)

    if known_std is not None:
        plan = plans.plan_from_bound(game, shaper, known_std)
    elif bound == "swap" and isinstance(algorithm, ExactSwap):
        plan = plans.plan_from_closed_form(algorithm, game, shaper)
    elif (found := _enumerated(algorithm, game, shaper)) is not None:
        plan = found
    elif bound == "centre":
        plan = plans.plan_by_pairs(algorithm, runner, game, shaper, resamples)
    elif isinstance(algorithm, ResampledSwap):
        plan = plans.plan_by_known_swaps(algorithm, runner, game, shaper, resamples)
    else:
        if not allow_estimate:
            raise NoGuaranteeError(
                "bound='swap' is proven for the closed forms of deniable.noise and for at most 1,000 training sets, "
                "not for this algorithm; use bound='centre', which covers every record of any algorithm (or "
                "allow_estimate=True for a value without a guarantee)"
            )
        warnings.warn(
            "this release has no guarantee: its noise follows from a few random records, others may be exposed; "
            "bound='centre' covers all",
            UserWarning,
            stacklevel=2,
        )
        watched = integer("swap_records", swap_records, at_least=1)
        plan = plans.plan_by_swaps(algorithm, runner, game, shaper, resamples, watched)

    if plan.law is None:
        return _constant(game, plan)
    law = plan.law.with_scale(plan.evidence.least_scale(plan.law, game.level, game.log_gamma))
    reached = game.eta
    if plan.kind == "estimate":
        reached = float("nan")
    elif isinstance(plan.evidence, ExactRows):
        worst = game.rare * game.inflation * plan.evidence.worst(law, game.log_gamma)
        reached = min(game.eta, worst * (1 + ROUNDING))
    return _carry_out(algorithm, game, plan, law, reached, noise, insecure_testing_rng)


def _valid_eta(eta: Any, population: Population) -> float:
    rare = min(population.prior, 1 - population.prior)
    hint = f"with {population.n_train} of {population.n_records} records in training no attack gains more than {rare:g}"
    return number("eta", eta, above=0.0, below=rare, hint=hint)


def _runner(
    rng: int | np.random.Generator | None,
    n_jobs: int | None,
    progress: bool | None,
    cache_dir: str | PathLike[str] | None,
    label: tuple[str, ...],
) -> Runner:
    if n_jobs is not None and integer("n_jobs", n_jobs) == 0:
        raise InputError("n_jobs must be a number of workers, -1 for all processors or None, got 0")
    if cache_dir is not None and rng is None:
        raise InputError("cache_dir needs rng: only seeded resamples can be resumed")
    entropy = int(np.random.default_rng(rng).integers(2**63))
    return Runner(entropy, n_jobs, progress, None if cache_dir is None else Path(cache_dir), label)


def _enumerated(algorithm: Algorithm, game: Game, shaper: Shaper) -> Plan | None:
    n, k = game.population.n_records, game.population.n_train
    if n > 16 or comb(n, k) > _LARGEST_ENUMERATION:
        return None
    return plans.plan_by_enumeration(algorithm, game, shaper)


def _carry_out(
    algorithm: Algorithm,
    game: Game,
    plan: Plan,
    law: NoiseLaw,
    eta: float,
    noise: str,
    insecure_testing_rng: np.random.Generator | None,
) -> Release:
    """Draw the training part, run, add noise: the only place where the released value is touched."""
    population, coordinates = game.population, plan.coordinates
    tradeoff = _certified_curve(game, plan, law, eta)
    value = _on_training_part(algorithm, population, coordinates.shape, insecure_testing_rng)
    noised = law.perturb(value.ravel()[coordinates.free], insecure_testing_rng=insecure_testing_rng)
    sampler = law.sampler
    if insecure_testing_rng is not None:
        sampler = "INSECURE: reproducible noise and training part, for tests only"
    return _packed(
        game,
        plan,
        coordinates.expand(noised, coordinates.constants),
        coordinates.expand(law.standard_deviation, 0.0),
        eta=eta,
        noise=noise,
        sampler=sampler,
        tradeoff=tradeoff,
    )


def _on_training_part(
    algorithm: Algorithm,
    population: Population,
    shape: tuple[int, ...],
    insecure_testing_rng: np.random.Generator | None,
) -> FloatArray:
    """Run on the secret part. A failure is an output like any other: what was certified on the resamples covers that
    it happens (a pair with one failure would have counted as told apart), but its words must not describe the part.
    """
    rows = population.secret_subset(insecure_testing_rng)
    try:
        value = evaluate(algorithm, population, rows, "on the training part")
    except ReleaseError:
        value = None
    if value is None or value.shape != shape:
        raise ReleaseError(
            f"the algorithm did not return numbers of shape {shape} on the training part; nothing was released, and "
            "what it did is withheld because it may tell who trains: try it on other random parts of the data"
        )
    return value


def _constant(game: Game, plan: Plan) -> Release:
    """Publish what every training set gives: it is known from the whole data set, so it says nothing on membership."""
    coordinates = plan.coordinates
    nothing = np.zeros(0)
    perfect = _curve(game, np.zeros_like(_LOG_GAMMAS), _LOG_GAMMAS, "constant", 1.0)
    value = coordinates.expand(nothing, coordinates.constants)
    spread = coordinates.expand(nothing, 0.0)
    return _packed(game, plan, value, spread, eta=0.0, noise="none", sampler="no noise was drawn", tradeoff=perfect)


def _packed(
    game: Game,
    plan: Plan,
    value: FloatArray,
    spread: FloatArray,
    *,
    eta: float,
    noise: str,
    sampler: str,
    tradeoff: Tradeoff,
) -> Release:
    population = game.population
    certificate = Certificate(
        eta=eta,
        target=game.eta,
        kind=plan.kind,
        confidence=plan.evidence.confidence,
        tradeoff=tradeoff,
        coupling=plan.coupling,
        prior=population.prior,
        n_records=population.n_records,
        n_train=population.n_train,
        n_resamples=plan.resamples,
        algorithm_runs=plan.runs,
        noise=noise,
        sampler=sampler,
        noise_scale=spread,
        records=plan.records,
        assumptions=(GAME, *plan.assumptions),
    )
    return Release(value, spread, certificate)


def _certified_curve(game: Game, plan: Plan, law: NoiseLaw, eta: float) -> Tradeoff:
    """Return the certified ROC: H_γ at a grid of γ ≥ 1, which η itself bounds from its own γ on; trivial without η."""
    if np.isnan(eta):
        return _curve(game, np.ones_like(_LOG_GAMMAS), _LOG_GAMMAS, plan.coupling, plan.evidence.confidence)
    log_gammas = np.unique(np.append(_LOG_GAMMAS, game.log_gamma))
    bound = np.minimum(game.inflation * plan.evidence.curve(law, log_gammas), 1.0)
    bound[log_gammas >= game.log_gamma] = np.minimum(
        bound[log_gammas >= game.log_gamma], eta * (1 - ROUNDING) / game.rare
    )
    return _curve(game, np.minimum.accumulate(bound), log_gammas, plan.coupling, plan.evidence.confidence)


def _curve(game: Game, bound: FloatArray, log_gammas: FloatArray, method: str, confidence: float) -> Tradeoff:
    """Extend bounds at γ ≥ 1, equal in both directions, by H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P)."""
    small = np.exp(-log_gammas[:0:-1])
    both = np.concatenate([np.minimum(1 - small + small * bound[:0:-1] + 1e-15, 1.0), bound])
    points = np.concatenate([-log_gammas[:0:-1], log_gammas])
    assumptions = Assumptions(
        game=GAME,
        adjacency=f"a uniform {game.population.n_train} of {game.population.n_records} records, with or without one",
        access="the released value",
    )
    return EnvelopeTradeoff(
        points,
        both,
        both,
        method=method,
        assumptions=assumptions,
        confidence=confidence,
        holds_for="which records of one data set were drawn (a release certificate)",
    )


def _published(
    algorithm: Algorithm,
    runner: Runner,
    game: Game,
    resamples: int,
    moment: float,
    reproduce: bool,
    insecure_testing_rng: np.random.Generator | None,
) -> Release:
    """Release with the paper's sampler at its scale c = (6.16/η)^{1+2/M}; nothing is claimed beyond d = 1."""
    plan = plans.plan_as_published(algorithm, runner, game, resamples, moment, reproduce)
    if plan.law is None:
        return _constant(game, plan)
    law = plan.law.with_scale((6.16 / game.eta) ** (1 + 2 / moment))
    eta = game.eta if law.dimension == 1 else game.rare
    return _carry_out(algorithm, game, plan, law, eta, "published", insecure_testing_rng)
