"""Runs of an algorithm on random subsets of the whole data set: parallel, reproducible, resumable.

The subsets used here are never the training set of the release: they are drawn from the whole data set by their own
generator, so nothing computed from them depends on who was in training (erratum E5: the published Algorithm 1
estimates its spread from the training set itself).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from deniable import testing
from deniable._check import FloatArray, Indices, InputError, number, unmasked
from deniable._parallel import in_order
from deniable._progress import track
from deniable.releases.evidence import ReleaseError

Algorithm = Callable[[Any], Any]
_ROUNDS = 4  # parts into which each worker's resamples are cut: progress is shown and stored after each


@dataclass(frozen=True)
class Population:
    """The whole data set, and the size of the random training subset.

    ``data`` is an array, a sparse matrix, a DataFrame or Series, or a tuple of those with equal length.
    """

    data: Any
    n_records: int
    n_train: int

    @classmethod
    def of(cls, data: Any, fraction: float) -> Population:
        """Check the data and round ``fraction`` of it to a training size k with 1 ≤ k ≤ n − 1."""
        share = number("fraction", fraction, above=0.0, below=1.0)
        data = tuple(unmasked("data", part) for part in data) if isinstance(data, tuple) else unmasked("data", data)
        parts = data if isinstance(data, tuple) else (data,)
        sizes = {_length(part) for part in parts}
        if len(sizes) != 1:
            raise InputError(f"data must be parts of equal length, got lengths {sorted(sizes)}")
        n = sizes.pop()
        if n < 4:
            raise InputError(f"data must have at least 4 records, got {n}; fewer cannot hide one another")
        return cls(data, n, min(max(int(np.floor(n * share + 1e-9)), 1), n - 1))

    @property
    def prior(self) -> float:
        """Chance that a record is in the training set."""
        return self.n_train / self.n_records

    def take(self, rows: Indices) -> Any:
        """Return the records with these row numbers, as a copy of the same type."""
        if isinstance(self.data, tuple):
            return tuple(_take(part, rows) for part in self.data)
        return _take(self.data, rows)

    def secret_subset(self) -> Indices:
        """Draw the training set: uniform, from the operating system's entropy, in the order of the data."""
        if (rng := testing.generator()) is not None:
            return np.sort(rng.permutation(self.n_records)[: self.n_train])
        while True:  # records by random keys: every order is equally likely where no two keys are equal
            keys = np.frombuffer(os.urandom(8 * self.n_records), dtype=np.uint64)
            order = np.argsort(keys)
            if np.all(np.diff(keys[order]) > 0):
                return np.sort(order[: self.n_train])

    def single_set(self, rng: np.random.Generator) -> tuple[Indices]:
        """Draw one training set."""
        return (np.flatnonzero(self.random_members(rng)),)

    def random_members(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Return of each record whether it is in the training set that :meth:`single_set` draws."""
        member = np.zeros(self.n_records, dtype=bool)
        member[rng.permutation(self.n_records)[: self.n_train]] = True
        return member

    def opposite_pair(self, rng: np.random.Generator) -> tuple[Indices, Indices]:
        """Draw two training sets such that any given record is in exactly one of them as often as possible.

        For k ≤ n/2 they are disjoint, above that their complements are.
        """
        order = rng.permutation(self.n_records)
        return np.sort(order[: self.n_train]), np.sort(order[self.n_records - self.n_train :])


@dataclass(frozen=True)
class Outputs:
    """One resample: the algorithm's outputs on a few subsets, stacked."""

    algorithm: Algorithm
    population: Population
    subsets: Callable[[np.random.Generator], Sequence[Indices]]

    def __call__(self, rng: np.random.Generator, where: str) -> FloatArray:
        """Return outputs of shape (subsets, *shape of the value)."""
        outputs = []
        for rows in self.subsets(rng):
            try:
                outputs.append(evaluate(self.algorithm, self.population, rows, where))
            except ReleaseError as error:
                error.rows = rows
                raise
        return stack(outputs)


Resample = Callable[[np.random.Generator, str], FloatArray]


@dataclass(frozen=True)
class Runner:
    """Runs resamples of an algorithm.

    ``entropy`` seeds resample i as ``SeedSequence(entropy, spawn_key=(i,))``, whatever the backend and the order.
    """

    entropy: int
    n_jobs: int | None = None
    progress: bool | None = None

    def map(self, task: Resample, draws: int, start: int = 0) -> FloatArray:
        """Return the results of ``task`` for ``draws`` resamples from ``start`` on, stacked; a failure is raised."""
        workers, indices = joblib.effective_n_jobs(self.n_jobs), range(start, start + draws)
        size = -(-draws // (_ROUNDS * workers)) if workers > 1 else 1
        chunks = [indices[i : i + size] for i in range(0, draws, size)]
        parts = in_order(_run_all, chunks, self.n_jobs, task, self)
        found = []
        for result in track((one for part in parts for one in part), "resampling", draws, shown=self.progress):
            if isinstance(result, ReleaseError):
                raise result
            found.append(result)
        return stack(found)

    def generator(self, index: int) -> np.random.Generator:
        """Return the generator of resample ``index``."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(index,)))


def _run_all(task: Resample, runner: Runner, indices: Sequence[int]) -> list[FloatArray | ReleaseError]:
    """Run several resamples, up to the first that fails; a failure comes back as a value: every backend keeps it so."""
    results: list[FloatArray | ReleaseError] = []
    for index in indices:
        where = f"on a random part of the records (resample {index}; .rows of this error has its row numbers)"
        try:
            results.append(task(runner.generator(index), where))
        except ReleaseError as error:
            return [*results, error]
    return results


def stack(values: Sequence[FloatArray]) -> FloatArray:
    """Stack outputs, which must have one shape."""
    shapes = {value.shape for value in values}
    if len(shapes) != 1:
        least, *_, most = sorted(shapes)
        raise ReleaseError(
            f"the algorithm must always return one shape, got {least} from one part of the records and {most} from "
            "another; fix the shape beforehand (bins, categories, padding); nothing was released"
        )
    return np.stack(values)


def evaluate(algorithm: Algorithm, population: Population, rows: Indices | None, where: str) -> FloatArray:
    """Run the algorithm once and return its output as a finite float array; any failure raises :class:`ReleaseError`.

    ``rows`` None: on the data themselves, not on a copy, for algorithms that change nothing in them. An ``InputError``
    about them is raised as it is.
    """
    try:
        value = np.array(algorithm(population.data if rows is None else population.take(rows)), dtype=np.float64)
    except Exception as error:
        if rows is None and isinstance(error, InputError):
            raise  # no other bound can serve, and its text says what is wrong
        raise ReleaseError(f"the algorithm failed {where} with {type(error).__name__}; nothing was released") from error
    if not np.all(np.isfinite(value)):
        raise ReleaseError(f"the algorithm returned NaN or an infinite value {where}; nothing was released")
    if value.size == 0:
        raise ReleaseError(f"the algorithm returned an empty array {where}; nothing was released")
    return value


def _length(part: Any) -> int:
    shape = getattr(part, "shape", None)
    if shape is not None:
        if len(shape) == 0:
            raise InputError("data must have records along its first axis, got a single number")
        return int(shape[0])
    if isinstance(part, str | bytes | dict) or not hasattr(part, "__len__"):
        raise InputError(f"data must be an array, a DataFrame or a tuple (X, y), got {type(part).__name__}")
    return len(part)


def _take(part: Any, rows: Indices) -> Any:
    if hasattr(part, "iloc"):
        return part.iloc[rows]
    if hasattr(part, "shape"):
        return part[rows]
    return [part[i] for i in rows]
