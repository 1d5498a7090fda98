"""Opacus with the noise that a membership target needs: calibrated, Poisson sampling enforced, the curve attached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from deniable._check import InputError, integer, number
from deniable._optional import require
from deniable._renamed import renamed_argument
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff, with_assumptions
from deniable.integrations.opacus import from_opacus
from deniable.mechanisms import Composition, Mechanism, SubsampledGaussian
from deniable.planning.calibration import parameter_for
from deniable.planning.targets import read_target, target_arguments

_CLIPPING = ("flat", "per_layer")  # adaptive clipping releases a noisy count as well
_SAMPLERS = ("RandomSampler", "SequentialSampler")
_LEAST_NOISE = 0.2  # smallest noise multiplier tried
_NOTES = (
    "the number of records is public: it sets the sampling rate and the divisor of the gradients",
    "no layer and no collate function mixes records",
    "PyTorch's default generator draws batches and noise, in floating point, unless the engine was made with "
    "secure_mode=True",
    "Opacus clips in the precision of the gradients: tensors of 10⁷ parameters and more may exceed the norm slightly",
)


class StepNotCoveredError(RuntimeError):
    """A step was about to run that the target does not cover; the parameters have not been moved by it."""


@dataclass(frozen=True, eq=False)
class PrivateRun:
    """What :func:`make_private` promised, attached to the optimizer that it returned as ``optimizer.private_run``.

    Attributes
    ----------
    mechanism
        The whole run, including steps that the engine had recorded before.
    noise_multiplier, sample_rate, steps
        The calibrated noise, the Poisson rate and the number of steps that the target covers.
    target
        The target as it was given.
    engine
        The ``PrivacyEngine``, whose accountant counts the steps.
    """

    mechanism: Mechanism
    noise_multiplier: float
    sample_rate: float
    steps: int
    target: dict[str, Any]
    engine: Any

    def tradeoff(self) -> Tradeoff:
        """Return the exact curve of the whole planned run, add or remove one record; it meets the target."""
        return with_assumptions(tradeoff(self.mechanism), notes=_NOTES)

    def spent(self) -> Tradeoff:
        """Return the curve of the steps that the accountant has recorded so far."""
        return with_assumptions(tradeoff(from_opacus(self.engine)), notes=_NOTES)


def make_private(
    module: Any,
    optimizer: Any,
    loader: Any,
    epochs: int,
    *,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    accuracy: float | None = None,
    prior: ArrayLike | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    reconstruction: float | None = None,
    baseline: float | None = None,
    singling_out: float | None = None,
    n: int | None = None,
    weight: float | None = None,
    attribute: float | None = None,
    group_size: int = 1,
    max_grad_norm: float = 1.0,
    engine: Any = None,
    group: int | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Return what Opacus's ``PrivacyEngine.make_private`` returns, with the least noise that meets a membership target.

    The attacker of the target sees the model after every step, knows all records but one, and tells whether that one
    was in. Batches are always Poisson-sampled; the optimizer raises :class:`StepNotCoveredError` before a step that the
    target does not cover; ``optimizer.private_run`` holds the mechanism and its exact curve.

    Parameters
    ----------
    module, optimizer, loader
        As for Opacus: the model, its optimizer, a ``DataLoader`` over all records, batches of the expected size.
    epochs
        Number of passes that the target covers: ``epochs * len(loader)`` steps.
    advantage, tpr, fpr, accuracy, prior, epsilon, delta, reconstruction, baseline, singling_out, n, weight, attribute
        The target, exactly one, as in :func:`deniable.calibrate`.
    group_size
        Number of records that are in or out together, for which the target holds.
    max_grad_norm
        Clipping norm of each record's gradient.
    engine
        A ``PrivacyEngine`` of your own, for instance with ``secure_mode=True``. Steps that it has recorded count.
    group
        The old name of ``group_size``.
    options
        Passed to ``PrivacyEngine.make_private`` (``clipping="flat"`` or ``"per_layer"``, ``grad_sample_mode``,
        ``criterion``, ``loss_reduction``, …).

    Returns
    -------
    tuple
        (module, optimizer, loader), or with ``grad_sample_mode="ghost"`` (module, optimizer, criterion, loader).

    Raises
    ------
    InputError
        For a loader whose sampling would be lost or is a different mechanism, for ``poisson_sampling=False``, adaptive
        clipping, distributed training, or a target that no noise meets.
    """
    target = target_arguments(locals())
    size = renamed_argument("group", group, group_size)
    goal = read_target(target, group_size=size)
    target |= {"group_size": size} if size > 1 else {}
    passes = integer("epochs", epochs, at_least=1)
    clip = number("max_grad_norm", max_grad_norm, above=0.0, below=float("inf"))
    _check_options(options)
    _check_loader(loader)
    if type(module).__name__ in ("DistributedDataParallel", "DPDDP", "DifferentiallyPrivateDistributedDataParallel"):
        raise InputError("module must not be distributed: its sampling over workers has not been checked here")
    opacus = require("opacus", purpose="training with Opacus")
    chosen = opacus.PrivacyEngine() if engine is None else engine
    before = from_opacus(chosen) if len(chosen.accountant) else None
    rate, steps = 1 / len(loader), passes * len(loader)

    def run(noise: float) -> Mechanism:
        ours = SubsampledGaussian(noise, rate, steps)
        return ours if before is None else Composition([before, ours])

    # μ of so much noise is about q√T/σ, below 1/60: an advantage of less than 1 %, whatever the rate
    most = max(200.0, 60 * (rate * steps) ** 0.5 + 60 * rate * steps**0.5)
    noise = parameter_for(goal, run, (_LEAST_NOISE, most))
    made = chosen.make_private(
        module=module,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=clip,
        poisson_sampling=True,
        **options,
    )
    private, sampler = made[1], made[-1]
    if type(sampler).__name__ != "DPDataLoader" or not sampler.sample_rate <= rate:
        raise InputError(
            "this version of Opacus returned a loader that does not sample each record at rate 1/len(loader)"
        )
    kept = PrivateRun(run(noise), noise, rate, steps, target, chosen)
    private.private_run = kept
    _stop_after(private, kept)
    return tuple(made)


def _stop_after(optimizer: Any, run: PrivateRun) -> None:
    """Let the optimizer refuse steps beyond the planned ones, or with less noise, before parameters move."""
    recorded, taken = optimizer.step_hook, 0

    def hook(stepping: Any) -> None:
        nonlocal taken
        if taken >= run.steps:
            raise StepNotCoveredError(
                f"the target covers {run.steps:,} steps and they are spent; call make_private with more epochs "
                "(and more noise) from the start"
            )
        if not stepping.noise_multiplier >= run.noise_multiplier:
            raise StepNotCoveredError(
                f"the target needs a noise multiplier of {run.noise_multiplier:.6g}, a scheduler set "
                f"{stepping.noise_multiplier:.6g}"
            )
        taken += 1
        recorded(stepping)

    optimizer.attach_step_hook(hook)


def _check_options(options: dict[str, Any]) -> None:
    if options.pop("poisson_sampling", True) is not True:
        raise InputError(
            "poisson_sampling must be True: the curve holds for Poisson-sampled batches, and no tight one is known for "
            "shuffled batches"
        )
    if options.get("clipping", "flat") not in _CLIPPING:
        raise InputError(
            f"clipping must be one of {', '.join(map(repr, _CLIPPING))}, got {options['clipping']!r}: adaptive "
            "clipping releases more than the noisy gradient"
        )
    if "noise_multiplier" in options or "data_loader" in options:
        raise InputError(
            "noise_multiplier follows from the target and data_loader is the argument loader; leave both out"
        )


def _check_loader(loader: Any) -> None:
    """Refuse loaders whose sampling Opacus would silently drop."""
    if not hasattr(loader, "dataset") or not hasattr(loader, "__len__"):
        raise InputError(
            f"loader must be a torch DataLoader over a data set of known length, got {type(loader).__name__}"
        )
    if type(loader).__name__ == "DPDataLoader":
        return
    sampler = type(getattr(loader, "sampler", None)).__name__
    batches = type(getattr(loader, "batch_sampler", None)).__name__
    if sampler not in _SAMPLERS or batches != "BatchSampler":
        raise InputError(
            f"loader must draw from all records alike (shuffle=True or False), got {sampler} in {batches}: Opacus "
            "would replace it by Poisson sampling of the whole data set at one rate, weights and subsets would be lost"
        )
    if getattr(loader.sampler, "replacement", False) or len(loader.sampler) != len(loader.dataset):
        raise InputError("loader must pass over each record once an epoch, got a sampler with another number of draws")
