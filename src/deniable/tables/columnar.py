"""Tables that need not fit into memory, read one column at a time: for methods that look at columns, not at rows."""

from __future__ import annotations

import pickle
from collections import UserString
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd

from deniable._check import InputError
from deniable._files import Spill, Spilled
from deniable.tables.cell import text_of
from deniable.tables.containers import arrow_batches, as_frame
from deniable.tables.parquet import as_series, fault, few, parquet_files

BATCH = 65_536  # rows that are in memory at a time, in each worker
PAIR_TARGET = "(y)"  # what the second part of a pair (X, y) is called


@dataclass(frozen=True, eq=False)
class ColumnsOnDisk:
    """The columns of some Parquet files, in the order of the files; what is held is their names.

    A column that is read is the one that pandas makes of the files: numbers, texts, dates, truth values, gaps.
    """

    names: tuple[Any, ...]  # as the caller knows them
    stored: tuple[str, ...]  # as the files do
    paths: tuple[Path | Spilled | bytes, ...]
    rows: tuple[int, ...]  # of each file, or of each block in them
    labels: tuple[str, ...]  # what a message calls these
    title: str = "blocks"
    index: tuple[str, ...] = ()  # columns that pandas wrote as the index, and that are left out
    held: Any = field(default=None, repr=False)  # what must live as long as the columns are read

    def __len__(self) -> int:
        return sum(self.rows)

    @property
    def columns(self) -> pd.Index:
        """Their names."""
        found: pd.Index = pd.Index(list(self.names))
        return found

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.names)

    @property
    def header(self) -> pd.DataFrame:
        """A data frame with these columns and no row."""
        return pd.DataFrame(columns=self.columns)

    def column(self, place: int) -> pd.Series[Any]:
        """Read one column."""
        import pyarrow as pa

        try:
            made = self._any(place)
        finally:
            pa.default_memory_pool().release_unused()
        made.name = self.names[place]
        return made

    def _any(self, place: int) -> pd.Series[Any]:
        import pyarrow as pa

        name = self.stored[place]
        parts = []
        for path in self.paths:
            with opened(path, name) as file:
                part = file.read(columns=[name], use_threads=False)
            kind = part.schema.field(name).type
            if pa.types.is_dictionary(kind):
                part = part.set_column(0, name, part.column(0).cast(kind.value_type))
            parts.append(part.replace_schema_metadata())
        kinds = {part.schema.field(name).type for part in parts} - {pa.null()}
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
        try:  # numbers keep their values, or are refused
            whole = pa.concat_tables(parts, promote_options="permissive" if numbers else "default")
        except pa.ArrowException:  # other types in other files: a column of cells
            found = [as_given(part.column(0), path) for part, path in zip(parts, self.paths, strict=True)]
            return pd.concat([one.astype(object) for one in found], ignore_index=True)
        return as_given(whole.column(0), self.paths[0])

    @overload
    def __getitem__(self, name: list[Any]) -> ColumnsOnDisk: ...
    @overload
    def __getitem__(self, name: Any) -> pd.Series[Any]: ...
    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, list):
            return self.column(self.names.index(name))
        places = [self.names.index(one) for one in name]
        return replace(self, names=tuple(name), stored=tuple(self.stored[i] for i in places))

    def target(self, name: Any) -> pd.Series[Any]:
        """Read the column to predict, in which no value may be missing or infinite."""
        found = self.column(self.names.index(name))
        wrong = found.isna().to_numpy(dtype=bool)
        if found.dtype.kind == "f":
            wrong = wrong | np.isinf(found.to_numpy())
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"the target must have a finite value in every row, {self.place_of(row)} has {found.iloc[row]}; drop it"
            )
        return found

    def drop(self, columns: Any) -> ColumnsOnDisk:
        """Return the table without the column of this name."""
        kept: ColumnsOnDisk = self[[name for name in self.names if name != columns]]
        return kept

    def place_of(self, row: int) -> str:
        """Return the file (or block) of a row and its number there, for messages."""
        ends = list(accumulate(self.rows))
        at = next(i for i, end in enumerate(ends) if row < end)
        return f"{self.labels[at]} row {row - ends[at] + self.rows[at]}"


@contextmanager
def opened(path: Path | Spilled | bytes, name: str) -> Iterator[Any]:
    """Open a file; errors while it is read name the file and the column."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        source = path if isinstance(path, Path) else pa.BufferReader(path if isinstance(path, bytes) else path.view())
        with parquet.ParquetFile(source, page_checksum_verification=True) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        which = path if isinstance(path, Path) else "the blocks"
        raise InputError(f"column {name!r} of {which} could not be read: {fault(error)}") from None


def on_disk(data: Any) -> ColumnsOnDisk | None:
    """Return ``data`` as columns on disk, or ``None`` if it is in memory.

    A Parquet file or folder is read where it is. The partitions of a Dask data frame, and the blocks of a list, an
    iterator or a function that returns one, are spilled to a file without a name once, which goes when the result does;
    a block is a data frame or a pair ``(X, y)``, whose second part becomes the column ``PAIR_TARGET``.
    """
    if isinstance(data, ColumnsOnDisk):
        return data
    if isinstance(data, str | Path):
        files = parquet_files(Path(data))
        names, paths = files[0].names, tuple(file.path for file in files)
        rows, labels = tuple(file.rows for file in files), tuple(map(str, paths))
        return ColumnsOnDisk(names, names, paths, rows, labels, Path(data).name, files[0].index)
    if is_dask(data):
        return _written((part.compute(scheduler="synchronous") for part in data.to_delayed()), "partition")
    if callable(data) and not hasattr(data, "shape"):
        found = data()
        if not isinstance(found, Iterable):
            raise InputError(f"the function must return an iterator of blocks, it returned {type(found).__name__}")
        return _written(found, "block")
    if hasattr(data, "__arrow_c_stream__") and not (hasattr(data, "to_pandas") or isinstance(data, pd.DataFrame)):
        return _written(arrow_batches(data), "batch")
    if isinstance(data, Iterator) or (isinstance(data, list) and data and _is_block(data[0])):
        return _written(data, "block")
    return None


def _written(blocks: Iterable[Any], word: str) -> ColumnsOnDisk:
    """Write blocks to files; those without rows are left out."""
    import pyarrow as pa

    spill = Spill()
    file = _Files(spill)
    rows: list[int] = []
    labels: list[str] = []
    names: tuple[Any, ...] | None = None
    for i, block in enumerate(blocks):
        where = f"{word} {i}"
        frame = _frame(block, where)
        names = names or tuple(frame.columns)
        if tuple(frame.columns) != names:
            raise InputError(f"{where} must have the columns {few(names)} of the first, got {few(list(frame.columns))}")
        if not len(frame):
            continue
        file.add(pa.table({str(j): _stored(frame.iloc[:, j]) for j in range(len(names))}))
        rows.append(len(frame))
        labels.append(where)
    if names is None or not rows:
        raise InputError("the data have no rows" if names else "the data have no blocks")
    stored_names = tuple(str(j) for j in range(len(names)))
    return ColumnsOnDisk(names, stored_names, file.closed(), tuple(rows), tuple(labels), held=spill)


def _stored(column: pd.Series[Any]) -> Any:
    """Return a column of a block for Arrow: one of one type as it is, else its cells, pickled one by one."""
    import pyarrow as pa

    if isinstance(column.dtype, pd.CategoricalDtype) and set(map(type, column.cat.categories)) != {str}:
        column = column.astype(object)  # Parquet gives back other categories as numbers, and has none without any
    if _of_one_type(column):
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):  # a lone surrogate, a time too large
            made = pa.array(column, from_pandas=True)
            seconds = str(made.type).startswith("timestamp[s")  # which Parquet lacks
            return made.cast(pa.timestamp("ms", made.type.tz)) if seconds else made
    return pa.array([_pickled(cell) for cell in column.tolist()], pa.large_binary())


def _of_one_type(column: pd.Series[Any]) -> bool:
    """Whether Arrow holds each cell as it is, whatever the others are."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return True
    if isinstance(dtype, pd.ArrowDtype):
        return dtype.kind in "UbiufmM"
    kinds = set(map(type, column.dropna())) if dtype.kind == "O" else set()
    plain = dtype.kind in "OUbiufmM" and getattr(dtype, "itemsize", 16) <= 8
    return plain and len(kinds) < 2 and kinds <= {str, int, float, bool}


def _pickled(cell: Any) -> bytes:
    """Return what the same cell is read from."""
    try:
        return pickle.dumps(cell, protocol=5)
    except Exception:  # of a type that cannot be copied: its text is all that is read of it
        return pickle.dumps(UserString(text_of(cell)), protocol=5)


def as_given(column: Any, path: Path | Spilled | bytes) -> pd.Series[Any]:
    """Return a column of Arrow as one of pandas, with the cells that were pickled."""
    if not isinstance(path, Path) and str(column.type) == "large_binary":
        return pd.Series([None if cell is None else pickle.loads(cell) for cell in column.to_pylist()], dtype=object)
    return as_series(column)


class _Files:
    """Small blocks in a row share a file, as long as their columns are of the same types."""

    def __init__(self, spill: Spill) -> None:
        self._spill = spill
        self._paths: list[Spilled] = []
        self._waiting: list[Any] = []

    def add(self, table: Any) -> None:
        """Take the rows of the next block."""
        if self._waiting and not self._waiting[0].schema.equals(table.schema):
            self._write()
        self._waiting.append(table)
        if sum(map(len, self._waiting)) >= BATCH:
            self._write()

    def closed(self) -> tuple[Spilled, ...]:
        """Write what is left; return the files in order."""
        self._write()
        return tuple(self._paths)

    def _write(self) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        if self._waiting:
            written = pa.BufferOutputStream()
            parquet.write_table(pa.concat_tables(self._waiting).unify_dictionaries(), written)
            self._paths.append(self._spill.append(written.getvalue()))
            self._waiting = []


def _frame(block: Any, where: str) -> pd.DataFrame:
    """A block as a data frame; columns of arrays are called by their numbers."""
    if isinstance(block, tuple) and len(block) == 2:
        X, y = (as_frame(one) if hasattr(one, "shape") else np.array(one, dtype=object) for one in block)
        if np.ndim(X) != 2 or np.shape(y) != (len(X),):
            shapes = f"{np.shape(X)} and {np.shape(y)}"
            raise InputError(f"{where} must be (X, y) with one row of X per label, got shapes {shapes}")
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, dtype=_objects(X))
        return frame.assign(**{PAIR_TARGET: pd.Series(y, dtype=_objects(y)).set_axis(frame.index)})
    frame = as_frame(block)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{where} must be a pair (X, y) or a data frame, got {type(block).__name__}")
    return frame


def _objects(given: Any) -> Any:
    """Return the type of an array of objects, lest pandas finds another; None for other arrays."""
    return object if given.dtype == object else None


def is_dask(data: Any) -> bool:
    """Whether something is a data frame of Dask."""
    return hasattr(data, "to_delayed") and hasattr(data, "npartitions")


def _is_block(block: Any) -> bool:
    """Whether something is a pair ``(X, y)`` or a data frame."""
    return hasattr(block, "columns") or (
        isinstance(block, tuple) and len(block) == 2 and getattr(block[0], "ndim", 0) == 2
    )
