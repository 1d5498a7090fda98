"""Gradient canaries in an Opacus run: is its noise as large, and as independent, as the accountant counts?

A canary here is not a row but what a row can do at worst: whenever it is drawn it adds a gradient of exactly the
clipping norm, in a direction of its own (one coordinate of the parameters). An attacker who sees every noisy gradient,
and knows what the other records added, sees of each canary an independent subsampled Gaussian: what the accountant
bounds. The canaries enter after clipping and draw themselves, so they test the noise alone: batches of another size,
lost clipping and steps that were skipped do not show. :class:`deniable.audit.RecordCanaries` test these, too. Neither
torch nor Opacus is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, Seed, integer, number, seeded
from deniable.audit import AttackScores, OneRunAudit, audit_one_run, log_mixture
from deniable.mechanisms import Composition, Mechanism, SubsampledGaussian

_OPTIMIZERS = ("DPOptimizer", "DPOptimizerFastGradientClipping")  # flat clipping: one norm for the whole gradient


class GradientCanaries:
    """Puts canaries into an Opacus run, each by a coin toss, and scores them: a test of its noise alone.

    Create it after ``make_private``, train as you would have anyway, and audit the one run::

        canaries = GradientCanaries(optimizer, k=1000, sample_rate=loader.sample_rate)
        ...                                                            # train
        run = canaries.audit()
        run.mu(), run.compare(canaries.mechanism())
        canaries.attack().audit().compare(canaries.mechanism())        # if the coordinates' noise is independent

    Included canaries move the parameters at their coordinates as records do: a model with canaries in it is for
    auditing, not for use.

    Parameters
    ----------
    optimizer
        Opacus's ``DPOptimizer`` or its ghost-clipping counterpart (flat clipping, one process).
    k
        Number of canaries, at most the number of trainable parameters; about half of them will be in.
    sample_rate
        Probability that a step draws a canary: that of the records, ``loader.sample_rate`` of Opacus's loader.
    rng
        Seed or generator of coins, coordinates and draws; by default the operating system's entropy.

    Attributes
    ----------
    included
        Whether each canary is in, shape (k,): the secret that the scores guess.
    scores
        Log-likelihood ratio of each canary's presence in what the steps so far released, shape (k,).
    steps
        Logical steps so far.

    Raises
    ------
    InputError
        For another optimizer, or more canaries than parameters.

    Examples
    --------
    See ``make_private``.
    """

    def __init__(self, optimizer: Any, k: int, sample_rate: float, *, rng: Seed = None) -> None:
        if type(optimizer).__name__ not in _OPTIMIZERS:
            raise InputError(
                f"optimizer must be one of Opacus's {', '.join(_OPTIMIZERS)} (flat clipping, one process), got "
                f"{type(optimizer).__name__}"
            )
        self._rate = number("sample_rate", sample_rate, above=0.0, at_most=1.0)
        sizes = [int(np.prod(p.shape)) for p in optimizer.params]
        k = integer("k", k, at_least=1)
        if k > sum(sizes):
            raise InputError(f"k must be at most the number of trainable parameters, {sum(sizes):,}, got {k:,}")
        self._rng = seeded(rng)
        self._places = _places(np.sort(self._rng.choice(sum(sizes), size=k, replace=False)), sizes)
        self.included: NDArray[np.bool_] = self._rng.random(k) < 0.5
        self.scores: FloatArray = np.zeros(k)
        self._phases: list[list[Any]] = []  # noise multiplier and steps
        add_noise = optimizer.add_noise

        def add_noise_with_canaries() -> None:
            known = self._insert(optimizer)
            add_noise()
            self._look(optimizer, known)

        optimizer.add_noise = add_noise_with_canaries

    @property
    def steps(self) -> int:
        """Logical steps so far."""
        return sum(steps for _, steps in self._phases)

    def mechanism(self) -> Mechanism:
        """Return the mechanism of the steps so far for one canary: the claim that the audit tests."""
        if not self._phases:
            raise InputError("canaries must have been trained with: no step was taken yet")
        runs = [SubsampledGaussian(noise, self._rate, steps) for noise, steps in self._phases]
        return runs[0] if len(runs) == 1 else Composition(runs)

    def audit(self, *, confidence: float = 0.95) -> OneRunAudit:
        """Audit the run so far; for the parameters see :func:`deniable.audit.audit_one_run`."""
        if not self._phases:
            raise InputError("canaries must have been trained with: no step was taken yet")
        return audit_one_run(self.scores, self.included, confidence=confidence, direction="larger")

    def attack(self) -> AttackScores:
        """Return the scores of both sides, for the intervals of independent trainings; sharper than :meth:`audit`.

        They are independent if noise is drawn independently for each coordinate, as Opacus does; :meth:`audit` needs no
        such assumption.
        """
        details = {"exact_ratio": True, "canaries": len(self.scores)}
        return AttackScores(
            self.scores[self.included],
            self.scores[~self.included],
            "likelihood ratio of every noisy gradient",
            f"an Opacus run with gradient canaries: {self.mechanism()!r}",
            details,
        )

    def _insert(self, optimizer: Any) -> FloatArray:
        """Add the drawn canaries to the clipped sums; return the coordinates of the records' sums alone."""
        drawn = self.included & (self._rng.random(len(self.included)) < self._rate)
        known = np.empty(len(drawn))
        for parameter, (canary, inside) in zip(optimizer.params, self._places, strict=True):
            if not len(canary):
                continue
            parameter.summed_grad = parameter.summed_grad.contiguous()
            flat = parameter.summed_grad.reshape(-1)
            known[canary] = _numbers(flat[inside])
            flat[inside[drawn[canary]]] += optimizer.max_grad_norm
        return known

    def _look(self, optimizer: Any, known: FloatArray) -> None:
        noise = float(optimizer.noise_multiplier)
        seen = np.empty(len(known))
        for parameter, (canary, inside) in zip(optimizer.params, self._places, strict=True):
            if len(canary):
                seen[canary] = _numbers(parameter.grad.reshape(-1)[inside])
        x = (seen - known) / float(optimizer.max_grad_norm)
        if self._phases and self._phases[-1][0] == noise:
            self._phases[-1][1] += 1
        else:
            self._phases.append([noise, 1])
        self.scores = self.scores + log_mixture(x[:, None], noise, self._rate)


def _places(chosen: NDArray[np.intp], sizes: list[int]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return, for each parameter, its canaries and their positions in the flattened parameter."""
    ends = np.cumsum(sizes)
    parts = np.searchsorted(ends, chosen, side="right")
    starts = ends - sizes
    return [(np.flatnonzero(parts == i), chosen[parts == i] - starts[i]) for i in range(len(sizes))]


def _numbers(values: Any) -> FloatArray:
    return np.asarray(values.detach().float().cpu().numpy(), dtype=np.float64)  # NumPy has no bfloat16
