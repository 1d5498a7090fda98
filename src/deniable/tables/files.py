"""Opening files as people have them: separator and encoding are guessed, and what was guessed is said."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from deniable._check import InputError
from deniable._optional import require
from deniable.tables.columnar import on_disk
from deniable.tables.parquet import as_series, first_line, index_columns

TEXTS = (".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
KINDS = ".csv, .tsv, .txt (also .gz), .parquet, .feather or .xlsx"
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_LOOKED_AT = 64  # lines from which the separator is guessed
_LARGEST_EXCEL = 20_000_000  # bytes


@dataclass(frozen=True, eq=False)
class Opened:
    """A file, nothing interpreted: texts of a text file stay texts.

    ``frame`` is a data frame, or reads a column on request; ``problems`` are the reasons not to use it;
    ``notes`` say what was guessed; ``decimal_comma`` whether the file looks as if it was written with decimal commas.
    """

    frame: Any
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    decimal_comma: bool = False


def open_file(path: Path) -> Opened:
    """Open a table; a file that is not one raises ``InputError``."""
    if not path.is_file():
        raise InputError(f"data file {str(path)!r} does not exist; give a {KINDS} file")
    name = path.name.lower()
    try:
        if name.endswith(TEXTS):
            return _open_text(path, "\t" if ".tsv" in name or name.endswith(".tab") else None)
        if name.endswith((".parquet", ".feather")):
            return _open_arrow(path)
        if name.endswith((".xlsx", ".xlsm")):
            return _open_excel(path)
    except (InputError, ImportError):
        raise
    except MemoryError:
        raise InputError(f"data file {str(path)!r} does not fit into memory") from None
    except Exception as error:  # pandas, pyarrow and gzip raise a dozen kinds: each means that this is not such a file
        raise InputError(f"data file {str(path)!r} could not be read: {first_line(error)}") from error
    raise InputError(f"data file {str(path)!r} must end in {KINDS}")


def _open_text(path: Path, separator: str | None) -> Opened:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    data = path.read_bytes()
    if path.name.lower().endswith(".gz"):
        data = gzip.decompress(data)
    text, notes = _decoded(data, path)
    if not text.strip():
        raise InputError(f"data file {str(path)!r} could not be read: it is empty")
    sep, said = _separator(text, separator)
    notes = (*notes, *said)
    header = next(csv.reader(io.StringIO(text), delimiter=sep))
    refused: list[int | None] = []

    def ragged(row: Any) -> str:
        refused.append(row.number)
        return "skip"

    table = arrow_csv.read_csv(
        pa.BufferReader(text.encode()),
        read_options=arrow_csv.ReadOptions(
            column_names=[str(i) for i in range(len(header))], skip_rows=1, use_threads=False
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=sep, newlines_in_values=True, invalid_row_handler=ragged),
        convert_options=arrow_csv.ConvertOptions(
            column_types={str(i): pa.string() for i in range(len(header))}, strings_can_be_null=False
        ),
    )
    problems = []
    if refused:
        known = [str(number) for number in refused if number is not None]
        where = f" (the first is row {known[0]})" if known else ""
        problems.append(
            f"{len(refused)} {'row has' if len(refused) == 1 else 'rows have'} another number of cells than the "
            f"header, which has {len(header)}{where}: is the separator quoted where it belongs to a text?"
        )
    frame = pd.DataFrame({i: table.column(i).to_pandas() for i in range(len(header))})
    return Opened(_named(frame, header), notes, tuple(problems), decimal_comma=sep == ";")


def _decoded(data: bytes, path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text and what was guessed of its encoding; UTF-8 goes without saying."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding), ("encoding: UTF-16",)
    if b"\x00" in data[:100_000]:
        raise InputError(f"data file {str(path)!r} could not be read: it holds bytes that do not occur in text")
    try:
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace"), ("encoding: guessed as Windows-1252, as it is no UTF-8",)


def _separator(text: str, known: str | None) -> tuple[str, tuple[str, ...]]:
    """Return what separates the cells: what splits most lines into the same number of cells, of several into most."""
    lines = "".join(text.splitlines(keepends=True)[:_LOOKED_AT])
    scores = {}
    for separator in _SEPARATORS:
        widths = [len(row) for row in csv.reader(io.StringIO(lines), delimiter=separator) if row]
        usual = max(set(widths), key=widths.count)
        scores[separator] = (usual > 1, widths[0] == usual, widths.count(usual) / len(widths), usual)
    best = max(scores, key=lambda separator: scores[separator])
    if known is not None and scores[known][0]:
        best = known
    elif not scores[best][0]:
        return known or ",", ()
    expected = "\t" if known == "\t" else ","
    return best, () if best == expected else (f"separator: {_SEPARATORS[best]}",)


def _named(frame: pd.DataFrame, header: list[str]) -> pd.DataFrame:
    """Give the columns their names; an empty one is named after its place."""
    frame.columns = pd.Index([name.strip() or f"(column {i + 1})" for i, name in enumerate(header)], dtype=object)
    return frame


def _open_arrow(path: Path) -> Opened:
    from pyarrow import feather, parquet

    table = parquet.read_table(path) if path.name.lower().endswith(".parquet") else feather.read_table(path)
    series = [as_series(table.column(i)) for i in range(len(table.column_names))]
    frame = pd.DataFrame({i: one.array for i, one in enumerate(series)}, index=range(table.num_rows))
    frame = _named(frame, [str(name) for name in table.column_names])
    index = index_columns(table.schema)
    return Opened(frame.drop(columns=list(index)), left_out(index))


def left_out(index: Sequence[str]) -> tuple[str, ...]:
    """Say which index was left out."""
    return tuple(f"the index {name!r} was left out" for name in index)


def _open_excel(path: Path) -> Opened:
    require("openpyxl", purpose="Reading an Excel file")
    if path.stat().st_size > _LARGEST_EXCEL:
        raise InputError(f"data file {str(path)!r} is too large for Excel; save it as .csv or .parquet")
    book = pd.ExcelFile(path, engine="openpyxl")
    sheet = str(book.sheet_names[0])
    raw = book.parse(sheet, header=None, dtype=object, keep_default_na=False, na_values=[""])
    if not len(raw):
        raise InputError(f"data file {str(path)!r} could not be read: its first sheet is empty")
    header = ["" if pd.isna(cell) else str(cell) for cell in raw.iloc[0]]
    more = len(book.sheet_names) - 1
    notes = (f"sheet {sheet!r} was read, {more} more were not",) if more else ()
    return Opened(_named(raw.iloc[1:].reset_index(drop=True), header), notes)


def as_opened(source: Any) -> tuple[Opened, str]:
    """Return a path, a data frame or blocks as an opened table, and what to call it.

    The frame of Parquet files, of Dask and of blocks reads a column on request.
    """
    if not isinstance(source, str | Path) or Path(source).suffix == ".parquet" or Path(source).is_dir():
        table = on_disk(source)
        if table is not None:
            return Opened(replace(table, names=tuple(map(str, table.names))), left_out(table.index)), table.title
    if isinstance(source, pd.DataFrame):
        frame = source.reset_index(drop=True)
        problems = ("the columns have several levels of names; flatten them",) if frame.columns.nlevels > 1 else ()
        if not problems:
            frame = _named(frame.copy(deep=False), [str(name) for name in frame.columns])
        return Opened(frame, (), problems), "data frame"
    if not isinstance(source, str | Path):
        raise InputError(f"a table must be a path or a data frame, got {type(source).__name__}")
    path = Path(source)
    return open_file(path), path.name
