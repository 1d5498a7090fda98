"""Rows that need not fit into memory: read block by block, as often as a method passes over them.

A source is cut into tasks, always in the same way: what each task yields does not depend on who reads it, or when.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError, as_float64
from deniable._files import Spill, Spilled
from deniable.tables.cell import WORD, read_cells
from deniable.tables.parquet import as_series, fault, few, parquet_files, target_among

BATCH = 65_536  # rows that are in memory at a time, in each worker
_TASK = 262_144  # rows of a task, about: enough that starting it costs nothing
MOST_LEVELS = 1000  # distinct texts of a column, each of which becomes a column of numbers
_TRUTH = {"false": 0.0, "true": 1.0}

Labels = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive rows: columns as numbers or texts, the target, and where they come from."""

    columns: Sequence[NDArray[Any]]
    y: Labels
    where: str
    first: int  # row number within ``where``


class RowPart(ABC):
    """A part of the rows; small, so that it can be sent to a worker, which reads them itself."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The rows, at most ``BATCH`` at a time; none are empty."""


@dataclass(frozen=True, eq=False)
class Source:
    """All rows, as tasks; ``names`` are those of the columns."""

    names: tuple[str, ...]
    tasks: tuple[RowPart, ...]
    held: Any = field(default=None, repr=False)  # what must live as long as the tasks are read


@dataclass(frozen=True)
class ParquetTask(RowPart):
    """Some row groups of one file, the first of whose rows is number ``first``."""

    path: str
    groups: tuple[int, ...]
    first: int
    names: tuple[str, ...]
    target: str

    def blocks(self) -> Iterator[Block]:
        """Read the requested columns and nothing else."""
        from pyarrow import ArrowException, parquet

        at = self.first
        try:
            with parquet.ParquetFile(self.path, page_checksum_verification=True) as file:
                batches = file.iter_batches(
                    BATCH, row_groups=list(self.groups), columns=[*self.names, self.target], use_threads=False
                )
                for batch in batches:
                    if batch.num_rows:
                        yield Block(
                            [values_of(as_series(batch.column(name)), name) for name in self.names],
                            values_of(as_series(batch.column(self.target)), self.target),
                            self.path,
                            at,
                        )
                        at += batch.num_rows
        except (OSError, ArrowException) as error:
            raise InputError(f"{self.path} could not be read from row {at} on: {fault(error)}") from None


@dataclass(frozen=True, eq=False)
class CallTask(RowPart):
    """One block that a function returns as ``(X, y)``, a data frame or a table of Dask."""

    call: Callable[[], Any]
    where: str
    target: str | None
    names: tuple[str, ...]

    def blocks(self) -> Iterator[Block]:
        """Call the function and yield the rows of its block."""
        columns, y, names = taken_apart(self.call(), self.target, self.where)
        if names != self.names:
            raise InputError(f"{self.where} must have the columns {few(self.names)} of the first, got {few(names)}")
        for at in range(0, len(y), BATCH):
            yield Block([c[at : at + BATCH] for c in columns], y[at : at + BATCH], self.where, at)


def as_source(data: Any, target: str | None) -> Source | None:
    """Return what ``data`` is as a source of blocks, or ``None`` if it is an array or a data frame.

    Blocks are a Parquet file or folder, a Dask data frame (both with ``target``, a column), a list of blocks, a
    function that returns an iterator of blocks, or an iterator; a block is a pair ``(X, y)`` or, with ``target``, a
    data frame.
    """
    if isinstance(data, str | Path):
        return _parquet(Path(data), target)
    if is_dask(data):
        parts = data.to_delayed()
        calls = [_Computed(part) for part in parts]
        name = target_among(tuple(data.columns), target, "the Dask frame")
        return _called(calls, "partition", name)
    if callable(data):
        return _spooled(data(), target)
    if isinstance(data, Iterator):
        return _spooled(data, target)
    if isinstance(data, pd.DataFrame) and target is not None:
        data = [data]
    if isinstance(data, list) and data and is_block(data[0], target):
        return _called([_Given(block) for block in data], "block", target)
    return None


@dataclass(frozen=True, eq=False)
class _Given:
    block: Any

    def __call__(self) -> Any:
        return self.block


@dataclass(frozen=True, eq=False)
class _Computed:
    delayed: Any

    def __call__(self) -> Any:
        return self.delayed.compute(scheduler="synchronous")


@dataclass(frozen=True)
class _Stored:
    block: Spilled

    def __call__(self) -> Any:
        return pickle.loads(self.block.view())


def is_dask(data: Any) -> bool:
    """Whether something is a data frame of Dask."""
    return hasattr(data, "to_delayed") and hasattr(data, "npartitions")


def is_block(block: Any, target: str | None) -> bool:
    """Whether something is a pair ``(X, y)`` or a data frame with a target."""
    if isinstance(block, tuple) and len(block) == 2 and getattr(block[0], "ndim", 0) == 2:
        return True
    return target is not None and hasattr(block, "columns")


def _parquet(path: Path, target: str | None) -> Source:
    files = parquet_files(path)
    kinds = files[0].kinds
    target = target_among(tuple(kinds), target, files[0].path)
    names = tuple(name for name in kinds if name != target)
    tasks: list[RowPart] = []
    for file in files:
        groups: list[int] = []
        rows = first = 0
        for group, more in enumerate(file.group_rows):
            groups.append(group)
            rows += more
            if rows - first >= _TASK or (group == len(file.group_rows) - 1 and rows > first):
                tasks.append(ParquetTask(str(file.path), tuple(groups), first, names, target))
                groups, first = [], rows
    return Source(names, tuple(tasks))


def _called(calls: Sequence[Callable[[], Any]], word: str, target: str | None, held: Any = None) -> Source:
    if not calls:
        raise InputError("the data have no blocks")
    names = taken_apart(calls[0](), target, f"{word} 0")[2]
    tasks = tuple(CallTask(call, f"{word} {i}", target, names) for i, call in enumerate(calls))
    return Source(names, tasks, held)


def _spooled(blocks: Iterable[Any], target: str | None) -> Source:
    """An iterator can be read once, and a fit passes over the rows several times: its blocks are spilled."""
    spill = Spill()
    calls = [_Stored(spill.append(pickle.dumps(block, protocol=5))) for block in blocks]
    return _called(calls, "block", target, held=spill)


def taken_apart(block: Any, target: str | None, where: str) -> tuple[list[NDArray[Any]], Labels, tuple[str, ...]]:
    """A block as columns, target and names."""
    if hasattr(block, "columns"):
        if target is None or target not in block.columns:
            raise InputError(f"{where} must have the target column {target!r}, got {few(tuple(block.columns))}")
        names = [name for name in block.columns if name != target]
        columns = [values_of(block[name], name) for name in names]
        return columns, values_of(block[target], target), tuple(map(str, names))
    if not (isinstance(block, tuple) and len(block) == 2):
        raise InputError(f"{where} must be a pair (X, y) or a data frame, got {type(block).__name__}")
    X, y = as_float64(block[0]), np.asarray(block[1])
    if X.ndim != 2 or y.shape != (len(X),):
        raise InputError(f"{where} must be (X, y) with one label per row, got shapes {X.shape} and {y.shape}")
    return list(X.T), y, tuple(f"x{i}" for i in range(X.shape[1]))


def values_of(series: Any, name: Any) -> NDArray[Any]:
    """Return texts (None where one is missing), or numbers: dates are days, truth values 0 and 1, gaps NaN."""
    kept = series.dtype.categories if str(series.dtype) == "category" else series.dropna()
    if kept.dtype.kind in "OU" and any(isinstance(value, str) for value in kept):
        gaps = series.isna().to_numpy()
        return np.array([None if gap else str(v) for v, gap in zip(series.tolist(), gaps, strict=True)], dtype=object)
    cells = read_cells(series)
    if set(cells.words) - set(_TRUTH):
        raise InputError(f"column {name!r} must hold numbers, dates, texts or truth values; drop or convert it")
    return np.where(cells.kind == WORD, np.array([*map(_TRUTH.get, cells.words), np.nan])[cells.word], cells.number)


def matrix(block: Block, levels: Sequence[tuple[str, ...] | None], names: Sequence[str]) -> FloatArray:
    """The block's columns as numbers: a text becomes one column of zeros and ones for each of its ``levels``."""
    width = sum(1 if known is None else len(known) for known in levels)
    X = np.empty((len(block.y), width))
    at = 0
    for column, known, name in zip(block.columns, levels, names, strict=True):
        if known is None:
            X[:, at] = numeric(block, column, name)
            at += 1
            continue
        X[:, at : at + len(known)] = 0.0
        code = np.searchsorted(np.asarray(known, dtype=object), texts(block, column, name))
        X[np.arange(len(code)), at + code] = 1.0
        at += len(known)
    return X


def numeric(block: Block, column: NDArray[Any], name: str) -> FloatArray:
    """The column as finite numbers, or an error that says where it is not."""
    if column.dtype == object:
        raise InputError(f"column {name!r} must hold numbers, {block.where} row {block.first} does not")
    values = np.asarray(column, dtype=np.float64)
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"column {name!r} must be finite, {block.where} row {block.first + at} has {values[at]}; drop or impute it"
        )
    return values


def texts(block: Block, column: NDArray[Any], name: str) -> NDArray[Any]:
    """The column as texts without gaps."""
    missing = np.array([value is None for value in column], dtype=bool)
    if missing.any():
        at = int(np.flatnonzero(missing)[0])
        raise InputError(f"column {name!r} must have no gaps, {block.where} row {block.first + at} has one; impute it")
    return column
