"""Tables that need not fit into memory, read one column at a time: for methods that look at columns, not at rows."""

from __future__ import annotations

import pickle
from collections import UserString
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from deniable._check import InputError
from deniable._files import Spill, Spilled
from deniable._optional import require
from deniable.tables.cell import WHOLE, text_of
from deniable.tables.containers import as_column, as_frame, as_series, batches_of, fault, few, index_columns, names_of

BATCH = 65_536  # rows that are in memory at a time, in each worker
PAIR_TARGET = "(y)"  # what the second part of a pair (X, y) is called


@dataclass(frozen=True)
class Chunk:
    """Some rows that were spilled: each column as pandas holds it, pickled."""

    rows: int
    columns: tuple[Spilled | bytes, ...]


@dataclass(frozen=True, eq=False)
class ColumnsOnDisk:
    """The columns of some Parquet files, in the order of the files, or of chunks; what is held is their names.

    A column that is read is the one that pandas makes of the files: numbers, texts, dates, truth values, gaps.
    """

    names: tuple[Any, ...]  # as the caller knows them
    stored: tuple[Any, ...]  # their names in the files, or their places in the chunks
    parts: tuple[Path | Chunk, ...]
    rows: tuple[int, ...]  # of each file, or of each block in the chunks
    labels: tuple[str, ...]  # what a message calls these
    title: str = "blocks"
    index: tuple[str, ...] = ()  # columns that pandas wrote as the index, and that are left out
    groups: tuple[tuple[int, ...], ...] = ()  # of each file, the rows of its row groups
    held: Any = field(default=None, repr=False)  # what must live as long as the columns are read

    def __len__(self) -> int:
        return sum(self.rows)

    @property
    def columns(self) -> pd.Index:
        """Their names."""
        return pd.Index(list(self.names))  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.names)

    def column(self, place: int) -> pd.Series[Any]:
        """Read one column."""
        import pyarrow as pa

        try:
            made = _stack([read_part(part, self.stored[place]) for part in self.parts])
        finally:
            pa.default_memory_pool().release_unused()
        made.name = self.names[place]
        return made

    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, list):
            return self.column(self.names.index(name))
        places = [self.names.index(one) for one in name]
        return replace(self, names=tuple(name), stored=tuple(self.stored[i] for i in places))

    def drop(self, columns: Any) -> ColumnsOnDisk:
        """Return the table without the column of this name."""
        return cast(ColumnsOnDisk, self[[name for name in self.names if name != columns]])

    def place_of(self, row: int) -> str:
        """Return the file (or block) of a row and its number there, for messages."""
        ends = list(accumulate(self.rows))
        at = next(i for i, end in enumerate(ends) if row < end)
        return f"{self.labels[at]} row {row - ends[at] + self.rows[at]}"


@contextmanager
def opened(path: Path, name: str = "") -> Iterator[Any]:
    """Open a Parquet file; errors while it is read name the file and the column."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        what = f"column {name!r} of {path}" if name else f"{path}"
        raise InputError(f"{what} could not be read: {fault(error)}; is the Parquet file complete?") from None


def read_part(part: Path | Chunk, stored: Any) -> pd.Series[Any]:
    """Read one column of a file or a chunk."""
    if isinstance(part, Path):
        with opened(part, stored) as file:
            return as_series(file.read(columns=[stored], use_threads=False).column(0))
    spilled = part.columns[stored]
    return cast("pd.Series[Any]", pickle.loads(spilled.view() if isinstance(spilled, Spilled) else spilled))


def _stack(parts: Sequence[pd.Series[Any]]) -> pd.Series[Any]:
    """Return columns one below the other; those of several types cell by cell, unless all numbers stay what they are.

    No part may change how the cells of another one are read.
    """
    is_a = pd.api.types
    exact = (
        len({part.dtype for part in parts}) == 1
        or all(map(is_a.is_signed_integer_dtype, parts))
        or all(
            is_a.is_float_dtype(part) or (is_a.is_integer_dtype(part) and part.between(-WHOLE, WHOLE).all())
            for part in parts
        )
    )
    return pd.concat([part if exact else part.astype(object) for part in parts], ignore_index=True)


def on_disk(data: Any) -> ColumnsOnDisk | None:
    """Return ``data`` as columns on disk, or ``None`` if it is in memory.

    A Parquet file or folder is read where it is. The partitions of a Dask data frame, and the blocks of a list, an
    iterator or a function that returns one, are spilled to a file without a name once, which goes when the result does;
    a block is a data frame or a pair ``(X, y)``, whose second part becomes the column ``PAIR_TARGET``.
    """
    if isinstance(data, ColumnsOnDisk):
        return data
    if isinstance(data, str | Path):
        return _parquet(Path(data))
    if is_dask(data):
        return _spill((part.compute(scheduler="synchronous") for part in data.to_delayed()), "partition")
    if callable(data) and not hasattr(data, "shape"):
        found = data()
        if not isinstance(found, Iterable):
            raise InputError(f"the function must return an iterator of blocks, it returned {type(found).__name__}")
        return _spill(found, "block")
    if hasattr(data, "__arrow_c_stream__") and not (hasattr(data, "to_pandas") or isinstance(data, pd.DataFrame)):
        return _spill(batches_of(data), "batch")
    if isinstance(data, Iterator) or (isinstance(data, list) and data and _is_block(data[0])):
        return _spill(data, "block")
    return None


def _parquet(path: Path) -> ColumnsOnDisk:
    """Return a file, or all files below a folder in the order of their names; only their footers are read."""
    require("pyarrow", purpose="Reading Parquet")
    paths = sorted(p for p in path.rglob("*.parquet") if p.is_file()) if path.is_dir() else [path]
    if not paths or not paths[0].is_file():
        raise InputError(f"data file {str(path)!r} does not exist, or is a folder without .parquet files")
    groups = list[tuple[int, ...]]()
    names, index = tuple[str, ...](), tuple[str, ...]()
    for one in paths:
        with opened(one) as file:
            groups.append(tuple(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)))
            held = file.schema_arrow
        if len(groups) == 1:
            index = index_columns(held)
            names = tuple(name for name in held.names if name not in index)
        found = [name for name in held.names if name not in index_columns(held)]
        if found != [*names]:
            difference = few(sorted({*names} ^ {*found})) or "their order"
            raise InputError(f"{one} must have the columns of {paths[0]}; they differ in {difference}")
    rows, labels = tuple(map(sum, groups)), tuple(map(str, paths))
    return ColumnsOnDisk(names_of(names), names, tuple(paths), rows, labels, path.name, index, tuple(groups))


def _spill(blocks: Iterable[Any], word: str) -> ColumnsOnDisk:
    """Write blocks to a file, small ones together; those without rows are left out."""
    spill = Spill()
    chunks, waiting, rows, labels = list[Chunk](), list[pd.DataFrame](), list[int](), list[str]()
    names: tuple[Any, ...] | None = None
    for i, block in enumerate(blocks):
        frame = _frame(block, where := f"{word} {i}")
        names = names or tuple(frame.columns)
        if tuple(frame.columns) != names:
            raise InputError(f"{where} must have the columns {few(names)} of the first, got {few(list(frame.columns))}")
        if not len(frame):
            continue
        rows.append(len(frame))
        labels.append(where)
        for start in range(0, len(frame), BATCH):  # a chunk is what a worker reads at a time
            waiting.append(frame.iloc[start : start + BATCH])
            if sum(map(len, waiting)) >= BATCH:
                chunks.append(_chunk(waiting, spill))
                waiting = []
    if names is None or not rows:
        raise InputError("the data have no rows" if names else "the data have no blocks")
    chunks += [_chunk(waiting, spill)] if waiting else []
    return ColumnsOnDisk(names, (*range(len(names)),), tuple(chunks), tuple(rows), tuple(labels), held=spill)


def _chunk(frames: Sequence[pd.DataFrame], spill: Spill) -> Chunk:
    columns = (_stack([frame.iloc[:, j] for frame in frames]) for j in range(frames[0].shape[1]))
    return Chunk(sum(map(len, frames)), tuple(spill.append(_pickle_column(column)) for column in columns))


def _pickle_column(column: pd.Series[Any]) -> bytes:
    try:
        return pickle.dumps(column, protocol=5)
    except Exception:  # a cell of a type that cannot be copied: its text is all that is read of it
        return pickle.dumps(pd.Series(map(_copy_cell, column), dtype=object), protocol=5)


def _copy_cell(cell: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(cell, protocol=5))
    except Exception:
        return UserString(text_of(cell))


def _frame(block: Any, where: str) -> pd.DataFrame:
    """A block as a data frame; columns of arrays are called by their numbers."""
    if isinstance(block, tuple) and len(block) == 2:
        X, y = (one if hasattr(one, "shape") else np.array(one, dtype=object) for one in block)
        X = as_frame(X)
        if np.ndim(X) != 2 or np.shape(y) != (len(X),):
            shapes = f"{np.shape(X)} and {np.shape(y)}"
            raise InputError(f"{where} must be (X, y) with one row of X per label, got shapes {shapes}")
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, dtype=object if X.dtype == object else None)
        block = frame.assign(**{PAIR_TARGET: as_column(PAIR_TARGET, y).set_axis(frame.index)})
    frame = as_frame(block)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{where} must be a pair (X, y) or a data frame, got {type(block).__name__}")
    return frame


def is_dask(data: Any) -> bool:
    """Whether something is a data frame of Dask."""
    return hasattr(data, "to_delayed") and hasattr(data, "npartitions")


def _is_block(block: Any) -> bool:
    """Whether something is a pair ``(X, y)`` or a data frame."""
    return hasattr(block, "columns") or (
        isinstance(block, tuple) and len(block) == 2 and getattr(block[0], "ndim", 0) == 2
    )
