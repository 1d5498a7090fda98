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

from deniable._check import InputError
from deniable._files import Spill, Spilled
from deniable._parallel import on_cluster
from deniable.tables.cell import MISSING, ColumnCells
from deniable.tables.columnar import BATCH, PAIR_TARGET, Chunk, ColumnsOnDisk, on_disk, opened, read_part
from deniable.tables.containers import as_series, column_among
from deniable.tables.files import held_as
from deniable.tables.inference import nested_in, of_kind
from deniable.tables.schema import ColumnSchema, Schema

_TASK = 262_144  # rows of a task, about: enough that starting it costs nothing


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive rows: the cells of each column, the target's, and where each row comes from, for messages."""

    columns: Sequence[ColumnCells]
    y: ColumnCells
    place_of: Callable[[int], str]

    def values(self, cells: ColumnCells, name: Any, kind: str = "") -> NDArray[Any]:
        """Return a column as texts, or as numbers (by default whatever can be one), or raise ``InputError``."""
        out = cells.spelled if kind == "category" else np.where(np.isnan(cells.number), cells.flags, cells.number)
        out = of_kind(cells, kind).to_numpy() if kind in ("number", "date") else out
        if (lost := cells.kind == MISSING if kind == "category" else np.isnan(out)).any():
            at = int(lost.argmax())
            rule, held = ("have no gaps", "has one") if kind == "category" else ("be finite", "has nan")
            rule, held = ("hold numbers", "does not") if cells.kind[at] else (rule, held)
            raise InputError(f"column {name!r} must {rule}, {self.place_of(at)} {held}; drop, impute or convert it")
        return out


@dataclass(frozen=True, eq=False)
class RowPart:
    """Some rows of a file or a chunk, the first of which is number ``first`` of ``table``; a worker reads them."""

    table: ColumnsOnDisk  # this part, and the columns, the last of which is the target
    how: tuple[ColumnSchema, ...]  # they are written
    groups: tuple[int, ...]  # of rows in a file
    first: int

    def blocks(self) -> Iterator[Block]:
        """Yield the rows, at most ``BATCH`` at a time; none are empty."""
        at = self.first
        for cells in self._batches():
            *columns, y = map(_read, self.how, cells, self.table.names)
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

    The schema declares how cells are written and what columns hold. Workers of a cluster, which see no file of this
    process, get the bytes of spilled blocks with their tasks.
    """
    table, said = held_as(data, schema), schema or Schema()
    table = on_disk([table]) if isinstance(table, pd.DataFrame) and target is not None else table
    if not isinstance(table, ColumnsOnDisk):
        return None
    target = PAIR_TARGET if PAIR_TARGET in table.names else column_among("target", target, table.names)
    names = [name for name in table.names if name != target and said.kind(name) != "dropped"]
    if on_cluster():
        table = replace(table, parts=tuple(map(_with_bytes, table.parts)))
    return Source(tuple(names), list(row_parts(table[[*names, target]], said)), table.held)


def _with_bytes(part: Path | Chunk) -> Path | Chunk:
    """Return a chunk that holds its bytes; a file is to be where the worker is."""
    if isinstance(part, Path):
        return part
    return replace(part, columns=tuple(bytes(one.view()) if isinstance(one, Spilled) else one for one in part.columns))


def row_parts(table: ColumnsOnDisk, schema: Schema) -> Iterator[RowPart]:
    """Cut each file at its row groups; a part names the files or blocks that it needs, and holds no row."""
    starts, end, how = [0, *accumulate(table.rows)], 0, tuple(map(schema.column, table.names))
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
                yield RowPart(own, how, tuple(groups), first - starts[few.start])
                groups, first = [], end


def _read(own: ColumnSchema, raw: pd.Series[Any], name: Any) -> ColumnCells:
    cells = own.read(raw)
    if held := nested_in(raw, cells.words):
        raise InputError(f"column {name!r} must hold no nested cells ({held}); give their parts columns of their own")
    return cells


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
        data = frame if isinstance(frame := held_as(data), ColumnsOnDisk) else [frame]
    table = on_disk(data)
    if table is None:
        return data
    spill = Spill()
    made = np.memmap(spill.path, dtype=np.float64, mode="w+", shape=table.shape)
    weakref.finalize(made.base, spill.close)  # the file goes when the last array of it does
    at = 0
    for block in (block for part in row_parts(table, Schema()) for block in part.blocks()):
        rows = made[at : (at := at + len(block.y))]
        for place, (column, name) in enumerate(zip((*block.columns, block.y), table.names, strict=True)):
            rows[:, place] = block.values(column, name)
    return (made[:, :-1], made[:, -1]) if PAIR_TARGET in table.names else made
