"""Opacus with the noise that a membership target needs: calibrated, Poisson sampling enforced, the curve attached."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable._check import InputError, integer, number
from deniable._files import write_atomically
from deniable._optional import require
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff
from deniable.integrations.opacus import from_opacus, require_each_once
from deniable.integrations.opacus_guard import OUTSIDE, Guard
from deniable.limits import Limit
from deniable.mechanisms import Composition, Mechanism, SubsampledGaussian, entered, fields_of
from deniable.planning import AsTellingAs, as_limit, calibrate

if TYPE_CHECKING:
    from deniable.noise import Account

_SAMPLERS = ("RandomSampler", "SequentialSampler")
_LEAST_NOISE = 0.2  # smallest noise multiplier tried
_CHOSEN = 2**32  # seeds below are somebody's; those of the operating system have 53 bits or more
NOTES = (
    "the number of records is public: it sets the sampling rate and the divisor of the gradients",
    "no two records are equal or of one person (with k of them she is a person of k records: records_per_person=k)",
    "a batch reaches the module as it was drawn: neither training loop (mixup) nor data set, collate function, layer "
    "or loss mixes records or takes one twice",
    "nobody knows a seed of the generator of PyTorch or of the loader, and noise in floating point counts as Gaussian "
    "noise (an engine with secure_mode=True, where torchcsprng installs, draws it more carefully)",
    "weights at the start, learning rates and whatever else moves or selects parameters follow from nothing of the "
    "records but these noisy gradients; a run that goes on from a saved state uses nothing made after it",
    "buffers, which are saved with a model, hold nothing of the data: only gradients are clipped and noisy",
    "Opacus clips in the precision of the gradients: tensors of 10⁷ parameters and more may exceed the norm slightly",
)


@dataclass(frozen=True, eq=False)
class PrivateRun:
    """What :func:`make_private` promised, attached to the optimizer that it returned as ``optimizer.private_run``.

    Attributes
    ----------
    planned
        The whole run, including steps that the engine had recorded before.
    noise_multiplier, sample_rate, steps
        The calibrated noise, the Poisson rate and the number of steps that the target covers.
    limit
        What was asked for.
    engine
        The ``PrivacyEngine``, whose accountant counts the steps.
    guard
        What watches the run: see :mod:`deniable.integrations.opacus_guard`.
    entry, standing
        Number and head of its entry in a :class:`deniable.Ledger`, if there is one, and where that stood then.
    """

    planned: Mechanism
    noise_multiplier: float
    sample_rate: float
    steps: int
    limit: Limit | AsTellingAs
    engine: Any
    guard: Guard = field(repr=False)
    entry: tuple[int, str] | None = None
    standing: str = ""

    @property
    def mechanism(self) -> Mechanism:
        """The whole run; raises :class:`StepNotCoveredError` if a step was another one than was planned."""
        return self.planned.with_notes(self.notes, "record")

    @property
    def notes(self) -> tuple[str, ...]:
        """What must hold for the run; raises as :attr:`mechanism` does."""
        self.guard.require_whole()
        return (*NOTES, *entered(self.entry, self.standing))

    def tradeoff(self) -> Tradeoff:
        """Return the exact curve of the whole planned run, add or remove one record; it meets the target.

        Raises :class:`StepNotCoveredError` if a step was another mechanism than the one that was planned.
        """
        return tradeoff(self.mechanism)

    def spent(self) -> Tradeoff:
        """Return the curve of the steps that the accountant has recorded so far; raises as :meth:`tradeoff` does."""
        notes = self.notes
        return tradeoff(from_opacus(self.engine).with_notes(notes, "record"))

    def state_dict(self) -> dict[str, Any]:
        """Return what :meth:`load_state_dict` needs to go on with this run, to be saved with model and optimizer."""
        self.guard.require_whole()
        taken = {"taken": self.guard.taken, "entry": self.entry, "standing": self.standing}
        return self._plan() | taken | {"accountant": self.engine.accountant.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with a run that was saved: call ``make_private`` with the same arguments first, then this.

        What was made after the state was saved must not have been used. Raises ``InputError`` if the saved run was
        planned with other noise, another sampling rate or other steps, if its accountant holds other steps than it
        took, and if this run has taken a step: what that step told counts.
        """
        if self.guard.taken:
            raise InputError(
                f"state must be loaded before a step, {self.guard.taken:,} were taken and count; go on from here"
            )
        if other := [name for name, value in self._plan().items() if state.get(name) != value]:
            raise InputError(f"state is of a run with another {', '.join(other)}; call make_private as it was called")
        self.guard.resume(integer("taken", state["taken"], at_least=0), copy.deepcopy(state["accountant"]))
        for name in ("entry", "standing"):  # those of the run which goes on
            object.__setattr__(self, name, state.get(name, getattr(PrivateRun, name)))

    def export(self, path: str | Path) -> Path:
        """Write the model's ``state_dict()`` to ``path``, for ``model.load_state_dict(torch.load(path))``, and no more.

        Share this file, never the module as a whole: ``torch.save(module)`` writes the gradients of each record of the
        last batch along with it. Raises as :meth:`tradeoff` does.
        """
        self.guard.require_whole()
        torch = require("torch", purpose="training with Opacus")
        stream = io.BytesIO()
        torch.save(self.guard.parameters(), stream)
        return write_atomically(path, stream.getvalue())

    def _plan(self) -> dict[str, Any]:
        return {"noise_multiplier": self.noise_multiplier, "sample_rate": self.sample_rate, "steps": self.steps}


def make_private(
    module: Any,
    optimizer: Any,
    loader: Any,
    epochs: int,
    *,
    advantage: float | None = None,
    limit: Limit | Mechanism | None = None,
    max_grad_norm: float = 1.0,
    engine: Any = None,
    ledger: Account | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Return what Opacus's ``PrivacyEngine.make_private`` returns, with the least noise that meets a membership target.

    The attacker of the target sees the model after every step, knows all records but one, and tells whether that one
    was in. Batches are always Poisson-sampled. The optimizer raises :class:`StepNotCoveredError` before a step that the
    target does not cover, or that is not the counted one: batches from another loader, several batches in a step, ghost
    clipping without its criterion, a changed clipping norm, a batch in several forward passes. What cannot be seen is
    among the assumptions of its curve: equal records, and records mixed before they reach the module (mixup). Records
    whose gradient is not finite add nothing. ``optimizer.private_run`` holds the mechanism and its exact curve.

    Parameters
    ----------
    module, optimizer, loader
        As for Opacus: the model, its optimizer, a ``DataLoader`` over all records, batches of the expected size.
    epochs
        Number of passes that the target covers: ``epochs * len(loader)`` steps.
    advantage, limit
        What an attacker may reach, one of them, as for :func:`deniable.calibrate`.
    max_grad_norm
        Clipping norm of each record's gradient.
    engine
        A ``PrivacyEngine`` of your own. Steps that it has recorded count. ``secure_mode=True`` needs torchcsprng, which
        few versions of torch have; without it, PyTorch's noise in floating point counts as ideal.
    ledger
        A :class:`deniable.Ledger`, in which the whole run is entered before its first step; leave it out to go on with
        a saved run.
    options
        Passed to ``PrivacyEngine.make_private`` (``grad_sample_mode``, ``criterion``, ``loss_reduction``,
        …).

    Returns
    -------
    tuple
        (module, optimizer, loader), or with ``grad_sample_mode="ghost"`` (module, optimizer, criterion, loader).

    Raises
    ------
    InputError
        For a loader whose sampling would be lost or is a different mechanism, or whose data set takes a record several
        times from its parts; for ``poisson_sampling=False``, adaptive or per-layer clipping, distributed training, or a
        target that no noise meets.

    Examples
    --------
    >>> import deniable as dn
    >>> module, optimizer, loader = dn.make_private(  # doctest: +SKIP
    ...     module, optimizer, loader, epochs=10, advantage=0.2
    ... )
    >>> norms = dn.integrations.opacus.GradientNorms(optimizer, records=len(data))  # doctest: +SKIP
    >>> follow = dn.workflows.OpacusCallback(engine)  # doctest: +SKIP
    """
    from deniable.noise import enter

    asked = as_limit(advantage, limit)
    passes = integer("epochs", epochs, at_least=1)
    clip = number("max_grad_norm", max_grad_norm, above=0.0, below=float("inf"))
    _check_options(options)
    _check_loader(loader)
    require_each_once(loader)
    _check_parameters(module, optimizer, options.get("grad_sample_mode"))
    _warn(engine, getattr(loader, "generator", None))
    if type(module).__name__ in ("DistributedDataParallel", "DPDDP", "DifferentiallyPrivateDistributedDataParallel"):
        raise InputError("module must not be distributed: its sampling over workers has not been checked here")
    opacus = require("opacus", purpose="training with Opacus")
    chosen = opacus.PrivacyEngine() if engine is None else engine
    if type(chosen) is not opacus.PrivacyEngine:
        raise InputError(
            f"engine must be an opacus.PrivacyEngine, got {type(chosen).__name__}: what others release is not counted"
        )
    before = from_opacus(chosen) if len(chosen.accountant) else None
    rate, steps = 1 / len(loader), passes * len(loader)

    def run(noise: float) -> Mechanism:
        ours = SubsampledGaussian(noise, rate, steps)
        return ours if before is None else Composition([before, ours])

    # μ of so much noise is about q√T/σ, below 1/60: an advantage of less than 1 %, whatever the rate
    most = max(200.0, 60 * (rate * steps) ** 0.5 + 60 * rate * steps**0.5)
    noise = calibrate(run, (_LEAST_NOISE, most), advantage=advantage, limit=limit)
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
        raise InputError("this version of Opacus returned a loader that does not sample records at rate 1/len(loader)")
    guard = Guard(made[0], private, sampler, chosen.accountant, steps=steps, noise_multiplier=noise)
    entry = fields_of(enter(ledger, run(noise), unit="record", what="a DP-SGD run"))
    private.private_run = PrivateRun(run(noise), noise, rate, steps, asked, chosen, guard, **entry)
    return tuple(made)


def _check_options(options: dict[str, Any]) -> None:
    if options.pop("poisson_sampling", True) is not True:
        raise InputError(
            "poisson_sampling must be True: the curve holds for Poisson-sampled batches, and no tight one is known for "
            "shuffled batches"
        )
    if (kind := options.get("clipping", "flat")) != "flat":
        raise InputError(
            f"clipping must be 'flat', one norm for the whole gradient, got {kind!r}: the certificate counts neither "
            "norms of each layer nor the noisy counts that adaptive ones follow; leave clipping out"
        )
    if options.get("noise_generator") is not None:
        raise InputError(
            "noise_generator must be left out: whoever knows its seed subtracts all noise; without it, and without "
            "torch.manual_seed, PyTorch draws a seed from the operating system"
        )
    if "noise_multiplier" in options or "data_loader" in options:
        raise InputError("noise_multiplier follows from the target, data_loader is the argument loader; leave both out")


def _check_parameters(module: Any, optimizer: Any, mode: Any) -> None:
    """Refuse an optimizer that is private already, trainable parameters outside it, and what is not clipped as one."""
    if hasattr(optimizer, "original_optimizer"):
        raise InputError("optimizer must not be private already: its steps count; give a new model an optimizer anew")
    own = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if any(p.requires_grad and id(p) not in own for p in module.parameters()):
        raise InputError(OUTSIDE)
    if mode == "ghost" and len(list(module.named_parameters(remove_duplicate=False))) > len(list(module.parameters())):
        raise InputError(
            "module must not tie parameters in grad_sample_mode='ghost': Opacus clips each use by itself, so that a "
            "record's gradient exceeds the norm; use grad_sample_mode='hooks'"
        )


def _warn(engine: Any, generator: Any) -> None:
    """Warn of seeds that people choose, which give noise and batches away."""
    seed = require("torch", purpose="training with Opacus").initial_seed()
    if generator is not None and not getattr(engine, "secure_mode", False):
        warnings.warn(
            f"the loader has a generator of its own, with the seed {generator.initial_seed()}: whoever guesses it "
            "knows who is in each batch (torch.Generator() always starts from the same seed); leave it out",
            stacklevel=3,
        )
    if seed < _CHOSEN and not getattr(engine, "secure_mode", False):
        warnings.warn(
            f"torch.manual_seed({seed}) was called: whoever knows or guesses the seed subtracts all noise; leave it "
            "out in a run whose model is to be used",
            stacklevel=3,
        )


def _check_loader(loader: Any) -> None:
    """Refuse loaders whose sampling Opacus would silently drop."""
    if not hasattr(loader, "dataset") or not hasattr(loader, "__len__"):
        raise InputError(f"loader must be a DataLoader over a data set of known length, got {type(loader).__name__}")
    if isinstance(loader.dataset, require("torch", purpose="training with Opacus").utils.data.IterableDataset):
        raise InputError(
            f"loader must have a data set with indices, got the iterable data set {type(loader.dataset).__name__}: it "
            "hands records out in an order of its own, so that none can be drawn by itself; give it __getitem__ and "
            "__len__ (a torch.utils.data.Dataset)"
        )
    if type(loader).__name__ == "DPDataLoader":
        return
    if loader.batch_sampler is None:
        raise InputError(
            "loader must make the batches, got batch_size=None: items of the data set are then batches of its own, "
            "whose records cannot be drawn one by one; let an item be one record and say batch_size=…"
        )
    sampler, batches = type(loader.sampler).__name__, type(loader.batch_sampler).__name__
    if sampler not in _SAMPLERS or batches != "BatchSampler":
        raise InputError(
            f"loader must draw from all records alike (shuffle=True or False), got {sampler} in {batches}: Opacus "
            "would replace it by Poisson sampling of the whole data set at one rate, weights and subsets would be lost"
        )
    if getattr(loader.sampler, "replacement", False) or len(loader.sampler) != len(loader.dataset):
        raise InputError("loader must pass over each record once an epoch, got a sampler with another number of draws")
