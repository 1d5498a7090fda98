"""Rows that need not fit into memory: read block by block, as often as a method passes over them.

A source is what :func:`deniable.tables.on_disk` makes of a table, cut into tasks, always in the same way: what each
task yields does not depend on who reads it, or when.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deniable._check import FloatArray, InputError
from deniable._files import Spill, Spilled
from deniable._parallel import on_cluster
from deniable.tables.cell import WORD, read_cells
from deniable.tables.columnar import BATCH, PAIR_TARGET, Chunk, ColumnsOnDisk, on_disk, opened, read_part
from deniable.tables.containers import as_series, column_among
from deniable.tables.files import typed_table
from deniable.tables.schema import Schema

_TASK = 262_144  # rows of a task, about: enough that starting it costs nothing
_TRUTH = {"false": 0.0, "true": 1.0}


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive rows: columns as numbers or texts, the target, and where each row comes from, for messages."""

    columns: Sequence[NDArray[Any]]
    y: NDArray[Any]
    place_of: Callable[[int], str]

    def numeric(self, column: NDArray[Any], name: Any) -> FloatArray:
        """Return the column as finite numbers, or raise ``InputError`` that says where it is not."""
        if column.dtype == object:
            raise InputError(f"column {name!r} must hold numbers, {self.place_of(0)} does not; drop or convert it")
        if (wrong := ~np.isfinite(column)).any():
            at = int(wrong.argmax())
            where = self.place_of(at)
            raise InputError(f"column {name!r} must be finite, {where} has {column[at]}; drop or impute it")
        return np.asarray(column, dtype=np.float64)

    def texts(self, column: NDArray[Any], name: Any) -> NDArray[Any]:
        """Return the column, which must be of texts without gaps."""
        if (missing := np.array([cell is None for cell in column], dtype=bool)).any():
            place = self.place_of(int(missing.argmax()))
            raise InputError(f"column {name!r} must have no gaps, {place} has one; drop or impute it")
        return column


@dataclass(frozen=True, eq=False)
class RowPart:
    """Some rows of a file or a chunk, the first of which is number ``first`` of ``table``; a worker reads them."""

    table: ColumnsOnDisk  # this part, and the columns, the last of which is the target
    groups: tuple[int, ...]  # of rows in a file
    first: int

    def blocks(self) -> Iterator[Block]:
        """Yield the rows, at most ``BATCH`` at a time; none are empty."""
        at = self.first
        for cells in self._batches():
            *columns, y = map(values_of, cells, self.table.names)
            yield Block(columns, y, lambda row, at=at: self.table.place_of(at + row))  # type: ignore[misc]
            at += len(y)

    def _batches(self) -> Iterator[list[Any]]:
        (part,), names = self.table.parts, list(self.table.stored)
        if isinstance(part, Chunk):
            whole = [read_part(part, name) for name in names]
            yield from ([one.iloc[at : at + BATCH] for one in whole] for at in range(0, part.rows, BATCH))
        else:
            with opened(part, f"{self.table.names[0]} …") as file:
                for batch in file.iter_batches(BATCH, row_groups=list(self.groups), columns=names, use_threads=False):
                    if batch.num_rows:
                        yield [as_series(batch.column(name)) for name in names]


@dataclass(frozen=True, eq=False)
class Source:
    """All rows, as tasks; ``names`` are those of the columns."""

    names: tuple[str, ...]
    tasks: Sequence[RowPart]
    held: Any = field(default=None, repr=False)  # what must live as long as the tasks are read


def as_source(data: Any, target: Any, schema: Schema | None = None) -> Source | None:
    """Return what :func:`deniable.tables.on_disk` makes of ``data``, in tasks; ``None`` for what is in memory.

    The schema declares how a file is written. Workers of a cluster, which see no file of this process, get the bytes of
    spilled blocks with their tasks.
    """
    table = typed_table(data, schema)
    table = on_disk([table]) if isinstance(table, pd.DataFrame) and target is not None else table
    if not isinstance(table, ColumnsOnDisk):
        return None
    target = PAIR_TARGET if PAIR_TARGET in table.names else column_among("target", target, table.names)
    names = [name for name in table.names if name != target]
    if on_cluster():
        table = replace(table, parts=tuple(map(_with_bytes, table.parts)))
    return Source(tuple(names), list(row_parts(table[[*names, target]])), table.held)


def _with_bytes(part: Path | Chunk) -> Path | Chunk:
    """Return a chunk that holds its bytes; a file is to be where the worker is."""
    if isinstance(part, Path):
        return part
    return replace(part, columns=tuple(bytes(one.view()) if isinstance(one, Spilled) else one for one in part.columns))


def row_parts(table: ColumnsOnDisk) -> Iterator[RowPart]:
    """Cut each file at its row groups; a part names the files or blocks that it needs, and holds no row."""
    starts, end = [0, *accumulate(table.rows)], 0
    for i, part in enumerate(table.parts):
        sizes = [part.rows] if isinstance(part, Chunk) else table.groups[i]
        groups: list[int] = []
        first = end
        for group, size in enumerate(sizes):
            groups.append(group)
            end += size
            if end - first >= _TASK or (group == len(sizes) - 1 and end > first):
                few = slice(bisect_right(starts, first) - 1, bisect_left(starts, end))
                own = replace(table, parts=(part,), rows=table.rows[few], labels=table.labels[few], held=None)
                yield RowPart(own, tuple(groups), first - starts[few.start])
                groups, first = [], end


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


def mapped_rows(data: Any) -> Any:
    """Return the rows of a file or folder, a Dask data frame, or blocks as a mapped array; else ``data``.

    Blocks come from an iterator or a function that returns one. They are data frames of numbers, which become one array
    (n, d), or pairs (X, y), which become a pair of arrays.

    Raises
    ------
    InputError
        For texts, gaps and infinite numbers: with the column and the file or block and row.
    """
    if isinstance(data, str | Path):  # a file that is no Parquet is a block
        data = frame if isinstance(frame := typed_table(data), ColumnsOnDisk) else [frame]
    table = on_disk(data)
    if table is None:
        return data
    spill = Spill()
    made = np.memmap(spill.path, dtype=np.float64, mode="w+", shape=table.shape)
    weakref.finalize(made.base, spill.close)  # the file goes when the last array of it does
    at = 0
    for block in (block for part in row_parts(table) for block in part.blocks()):
        rows = made[at : (at := at + len(block.y))]
        for place, (column, name) in enumerate(zip((*block.columns, block.y), table.names, strict=True)):
            rows[:, place] = block.numeric(column, name)
    return (made[:, :-1], made[:, -1]) if PAIR_TARGET in table.names else made
