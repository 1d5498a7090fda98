"""The same questions to many mechanisms, on all processors or a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, number, numbers
from deniable._parallel import in_order
from deniable._progress import track
from deniable.accounting.door import tradeoff
from deniable.mechanisms import Mechanism

_TASK = 32  # mechanisms of a task: they take milliseconds each


@dataclass(frozen=True, eq=False)
class Sweep:
    """Upper bounds on every attack, one row per mechanism.

    Attributes
    ----------
    advantage
        At the prior that was asked for, shape (n,).
    tpr
        At each false positive rate, shape (n, rates).
    epsilon
        At each δ, in the worse direction, shape (n, deltas).
    """

    advantage: FloatArray
    tpr: FloatArray
    epsilon: FloatArray


def sweep(
    mechanisms: Iterable[Mechanism],
    *,
    prior: float = 0.5,
    fpr: ArrayLike = (),
    delta: ArrayLike = (),
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Return what an attacker can reach under each of many mechanisms.

    Guarantee: every number is the one that ``dn.tradeoff(mechanism)`` gives, an upper bound, whatever the number of
    workers.

    Parameters
    ----------
    mechanisms
        What might be run.
    prior
        At which the advantage is asked for, in (0, 1).
    fpr, delta
        False positive rates and δ in (0, 1], if true positive rates and ε are wanted: they take several times as long
        as advantages.
    n_jobs
        Number of processes; -1 for all processors. Inside :func:`deniable.cluster` or ``joblib.parallel_config`` that
        of the cluster.
    progress
        Whether to show a progress bar; None for only on a terminal.

    Raises
    ------
    InputError
        For a mechanism that is none, with its place; rates or δ out of range.
    """
    if not isinstance(mechanisms, Iterable):
        raise InputError(f"mechanisms must be several mechanisms, got {mechanisms!r}")
    found = list(mechanisms)
    for place, one in enumerate(found):
        if not isinstance(one, Mechanism):
            raise InputError(f"mechanisms[{place}] must be a mechanism, got {one!r}")
    chance = number("prior", prior, above=0.0, below=1.0)
    rates = numbers("fpr", fpr, above=0.0, at_most=1.0).ravel()
    deltas = numbers("delta", delta, above=0.0, at_most=1.0).ravel()
    tasks = [found[at : at + _TASK] for at in range(0, len(found), _TASK)]
    answers = track(in_order(_answers, tasks, n_jobs, chance, rates, deltas), "mechanisms", len(tasks), shown=progress)
    rows = np.concatenate([np.empty((0, 1 + rates.size + deltas.size)), *answers])
    return Sweep(rows[:, 0], rows[:, 1 : 1 + rates.size], rows[:, 1 + rates.size :])


def _answers(prior: float, rates: FloatArray, deltas: FloatArray, mechanisms: Sequence[Mechanism]) -> FloatArray:
    """One row per mechanism: advantage, true positive rates, ε."""
    rows = np.empty((len(mechanisms), 1 + rates.size + deltas.size))
    for row, mechanism in zip(rows, mechanisms, strict=True):
        curve = tradeoff(mechanism)
        row[0] = curve.advantage(prior)
        row[1 : 1 + rates.size] = curve.tpr(rates) if rates.size else ()
        row[1 + rates.size :] = curve.epsilon(deltas) if deltas.size else ()
    return rows
