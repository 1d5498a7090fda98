"""Tables that need not fit into memory, read one column at a time: for methods that look at columns, not at rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import InputError
from deniable.tables.blocks import TemporaryFolder, is_block
from deniable.tables.parquet import alike, few, first_line, kind_of, parquet_files, target_among

PAIR_TARGET = "(y)"  # what the second part of a pair (X, y) is called


@dataclass(frozen=True, eq=False)
class ColumnsOnDisk:
    """The columns of some Parquet files, in the order of the files; what is held is their names.

    A column that is read is the one that pandas makes of the files: numbers, texts, dates, truth values, gaps.
    """

    names: tuple[Any, ...]  # as the caller knows them
    stored: tuple[str, ...]  # as the files do
    paths: tuple[Path, ...]
    rows: tuple[int, ...]  # of each file
    labels: tuple[str, ...]  # what a message calls each file
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
        from pyarrow import parquet

        name = self.stored[place]
        parts, categories = [], False
        for path in self.paths:
            try:
                with parquet.ParquetFile(path) as file:
                    part = file.read(columns=[name], use_threads=False)
            except (OSError, pa.ArrowException) as error:
                raise InputError(f"column {name!r} of {path} could not be read: {first_line(error)}") from error
            kind = part.schema.field(name).type
            if pa.types.is_dictionary(kind):
                categories, part = True, part.set_column(0, name, part.column(0).cast(kind.value_type))
            parts.append(part.replace_schema_metadata())
        whole = parts[0] if len(parts) == 1 else pa.concat_tables(parts, promote_options="permissive")
        found: pd.Series[Any] = whole.column(0).to_pandas()
        found.name = self.names[place]
        return found.astype("category") if categories else found

    def __getitem__(self, name: Any) -> pd.Series[Any]:
        return self.column(self.names.index(name))

    def target(self, name: Any) -> pd.Series[Any]:
        """Read the column to predict, in which no value may be missing or infinite."""
        found = self[name]
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
        kept = [i for i, name in enumerate(self.names) if name != columns]
        return replace(self, names=tuple(self.names[i] for i in kept), stored=tuple(self.stored[i] for i in kept))

    def place_of(self, row: int) -> str:
        """Return the file (or block) of a row and its number there, for messages."""
        ends = list(accumulate(self.rows))
        at = next(i for i, end in enumerate(ends) if row < end)
        return f"{self.labels[at]} row {row - ends[at] + self.rows[at]}"


def on_disk(data: Any, target: str | None) -> tuple[ColumnsOnDisk, Any] | None:
    """Return ``data`` as columns on disk and the name of its target, or ``None`` if it is in memory.

    A Parquet file or folder is read where it is. The partitions of a Dask data frame, and the blocks of a list, an
    iterator or a function that returns one, are written to a temporary folder once, which goes when the result does;
    a block is a pair ``(X, y)`` or, with ``target``, a data frame.
    """
    if isinstance(data, str | Path):
        files = parquet_files(Path(data))
        names = tuple(files[0].kinds)
        target = target_among(names, target, files[0].path)
        paths = tuple(file.path for file in files)
        found = ColumnsOnDisk(names, names, paths, tuple(file.rows for file in files), tuple(map(str, paths)))
        return found, target
    if hasattr(data, "to_delayed") and hasattr(data, "npartitions"):
        name = target_among(tuple(data.columns), target, "the Dask frame")
        parts = (part.compute(scheduler="synchronous") for part in data.to_delayed())
        return _written(parts, name, "partition")
    if callable(data) and not hasattr(data, "shape"):
        return _written(data(), target, "block")
    if isinstance(data, Iterator) or (isinstance(data, list) and data and is_block(data[0], target)):
        return _written(data, target, "block")
    return None


def _written(blocks: Iterable[Any], target: str | None, word: str) -> tuple[ColumnsOnDisk, Any]:
    """Write each block to a file of its own; blocks without rows are left out."""
    import pyarrow as pa
    from pyarrow import parquet

    folder = TemporaryFolder()
    paths: list[Path] = []
    rows: list[int] = []
    labels: list[str] = []
    names: tuple[Any, ...] | None = None
    kinds: dict[str, str] = {}
    wanted: Any = target
    for i, block in enumerate(blocks):
        where = f"{word} {i}"
        frame, wanted = _frame(block, target, where)
        if names is None:
            names = tuple(frame.columns)
        if tuple(frame.columns) != names:
            raise InputError(
                f"{where} must have the columns {few(names)} of the first, got {few(tuple(frame.columns))}"
            )
        if not len(frame):
            continue
        stored = [str(j) for j in range(len(names))]
        try:
            written = pa.Table.from_pandas(frame.set_axis(stored, axis=1), preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(
                f"{where} could not be kept: {first_line(error)}; a column must hold one kind of value"
            ) from error
        found = {name: kind_of(written.schema.field(name).type) for name in stored}
        changed = [
            j for j, name in enumerate(stored) if not alike({name: kinds.get(name, "null")}, {name: found[name]})
        ]
        if changed:
            column = stored[changed[0]]
            raise InputError(
                f"column {names[changed[0]]!r} of {where} holds {found[column]} and not {kinds[column]} as before"
            )
        kinds |= {name: kind for name, kind in found.items() if kind != "null"}
        paths.append(folder.path / f"{i:08d}.parquet")
        parquet.write_table(written, paths[-1])
        rows.append(len(frame))
        labels.append(where)
    if names is None or not paths:
        raise InputError("the data have no rows" if names else "the data have no blocks")
    stored_names = tuple(str(j) for j in range(len(names)))
    return ColumnsOnDisk(names, stored_names, tuple(paths), tuple(rows), tuple(labels), folder), wanted


def _frame(block: Any, target: str | None, where: str) -> tuple[pd.DataFrame, Any]:
    """A block as a data frame, and its target's name; columns of arrays are called by their numbers."""
    if isinstance(block, pd.DataFrame):
        if target is None or target not in block.columns:
            raise InputError(f"{where} must have the target column {target!r}, got {few(tuple(block.columns))}")
        return block, target
    if not (isinstance(block, tuple) and len(block) == 2):
        raise InputError(f"{where} must be a pair (X, y) or a data frame, got {type(block).__name__}")
    X, y = block[0], np.asarray(block[1])
    X = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)) if np.ndim(X) == 2 else None
    if X is None or y.shape != (len(X),):
        raise InputError(
            f"{where} must be (X, y) with one row of X per label, got shapes {np.shape(block[0])} and {y.shape}"
        )
    return X.assign(**{PAIR_TARGET: y}), PAIR_TARGET
