"""Record canaries: does each step of a DP-SGD run keep its promise, judged while it trains?

Real records of a torch data set, each in by a coin of its own, go through the loader, the loss, the backward pass,
clipping, sampling and noise of the run that is audited. Each has one parameter of its own, next to the model's: it
never changes an output, but its gradient is so large that the record's clipped gradient points along it. What a step
releases of it is then one subsampled Gaussian, if the run is what it says. torch is not imported before it is used.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, Seed, integer, number, seeded
from deniable._optional import require
from deniable.audit.results import AttackScores
from deniable.audit.sequential import SequentialAudit, SequentialVerdict
from deniable.mechanisms import SubsampledGaussian

_PUSH = 1e6  # a canary's own gradient over that of the loss by the output: all but the whole gradient is its own
_EXPECTED = 10  # canaries that should have been seen, from which on it is checked that they were


class RecordCanaries:
    """Real records, each in a training run by a coin, that show what the run releases about them.

    ::

        canaries = dn.audit.RecordCanaries(dataset, k=500)
        net = canaries.model(net)                                # before the optimizer is made
        loader = DataLoader(canaries.dataset, batch_size=100)
        module, optimizer, loader = dn.make_private(net, SGD(net.parameters(), 0.1), loader, 10, advantage=0.5)
        canaries.watch(optimizer)
        for x, y in loader:
            ...                                                  # the training loop as it is
            if canaries.audit.violated:                          # judged after each step
                break
        print(canaries.verdict())
        canaries.attack().audit().compare(optimizer.private_run.tradeoff())      # all steps together

    Outputs, and the loss, are those of the model alone. In training mode it takes records of ``canaries.dataset``, in
    evaluation mode (``eval()``) those of the data set as it was. A model that was audited is for auditing, not for use.

    Parameters
    ----------
    dataset
        A map-style data set of tuples that begin with a tensor, the model's first argument, of one or more dimensions.
    k
        Number of canaries, drawn among the records; about half of them will be in. All other records are in.
    confidence
        1 − the permitted probability of ever calling an honest run violated.
    rng
        Seed or generator of the draw and of the coins; by default the operating system's entropy.

    Attributes
    ----------
    dataset
        The records to train on: a canary's tensor holds its number in a last column that all records have.
    included
        Whether each canary is in, shape (k,): the secret that the scores guess.
    audit
        A :class:`SequentialAudit` of the promise that a step is a subsampled Gaussian of the stated noise and rate.
    scores
        Log-likelihood ratio of each canary's presence in all steps so far, shape (k,).
    steps
        Updates of the parameters so far.

    Notes
    -----
    *Why the verdict holds.* Given all steps before, what a step shows of each canary (the noisy gradient of its own
    parameter, over the clipping norm) is independent of the others and has one of the two laws of the promise, or a
    shift of less than 1. All pairs of scores may therefore be bet on, in the order in which they come. The verdict is
    about single steps; whether more steps ran than were counted is judged by :meth:`attack`.

    *What it does not see.* The norm of a canary's gradient is that of its own parameter: errors in the norms of other
    layers (a layer whose gradients per record are computed wrongly) do not show.

    Examples
    --------
    See ``make_private``.
    """

    def __init__(self, dataset: Any, k: int, *, confidence: float = 0.99, rng: Seed = None) -> None:
        n = len(dataset)
        self._k = integer("k", k, at_least=2)
        if self._k > n:
            raise InputError(f"k must be at most the number of records, {n:,}, got {k}")
        self._confidence = number("confidence", confidence, above=0.5, below=1.0)
        first = dataset[0][0]
        if not getattr(first, "ndim", 0) or not hasattr(first, "new_full"):
            raise InputError(
                f"dataset must hold tuples that begin with a tensor of one dimension or more, got {type(first)}"
            )
        if not all(_holds(first, label) for label in (self._k - 1, self._k)):
            raise InputError(f"k must be a number that {first.dtype}, the records' type, can hold, got {k}")
        coins = seeded(rng)
        chosen = coins.choice(n, size=self._k, replace=False)
        self.included: NDArray[np.bool_] = coins.random(self._k) < 0.5
        label = np.zeros(n, dtype=np.intp)
        label[chosen] = np.arange(1, self._k + 1)
        rows = np.setdiff1d(np.arange(n), chosen[~self.included])
        self.dataset = _Labelled(dataset, rows, label[rows])
        self.scores: FloatArray = np.zeros(self._k)
        self.steps = 0
        self._own: Any = None
        self._trained = np.zeros(self._k, dtype=bool)

    def model(self, module: Any) -> Any:
        """Return ``module`` with a parameter for each canary; make the optimizer of its parameters."""
        torch = require("torch", purpose="auditing with record canaries")
        whole = torch.nn.Module()
        whole.model, whole.canaries = module, torch.nn.Linear(self._k, 1, bias=False)
        self._own = whole.canaries.weight

        def forward(x: Any, *rest: Any, **named: Any) -> Any:
            if not whole.training:
                return module(x, *rest, **named)
            out = module(x[..., :-1], *rest, **named)
            label = x.flatten(1)[:, -1].long()
            present = torch.nn.functional.one_hot(label, self._k + 1)[:, 1:]
            own = whole.canaries(present.to(self._own.dtype))
            own = own - own.detach()  # zero, whatever the parameter
            out = out + own.reshape(-1, *[1] * (out.dim() - 1)).to(out.dtype)
            if out.requires_grad:
                arrived: list[Any] = [None]

                def push(g: Any) -> Any:
                    size = arrived[0].flatten(1).norm(dim=1)
                    self._trained[label[(size > 0) & (label > 0)].cpu().numpy() - 1] = True
                    return _PUSH * size.reshape(g.shape).to(g.dtype)

                out.register_hook(lambda g: arrived.__setitem__(0, g))
                own.register_hook(push)
            return out

        whole.forward = forward
        return whole

    def watch(self, optimizer: Any, *, sample_rate: float | None = None) -> None:
        """Score each step of ``optimizer``, Opacus's, from now on.

        The promise is the noise and the rate of ``optimizer.private_run``, or else the optimizer's noise multiplier now
        and ``sample_rate``, what the accountant counts: ``loader.sample_rate`` of Opacus's loader.
        """
        if self._own is None or all(p is not self._own for p in optimizer.params):
            raise InputError("optimizer must be the private one of the parameters of what canaries.model() returned")
        run = getattr(optimizer, "private_run", None)
        rate = run.sample_rate if sample_rate is None and run is not None else sample_rate
        self._noise = float(optimizer.noise_multiplier if run is None else run.noise_multiplier)
        self._rate = number("sample_rate", rate, above=0.0, at_most=1.0, hint="that of the private loader")
        self.audit = SequentialAudit(SubsampledGaussian(self._noise, self._rate, 1), self._confidence)

        def look(*_: Any) -> None:  # what moves the parameters, whoever made it
            self._take(optimizer)

        optimizer.original_optimizer.register_step_pre_hook(look)

    def verdict(self) -> SequentialVerdict:
        """Return whether a step so far released more than was promised; valid whenever it is asked.

        Raises
        ------
        InputError
            If fewer than half of the canaries that should have been in a batch by now had a loss.
        """
        self._check_trained()
        return self.audit.verdict()

    def attack(self) -> AttackScores:
        """Return the scores of all steps together, for the curve of the whole run; raises as :meth:`verdict` does."""
        self._check_trained()
        return AttackScores(
            self.scores[self.included],
            self.scores[~self.included],
            "likelihood ratio of every noisy gradient",
            f"{self.steps} steps with record canaries",
            {"canaries": self._k},
        )

    def _check_trained(self) -> None:
        """A canary without loss has no gradient, whatever the run does: it would speak for any promise."""
        expected = self.included.sum() * (1 - (1 - self._rate) ** self.steps)
        if expected >= _EXPECTED and self._trained.sum() < expected / 2:
            raise InputError(
                f"canaries must be trained on: about {expected:.0f} of those in should have had a loss after "
                f"{self.steps} steps, {self._trained.sum()} had; load canaries.dataset in training mode, "
                "with a loss that is not 0"
            )

    def _take(self, optimizer: Any) -> None:
        mean = optimizer.loss_reduction == "mean"
        scale = optimizer.expected_batch_size * optimizer.accumulated_iterations if mean else 1
        gradient = self._own.grad.detach().reshape(-1).float().cpu().numpy().astype(np.float64)
        x = np.nan_to_num(gradient * scale / float(optimizer.max_grad_norm))
        pairs = min(self.included.sum(), (~self.included).sum())  # which canaries these are was drawn
        self.audit.update(x[self.included][:pairs], x[~self.included][:pairs])
        self.scores = self.scores + log_mixture(x[:, None], self._noise, self._rate)
        self.steps += 1


def _holds(tensor: Any, label: int) -> bool:
    try:
        return int(tensor.new_full((), label)) == label
    except RuntimeError:  # too large for its integers
        return False


class _Labelled:
    """Some records of a data set, the first tensor of each with its label in a last column."""

    def __init__(self, dataset: Any, rows: NDArray[np.intp], labels: NDArray[np.intp]) -> None:
        self._dataset, self._rows, self._labels = dataset, rows, labels

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        x, *rest = self._dataset[int(self._rows[index])]
        wider = x.new_full((*x.shape[:-1], x.shape[-1] + 1), int(self._labels[index]))
        wider[..., :-1] = x
        return (wider, *rest)


def log_mixture(x: FloatArray, sigma: float, q: float) -> FloatArray:
    """Sum over the last axis of log((1 − q) + q·N(1, σ²)/N(0, σ²)) at x."""
    shift = (2 * x - 1) / (2 * sigma**2)
    if q == 1:
        return cast(FloatArray, shift.sum(axis=-1))
    return cast(FloatArray, np.logaddexp(np.log1p(-q), np.log(q) + shift).sum(axis=-1))
