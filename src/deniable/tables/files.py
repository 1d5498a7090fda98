"""Opening real-world files: a record of a text file is a line, one of a sheet a row, and each is read alone."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from deniable._check import InputError
from deniable._optional import require
from deniable.tables.columnar import on_disk
from deniable.tables.parquet import fault, frame_of, index_columns

TEXTS = (".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
KINDS = ".csv, .tsv, .txt (also .gz), .parquet, .feather or .xlsx"
BUILTIN = ("breast-cancer", "digits-3-8")  # data sets that need no file
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_LARGEST_EXCEL = 20_000_000  # bytes


@dataclass(frozen=True, eq=False)
class Opened:
    """A file, nothing interpreted: texts of a text file stay texts.

    ``frame`` is a data frame, or reads a column on request; ``problems`` are the reasons not to use it;
    ``notes`` say what was guessed;
    ``odd`` are the lines (1 is the first below the header, empty ones are none) that are no record; ``name`` is what
    to call it; ``target`` is known of a built-in one; ``unit`` is what a row is.
    """

    frame: Any
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    odd: tuple[int, ...] = ()
    name: str = "data frame"
    target: str | None = None
    unit: str = "record"

    def checked(self) -> Opened:
        """Return the table if it has no problems; otherwise raise ``InputError``."""
        if self.problems:
            raise InputError(f"{self.name} cannot be used: {'; '.join(self.problems)}")
        return self


def open_file(path: Path) -> Opened:
    """Open a table; a file that is not one raises ``InputError``."""
    if not path.is_file():
        raise InputError(f"data file {str(path)!r} does not exist; give a {KINDS} file, or one of {', '.join(BUILTIN)}")
    name = path.name.lower()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a reader's words may quote a cell
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
        raise InputError(f"data file {str(path)!r} could not be read: {fault(error)}") from None
    raise InputError(f"data file {str(path)!r} must end in {KINDS}")


def _open_text(path: Path, separator: str | None) -> Opened:
    """Read a table whose records are lines, which end with \\n, \\r or both: no line decides how another is read.

    Separator and names come from the header line alone.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    data = path.read_bytes()
    if path.name.lower().endswith(".gz"):
        data = gzip.decompress(data)
    lines = [line for line in _decoded(data).replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    if not (lines and lines[0].strip()) or "\0" in lines[0]:
        raise InputError(f"data file {str(path)!r} could not be read: its first line does not name columns")
    sep, notes = _separator(lines[0], separator)
    header = _cells(lines[0], sep)
    if header is None:
        raise InputError(f"data file {str(path)!r} could not be read: a quote of its first line does not close on it")
    records = [_record(line, sep, len(header)) for line in lines[1:]]
    odd = tuple(i for i, line in enumerate(records, 1) if line is None)
    data = "\n".join([_quoted(header, sep), *(line for line in records if line is not None), ""]).encode()
    names = [str(i) for i in range(len(header))]
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(
            column_names=names, skip_rows=1, use_threads=False, block_size=2**20 + 4 * max(map(len, lines))
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=sep),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )
    frame = pd.DataFrame({i: table.column(i).to_pandas() for i in range(len(header))})
    lost = ("it has no rows: no line has as many cells as the header",) if odd and not len(frame) else ()
    return Opened(_named(frame, header), notes, lost, odd, path.name, unit="line of the file")


def _cells(line: str, sep: str) -> list[str] | None:
    """Return the cells of a line by itself; None if a quote does not close on it."""
    try:
        return next(csv.reader([line], delimiter=sep, strict=True))
    except csv.Error:
        return None


def _record(line: str, sep: str, width: int) -> str | None:
    """Return the line with ``width`` cells, None if it is no record: one empty last cell more or fewer is allowed."""
    if '"' not in line and line.count(sep) == width - 1:
        return line
    cells = _cells(line, sep)
    if cells is None or abs(len(cells) - width) > 1 or any(cells[width:]):
        return None
    return line if len(cells) == width else _quoted([*cells, ""][:width], sep)


def _quoted(cells: Sequence[str], sep: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=sep, quoting=csv.QUOTE_ALL, lineterminator="").writerow(cells)
    return out.getvalue()


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Read bytes that are no UTF-8 as Windows-1252, these alone."""
    assert isinstance(error, UnicodeDecodeError)  # what a handler of decoding is called with
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("deniable.windows", _as_windows)


def _decoded(data: bytes) -> str:
    """Return the text: UTF-8 whose other bytes are read one by one, or UTF-16 with a mark; a bad unit costs itself.

    It is cut into lines afterwards: the bytes of a line end stand in other characters of UTF-16, too. There a byte too
    many would change all that follows.
    """
    for mark, code in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            if len(data) % 2:
                raise InputError("a data file of UTF-16 must have an even number of bytes; is it complete?")
            return data[2:].decode(code, "replace")
    return data.decode("utf-8-sig", "deniable.windows")


def _separator(header: str, known: str | None) -> tuple[str, tuple[str, ...]]:
    """Return what separates the cells: what cuts the header into most, or what the file's ending says if it cuts."""
    widths = {separator: len(next(csv.reader([header], delimiter=separator))) for separator in _SEPARATORS}
    best = max(widths, key=lambda separator: widths[separator])
    if widths[best] == 1 or (known is not None and widths[known] > 1):
        return known or ",", ()
    return best, () if best == (known or ",") else (f"separator: {_SEPARATORS[best]}",)


def _named(frame: pd.DataFrame, header: list[str]) -> pd.DataFrame:
    """Give the columns their names; an empty one is named after its place."""
    frame.columns = pd.Index([name.strip() or f"(column {i + 1})" for i, name in enumerate(header)], dtype=object)
    return frame


def _open_arrow(path: Path) -> Opened:
    from pyarrow import feather, parquet

    table = parquet.read_table(path) if path.name.lower().endswith(".parquet") else feather.read_table(path)
    frame = _named(frame_of(table), [str(name) for name in table.column_names])
    index = index_columns(table.schema)
    return Opened(frame.drop(columns=list(index)), left_out(index), name=path.name)


def left_out(index: Sequence[str]) -> tuple[str, ...]:
    """Say which index was left out."""
    return tuple(f"the index {name!r} was left out" for name in index)


def _open_excel(path: Path) -> Opened:
    """Read the first sheet: the first row says how many columns there are; a longer row is cut, an empty one is none.

    Each cell is what the file holds of it; errors such as #REF! are missing.
    """
    openpyxl: Any = require("openpyxl", purpose="Reading an Excel file")
    if path.stat().st_size > _LARGEST_EXCEL:
        raise InputError(f"data file {str(path)!r} is too large for Excel; save it as .csv or .parquet")
    with closing(openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)) as book:
        sheet, more = book.worksheets[0], len(book.worksheets) - 1
        sheet.reset_dimensions()  # what the file says of its size may be wrong
        rows = ([None if cell.data_type == "e" else cell.value for cell in row] for row in sheet.rows)
        header = ["" if cell is None else str(cell) for cell in next(rows, [])]
        while header and not header[-1].strip():
            header.pop()
        records = [row for row in rows if any(cell not in (None, "") for cell in row[: len(header)])]
    if not header:
        raise InputError(f"data file {str(path)!r} could not be read: the first row of its first sheet names no column")
    columns = {i: [row[i] if i < len(row) else None for row in records] for i in range(len(header))}
    frame = pd.DataFrame({i: pd.Series(cells, dtype=object) for i, cells in columns.items()})
    notes = (f"sheet {sheet.title!r} was read, {more} more were not",) if more else ()
    return Opened(_named(frame, header), notes, name=path.name)


def open_table(source: Any) -> Opened:
    """Open a path, a built-in name, a data frame or blocks.

    The frame of Parquet files, of Dask and of blocks reads a column on request.
    """
    if isinstance(source, str | Path) and str(source) in BUILTIN:
        return replace(_builtin(str(source)), name=str(source))
    if isinstance(source, pd.DataFrame):
        frame = source.reset_index(drop=True)
        problems = ("the columns have several levels of names; flatten them",) if frame.columns.nlevels > 1 else ()
        if not problems:
            frame = _named(frame.copy(deep=False), [str(name) for name in frame.columns])
        return Opened(frame, (), problems)
    if not isinstance(source, str | Path) or Path(source).suffix == ".parquet" or Path(source).is_dir():
        table = on_disk(source)
        if table is not None:
            named = replace(table, names=tuple(map(str, table.names)))
            return Opened(named, left_out(table.index), name=table.title)
    if not isinstance(source, str | Path):
        raise InputError(f"a table must be a path or a data frame, got {type(source).__name__}")
    return open_file(Path(source))


def _builtin(name: str) -> Opened:
    """Return a data set that needs no file, and its target."""
    from sklearn.datasets import load_breast_cancer, load_digits

    if name == "breast-cancer":
        return Opened(load_breast_cancer(as_frame=True).frame, target="target")
    frame = load_digits(as_frame=True).frame
    frame = frame[frame["target"].isin([3, 8])].reset_index(drop=True)
    return Opened(frame.loc[:, frame.nunique() > 1], target="target")
