"""What a private Opacus run does is watched: each step must be the one that its certificate counts.

The curve of a run holds for Gaussian noise on the clipped gradients of one Poisson batch, counted once. An ordinary
training loop can miss that in many ways without any message: a loss of its own with ghost clipping, the loader from
before, several batches in a step. The guard sees the batches, the backward passes and the steps, and refuses a step
that is another mechanism before the parameters move. Opacus is not imported.
"""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Iterator
from typing import Any

from deniable._check import InputError
from deniable._optional import require


class StepNotCoveredError(RuntimeError):
    """A step was about to run that the certificate does not cover; the parameters have not been moved by it."""


OUTSIDE = (
    "a trainable parameter is outside the private optimizer; give the optimizer every trainable parameter, or set "
    "requires_grad=False before make_private"
)


class Guard:
    """Watches one optimizer of ``make_private`` from its first step to its last.

    Attributes
    ----------
    taken
        Steps that were covered and taken.
    broken
        Why the run has no certificate any more, or None.
    """

    def __init__(
        self, module: Any, optimizer: Any, loader: Any, accountant: Any, *, steps: int, noise_multiplier: float
    ) -> None:
        self._module, self._optimizer, self._loader, self._accountant = module, optimizer, loader, accountant
        self._steps, self._noise, self._rate = steps, noise_multiplier, loader.sample_rate
        self._own = {id(p) for p in optimizer.params}
        self._start = [_some(p) for p in optimizer.params]
        self._before = recorded_steps(accountant.history)
        self.taken, self._updates = 0, 0
        self.broken: str | None = None
        self._handed: list[int] = []  # sizes of the batches that the loop got from the loader since the last step
        self._drawn: deque[int] = deque()  # of those that BatchMemoryManager drew from its sampler, not yet stepped on
        self._gathered: list[int] = []  # records whose clipped gradients were added up since then, call by call
        self._clipped = 0.0  # the largest norm to which they were clipped
        self._passes = _Passes()  # since then
        self._unclipped = False  # ghost clipping: a gradient of this step is not what the criterion left
        self._ghost = hasattr(module, "get_clipping_coef")
        _watch_loader(loader, self._handed, self._drawn)
        (self._watch_ghost if self._ghost else self._watch_gradients)()
        getattr(module, "_module", module).register_forward_pre_hook(self._passes)
        self._record = optimizer.step_hook  # the accountant's
        optimizer.attach_step_hook(self._check)
        optimizer.original_optimizer.register_step_post_hook(self._count_update)

    def require_whole(self) -> None:
        """Raise :class:`StepNotCoveredError` unless each update of the parameters was a covered step.

        Warns if training did not change a parameter that it was to train.
        """
        if self.broken is None and self._updates != self.taken:
            self.broken = (
                f"the optimizer updated the parameters {self._updates} times in {self.taken} checked steps; leave its "
                "step hook in place and call step() of the optimizer that make_private returned"
            )
        if self.broken is not None:
            raise StepNotCoveredError(f"this run has no certificate: {self.broken}")
        still = sum(bool((_some(p) == old).all()) for p, old in zip(self._optimizer.params, self._start, strict=True))
        if self.taken and still:
            warnings.warn(
                f"{still} of {len(self._start)} trainable parameters did not change in {self.taken:,} steps: look at "
                "the learning rate, and whether their precision resolves steps of that size",
                stacklevel=3,
            )

    def parameters(self) -> dict[str, Any]:
        """Return copies of what the module's ``state_dict()`` holds, on the processor."""
        whole = getattr(self._module, "_module", self._module)
        return {name: value.detach().cpu().clone() for name, value in whole.state_dict().items()}

    def resume(self, taken: int, history: dict[str, Any]) -> None:
        """Go on after ``taken`` steps, which the saved history of an accountant holds after those of before."""
        if (held := recorded_steps(history["history"])) - taken != self._before:
            raise InputError(
                f"state must hold the {self._before + taken:,} steps of its run, got {held:,}; save it anew"
            )
        self._accountant.load_state_dict(history)
        self.taken = self._updates = taken

    def _count_update(self, *_: Any) -> None:
        self._updates += 1

    def _check(self, optimizer: Any) -> None:
        """Called by the optimizer after noise was added and before the parameters move."""
        if self.taken >= self._steps:
            raise StepNotCoveredError(
                f"the target covers {self._steps:,} steps and they are spent; call make_private with more epochs "
                "(and more noise) from the start"
            )
        signals = vars(optimizer)["_step_skip_queue"]  # of parts BatchMemoryManager drew ahead; False ends a batch
        waiting = signals.count(False) + sum(signals[-1:])
        used = [self._drawn.popleft() for _ in range(len(self._drawn) - waiting)]
        self.broken = self.broken or self._fault(optimizer, [*self._handed, *used], in_parts=bool(used))
        if self.broken is not None:
            raise StepNotCoveredError(f"step {self.taken + 1} is not covered: {self.broken}")
        self._handed.clear()
        self._gathered.clear()
        self._clipped = self._passes.count = 0
        self.taken += 1
        self._record(optimizer)

    def _fault(self, optimizer: Any, batches: list[int], in_parts: bool) -> str | None:
        """Return why this step is not the one that was counted and what to write instead, or None."""
        noise = getattr(optimizer, "_adjusted_noise_multiplier", optimizer.noise_multiplier)  # ghost clipping adds that
        if not noise >= self._noise:
            return f"the target needs a noise multiplier of {self._noise:.6g}, a scheduler set {noise:.6g}"
        if not max(self._loader.sample_rate, self._loader.batch_sampler.sample_rate) <= self._rate:
            return "the loader's sample_rate was raised; call make_private with a loader of batches of that size"
        if not batches:
            return "its gradients come from no batch of the private loader; iterate over that of make_private"
        if not self._clipped <= optimizer.max_grad_norm:
            return (
                f"gradients were clipped at {self._clipped:g} and the noise is for {optimizer.max_grad_norm:g}; change "
                "the clipping norm between whole batches only, and never with ghost clipping"
            )
        if self._ghost and (fault := self._ghost_fault(optimizer)) is not None:
            return fault
        rows = sum(self._gathered)
        if (len(self._gathered) > 1 and not in_parts) or rows not in batches:
            return (
                f"it adds up {rows} clipped gradients in {len(self._gathered)} calls, from {len(batches)} batches of "
                f"at most {max(batches)} records, so that one may count several times, or several share a gradient; "
                "take one step after one backward pass over each whole batch, with BatchMemoryManager for batches that "
                "do not fit"
            )
        if self._passes.count > len(self._gathered):
            return (
                f"the module ran {self._passes.count} times for {len(self._gathered)} clipped sums, and Opacus adds "
                "gradients of several passes row by row before it clips, so that a row may hold several records; call "
                "the module once a batch (it may call its layers on several views of each record), and under "
                "torch.no_grad() or after eval() to look at its predictions"
            )
        if (found := recorded_steps(self._accountant.history)) != self._before + self.taken:
            return (
                f"the accountant holds {found:,} steps and not {self._before + self.taken:,}: another run uses this "
                "engine, or a checkpoint replaced its history; give each run an engine of its own, and resume with "
                "optimizer.private_run.load_state_dict"
            )
        if any(p.requires_grad and id(p) not in self._own for p in self._module.parameters()):
            return OUTSIDE
        return None

    def _ghost_fault(self, optimizer: Any) -> str | None:
        if self._unclipped:
            return (
                "its gradients were not clipped: backward() did not go through the criterion that make_private "
                "returned, or gradients were changed after it; use that criterion's loss alone"
            )
        if not all(bool(p.summed_grad.isfinite().all()) for p in optimizer.params):
            return (
                "a gradient is not finite, and ghost clipping cannot leave out one record's; use "
                "grad_sample_mode='hooks', in which such records count as zero"
            )
        return None

    def _watch_ghost(self) -> None:
        """Note which gradients Opacus's criterion left behind, and whether exactly those are added up."""
        optimizer, module = self._optimizer, self._module
        enable, accumulate = module.enable_hooks, optimizer.accumulate
        left: list[tuple[int, int]] = []

        def gradients() -> list[tuple[int, int]]:  # whoever changes one raises its version
            return [(id(p.grad), getattr(p.grad, "_version", 0)) for p in optimizer.params]

        def enable_hooks() -> None:  # the criterion ends its second backward pass, of clipped losses, with this
            enable()
            left[:] = gradients()

        def accumulate_noted() -> None:
            self._unclipped |= left != gradients()
            self._gathered.append(0 if self._unclipped else len(module.per_sample_gradient_norms))
            self._clipped = max(self._clipped, module.max_grad_norm)
            left.clear()
            accumulate()

        module.enable_hooks, optimizer.accumulate = enable_hooks, accumulate_noted

    def _watch_gradients(self) -> None:
        """Count the records that are added up; those whose gradient is not finite add nothing."""
        optimizer = self._optimizer
        clip = optimizer.clip_and_accumulate

        def clip_and_accumulate() -> None:
            self._gathered.append(len(optimizer.grad_samples[0]))
            self._clipped = max(self._clipped, optimizer.max_grad_norm)
            before = [p.summed_grad for p in optimizer.params]
            for p in optimizer.params:
                p.summed_grad = None
            clip()
            if not all(bool(p.summed_grad.isfinite().all()) for p in optimizer.params):
                _leave_out_records_that_are_not_finite(optimizer)
                clip()
            for p, held in zip(optimizer.params, before, strict=True):
                p.summed_grad = p.summed_grad if held is None else held + p.summed_grad

        optimizer.clip_and_accumulate = clip_and_accumulate


class _Passes:
    """Counts forward passes whose gradients Opacus keeps; a module that holds this can be saved."""

    count = 0

    def __call__(self, module: Any, _: Any) -> None:
        self.count += bool(module.training and require("torch", purpose="training with Opacus").is_grad_enabled())


class _Noting:
    """A sampler that writes down the size of each batch it draws."""

    def __init__(self, sampler: Any, sizes: deque[int]) -> None:
        self._sampler, self._sizes = sampler, sizes

    def __iter__(self) -> Iterator[Any]:
        for batch in self._sampler:
            self._sizes.append(len(batch))
            yield batch

    def __len__(self) -> int:
        return len(self._sampler)


def _watch_loader(loader: Any, handed: list[int], drawn: deque[int]) -> None:
    """Note the size of each batch where it reaches the loop; workers fetch ahead, so not where it is drawn.

    ``BatchMemoryManager`` makes a loader of its own from the sampler, and tells the optimizer where a batch ends.
    """
    kind, kind_of_sampler, sampler = type(loader), type(loader.batch_sampler), loader.batch_sampler
    fetching: deque[int] = deque()
    noting = _Noting(copy.copy(sampler), fetching)

    def hand(self: Any) -> Iterator[Any]:
        fetching.clear()
        for batch in kind.__iter__(self):
            handed.append(fetching.popleft())
            yield batch

    def draw(self: Any) -> Iterator[Any]:
        for batch in kind_of_sampler.__iter__(self):
            drawn.append(len(batch))
            yield batch

    sampler.__class__ = type(kind_of_sampler.__name__, (kind_of_sampler,), {"__iter__": draw})
    loader.__class__ = type(kind.__name__, (kind,), {"__iter__": hand, "_index_sampler": property(lambda _: noting)})


def _some(parameter: Any) -> Any:
    """A few numbers of a parameter: noise moves each of them in every step."""
    return parameter.detach().reshape(-1)[:64].cpu().clone()


def _leave_out_records_that_are_not_finite(optimizer: Any) -> None:
    """Set the gradients of records that hold NaN or infinities to zero, over all parameters, and the sums to none."""
    gradients = optimizer.grad_samples
    finite = gradients[0].reshape(len(gradients[0]), -1).isfinite().all(-1)
    for gradient in gradients[1:]:
        finite &= gradient.reshape(len(gradient), -1).isfinite().all(-1).to(finite.device)
    for p, gradient in zip(optimizer.params, gradients, strict=True):
        rows = finite.to(gradient.device).reshape(-1, *[1] * (gradient.dim() - 1))
        p.grad_sample, p.summed_grad = gradient.where(rows, gradient.new_zeros(())), None


def recorded_steps(history: Any) -> int:
    """Return how many steps the history of an accountant of Opacus holds."""
    return sum(int(steps) for _, _, steps in history)
