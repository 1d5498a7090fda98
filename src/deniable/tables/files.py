"""Opening real-world files: a record of a text file is a line, one of a sheet a row, and each is read alone."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from zipfile import ZipFile

import numpy as np
import pandas as pd

from deniable._check import InputError
from deniable._optional import require
from deniable.tables.cell import DATE, NUMBER, read_cell
from deniable.tables.columnar import PAIR_TARGET, ColumnsOnDisk, on_disk
from deniable.tables.containers import CONTAINERS, as_frame, column_among, fault, index_columns, name_of, of_records
from deniable.tables.inference import typed
from deniable.tables.schema import Schema

KINDS = ".csv, .tsv, .txt, .parquet, .feather, .xlsx, .xls, .ods, .dta or .jsonl (also .gz, .zip)"
BUILTIN = ("breast-cancer",)  # data sets that need no file
_SEPARATORS = ",;\t|"
_LARGEST_SHEET = 20_000_000  # bytes
_MOST_CELLS = 50_000_000  # of the rectangle around a sheet's cells, each of which takes 24 bytes
HEADER_FIRST = (
    "the first line must name every column: delete a title or comments above it, name a column of row names, separate "
    "cells by commas or tabs, quote cells that hold the separator"
)
WHICH_MARK = (
    "its columns are separated by ';', so its numbers may be written 0,5 or 0.5: say --decimal , or --decimal . "
    '(for all columns: decimal = "," in the schema)'
)


@dataclass(frozen=True, eq=False)
class Opened:
    """A file, nothing interpreted: texts of a text file stay texts.

    ``frame`` is a data frame, or reads a column on request; ``problems`` are the reasons not to use it;
    ``notes`` say what was guessed;
    ``odd`` are the lines (1 is the first below the header, empty ones are none) that are no record; ``name`` is what
    to call it; ``target_name`` is known of a built-in one; ``unit`` is what a row is;
    ``beside`` counts the rows of a sheet with cells beside the columns that its first row names.
    """

    frame: Any
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    odd: tuple[int, ...] = ()
    name: str = "data frame"
    target_name: str | None = None
    unit: str = "record"
    beside: int = 0

    def checked(self) -> Self:
        """Return the table if it has no problems; otherwise raise ``InputError``."""
        if self.problems:
            raise InputError(f"{self.name} cannot be used: {'; '.join(self.problems)}")
        return self

    def judged(self) -> Self:
        """Return the table with problems that its rows show together: for its owner, never for a private method."""
        n, title = len(self.frame), f"rows with cells beside the columns that its first row names: {self.beside}"
        found = [f"{title}; if it is a title, delete it"] * (2 * self.beside > n)
        found += [f"most lines have other cells than the first: {HEADER_FIRST}"] * (len(self.odd) > n > 0)
        return replace(self, problems=(*self.problems, *found))


def open_file(path: Path, schema: Schema | None = None, sheet: str | None = None) -> Opened:
    """Open a table; a file that is not one raises ``InputError``. The schema names the columns of JSON lines."""
    if not path.is_file():
        raise InputError(f"data file {str(path)!r} does not exist; give a {KINDS} file, or one of {', '.join(BUILTIN)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a reader's words may quote a cell
            name, data = _unpack(path)
            found = next((read for endings, read in _READERS.items() if name.endswith(endings)), None)
            if found is not _open_sheet:
                refuse_sheet(sheet)
            if found is not None:
                opened = found(name, data, schema or Schema(), sheet)
                return replace(opened, name=path.name)
    except InputError as error:
        raise InputError(f"data file {str(path)!r} could not be read: {error}") from None
    except ImportError:
        raise
    except Exception as error:  # pandas, pyarrow and gzip raise a dozen kinds: each means that this is not such a file
        raise InputError(f"data file {str(path)!r} could not be read: {fault(error)}; save it anew as .csv") from None
    raise InputError(f"data file {str(path)!r} must end in {KINDS}")


def refuse_sheet(sheet: str | None) -> None:
    """Refuse a sheet of what is no workbook."""
    if sheet is not None:
        raise InputError(f"it has no sheets, of which {sheet!r} could be one; leave the sheet out")


def _unpack(path: Path) -> tuple[str, bytes]:
    """Return the name in small letters, and what the file holds, or the only one in it."""
    name, data = path.name.lower(), path.read_bytes()
    if name.endswith(".zip"):
        with ZipFile(io.BytesIO(data)) as packed:
            inside = [one for one in packed.namelist() if not one.endswith("/") and not one.startswith("__MACOSX")]
            if len(inside) != 1:
                raise InputError(f"it must hold one file to be read as a table, it holds {len(inside)}; unpack it")
            name, data = inside[0].lower(), packed.read(inside[0])
    return (name[:-3], gzip.decompress(data)) if name.endswith(".gz") else (name, data)


def _open_text(name: str, data: bytes, schema: Schema, sheet: str | None) -> Opened:
    """Read a table whose records are lines, which end with \\n, \\r or both: no line decides how another is read.

    Separator and names come from the header line alone.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    lines = [line for line in _decode(data).replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    if not (lines and lines[0].strip(_SEPARATORS + " ")) or "\0" in lines[0]:
        raise InputError("its first line does not name columns")
    if re.match("#( |$)|sep=.$", lines[0], re.I):
        raise InputError("its first line is a comment, or says sep=: the first line must name the columns; delete it")
    sep = separator(lines[0], "\t" if name.endswith((".tsv", ".tab")) else None)
    if (first := _cells(lines[0], sep)) is None:
        raise InputError("a quote of its first line does not close on it")
    header, lost = _header(first, len(first))
    records = [_record(line, sep, len(header), len(first)) for line in lines[1:]]
    odd = tuple(i for i, line in enumerate(records, 1) if line is None)
    data = "\n".join([_quote(header, sep), *(line for line in records if line is not None), ""]).encode()
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
    lost += [f"it has no rows: no line has as many cells as the first: {HEADER_FIRST}"] * bool(odd and not len(frame))
    values = sum(read_cell(name)[0] in (NUMBER, DATE) for name in header)
    said = f"names that are numbers or dates: {values} of {len(header)}; if they are a record, put a header above it"
    notes = (said,) * (2 * values > len(header))
    if sep == ";" and not schema.says_decimal:
        lost.append(WHICH_MARK)
    return Opened(as_frame(frame.set_axis(header, axis=1)), notes, tuple(lost), odd, unit="line of the file")


def _open_lines(name: str, data: bytes, schema: Schema, sheet: str | None) -> Opened:
    """Read lines of JSON, each of which is an object by itself."""
    rows: list[Any] = []
    odd: list[int] = []
    for i, line in enumerate((line for line in re.split("[\r\n]+", _decode(data)) if line.strip()), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            odd.append(i)
    return Opened(of_records(rows, schema.names), odd=tuple(odd), unit="line of the file")


def _cells(line: str, sep: str) -> list[str] | None:
    """Return the cells of a line by itself; None if a quote does not close on it."""
    try:
        return next(csv.reader([line], delimiter=sep, strict=True))
    except csv.Error:
        return None


def _record(line: str, sep: str, width: int, wide: int) -> str | None:
    """Return the line with ``width`` cells, None if it is no record: one empty last cell more or fewer is allowed.

    Of a header with ``wide`` cells the last ones may name no columns: there a record's are empty.
    """
    if '"' not in line and line.count(sep) == width - 1:
        return line
    cells = _cells(line, sep)
    if cells is None or not width - 1 <= len(cells) <= wide + 1 or any(cells[width:]):
        return None
    return line if len(cells) == width else _quote([*cells, ""][:width], sep)


def _quote(cells: Sequence[str], sep: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=sep, quoting=csv.QUOTE_ALL, lineterminator="").writerow(cells)
    return out.getvalue()


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Read bytes that are no UTF-8 as Windows-1252, these alone."""
    assert isinstance(error, UnicodeDecodeError)  # what a handler of decoding is called with
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("deniable.windows", _as_windows)


def _decode(data: bytes) -> str:
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


def separator(header: str, known: str | None) -> str:
    """Return what separates the cells: what cuts the header into most, or what the file's ending says if it cuts."""
    widths = {mark: len(next(csv.reader([header], delimiter=mark))) for mark in _SEPARATORS}
    best = max(_SEPARATORS, key=widths.__getitem__)
    return known if known and (widths[known] > 1 or widths[best] == 1) else best


def _header(cells: Sequence[str], wide: int = 1) -> tuple[list[str], list[str]]:
    """Return the names without what follows the last one, and why they are no header: it names most of its columns.

    A title does not, nor do names with blanks between; ``wide`` are the cells of a line.
    """
    places = [i for i, name in enumerate(cells) if name.strip()]
    header = list(cells[: places[-1] + 1] if places else ())
    few = (2 * len(places) < len(header) > 2) or (len(places) == 1 < wide - 1)
    said = f"its first line names {len(places)} of {max(len(header), wide)} columns: {HEADER_FIRST}"
    return header, [said] * (few or (len(header) == 1 and "  " in header[0].strip()))


def _open_arrow(name: str, data: bytes, schema: Schema, sheet: str | None) -> Opened:
    import pyarrow as pa
    from pyarrow import feather, parquet

    read = feather.read_table if name.endswith(".feather") else parquet.read_table
    table = read(pa.BufferReader(data))
    index = index_columns(table.schema)
    return Opened(as_frame(table.drop_columns(list(index))), left_out(index))


def left_out(index: Sequence[str]) -> tuple[str, ...]:
    """Say which index was left out."""
    return tuple(f"the index {name!r} was left out" for name in index)


def _open_sheet(name: str, data: bytes, schema: Schema, sheet: str | None) -> Opened:
    """Read one sheet: the first row says how many columns there are; a longer row is cut, an empty one is none.

    Each cell is what the file holds of it; errors such as #REF! are missing.
    """
    calamine: Any = require("python_calamine", purpose="Reading a sheet")
    if len(data) > _LARGEST_SHEET:
        raise InputError("it is too large for a sheet; save it as .csv or .parquet")
    _check_near(name, data)
    book = calamine.load_workbook(io.BytesIO(data))
    title = book.sheet_names[0] if sheet is None else sheet
    others = ", ".join(repr(one) for one in book.sheet_names if one != title)
    if title not in book.sheet_names:
        raise InputError(f"it has no sheet {title!r}; it has: {others}")
    rows = book.get_sheet_by_name(title).to_python(skip_empty_area=False)
    header, untitled = _header([name_of(cell) for cell in (rows[0] if rows else ())])
    records = [row for row in rows[1:] if any(cell not in (None, "") for cell in row[: len(header)])]
    other = f"others are {others} (--sheet)" if others else "it is the only one"
    notes = (f"sheet {title!r} was read; {other}",) * bool(others)
    lost = [f"the first row of sheet {title!r} must name the columns, and records must follow; {other}"]
    lost = lost * (not (header and records)) + untitled
    beside = sum(any(cell not in (None, "") for cell in row[len(header) :]) for row in records)
    columns = {i: pd.Series([row[i] for row in records], dtype=object) for i in range(len(header))}
    frame = as_frame(pd.DataFrame(columns, index=range(len(records))).set_axis(header, axis=1))
    return Opened(frame, notes, tuple(lost), beside=beside)


def _check_near(name: str, data: bytes) -> None:
    """Refuse a workbook with cells so far apart that what lies between them would not fit into memory."""
    for sheet in ZipFile(io.BytesIO(data)).namelist() if name.endswith(("x", "xlsm")) else ():
        if sheet.startswith("xl/worksheets/"):
            text = ZipFile(io.BytesIO(data)).read(sheet)
            places = re.findall(rb'r="([A-Z]{1,3})(\d{1,7})"', text)
            letters = max((letters for letters, _ in places), key=lambda one: (len(one), one), default=b"A")
            width = sum((letter - 64) * 26**i for i, letter in enumerate(reversed(letters)))
            if width * max((int(row) for _, row in places), default=1) > _MOST_CELLS:
                raise InputError("cells lie too far apart; delete what stands far from the table, or save it as .csv")


def _open_stata(name: str, data: bytes, schema: Schema, sheet: str | None) -> Opened:
    """Read a file of Stata; of values with labels the values: two labels that are alike would be one record's doing."""
    frame = pd.read_stata(io.BytesIO(data), convert_categoricals=False)
    with pd.read_stata(io.BytesIO(data), iterator=True) as reader:
        labels = ", ".join(reader.value_labels())
    notes = (f"labels of values were not read ({labels}): kind = 'code' makes groups of their numbers",)
    return Opened(as_frame(frame), notes * bool(labels))


_READERS: dict[tuple[str, ...], Callable[[str, bytes, Schema, str | None], Opened]] = {
    (".csv", ".tsv", ".tab", ".txt"): _open_text,
    (".parquet", ".feather"): _open_arrow,
    (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"): _open_sheet,
    (".dta",): _open_stata,
    (".jsonl", ".ndjson"): _open_lines,
}


def as_table(data: Any, schema: Schema | None = None) -> Any:
    """Return whatever holds a table as a data frame or as columns on disk, its cells untouched; else what it is.

    The schema names the columns of records without a header.
    """
    found = held_as(data, schema)
    if isinstance(found, np.ndarray) and found.ndim == 2 and found.dtype.kind != "c":
        found = as_frame(pd.DataFrame(found, dtype=object if found.dtype == object else None))
    return found


def held_as(data: Any, schema: Schema | None = None) -> Any:
    """Return a table as :func:`as_table` does, but as an array if its columns have no names."""
    if isinstance(data, str | Path):
        return open_table(data, schema).checked().frame
    found: Any = on_disk(data)
    if found is None:
        found = as_frame(data, schema.names if schema else ())
    if isinstance(found, list | tuple):
        return np.array(found, dtype=object)  # NumPy would give all one type
    return np.asarray(found) if hasattr(found, "__array__") and not hasattr(found, "iloc") else found


def typed_table(data: Any, schema: Schema | None = None, target: Any = None) -> Any:
    """Return a table for methods that know no cells: what has no names as an array, a frame of pandas as it is.

    Parameters
    ----------
    data
        Whatever holds a table. Of files but Parquet a column holds numbers (dates are days, yes and no 1 and 0) if
        ``deniable check`` says so, else texts; other tables hold the types that they have.
    schema, target
        Declares how a file is written, and names the columns of records; which column is the target, if one is.

    Returns
    -------
    pandas.DataFrame, ColumnsOnDisk or array
        The table; an array where columns have no names.

    Raises
    ------
    InputError
        For what is no table, or a file that cannot be read.

    Examples
    --------
    >>> import deniable as dn
    >>> dn.tables.typed_table({"age": [33, 40]})["age"].tolist()
    [33, 40]
    """
    if isinstance(data, pd.DataFrame):
        return data
    found, said = held_as(data, schema), schema or Schema()
    if isinstance(found, pd.DataFrame) and isinstance(data, str | Path):
        found = found[[name for name in found if said.kind(name) != "dropped"]]
        return found.apply(lambda raw: typed(raw, said.column(raw.name), raw.name == target))
    return found.infer_objects() if isinstance(found, pd.DataFrame) else found


def apart(X: Any, target: Any, table: Any) -> tuple[Any, Any]:
    """Return the features and the target of a table; without a target ``X`` and None.

    Parameters
    ----------
    X
        What the user gave.
    target
        The name of the target's column, or None.
    table
        As which ``X`` was read.

    Returns
    -------
    tuple
        The other columns, and the target.

    Raises
    ------
    InputError
        If there is no such column.

    Examples
    --------
    >>> import pandas as pd
    >>> import deniable as dn
    >>> table = pd.DataFrame({"age": [33, 40], "ill": [0, 1]})
    >>> features, target = dn.tables.apart(table, "ill", table)
    >>> list(features), target.tolist()
    (['age'], [0, 1])
    """
    if target is None and not isinstance(table, ColumnsOnDisk):
        return X, None
    names = list(getattr(table, "columns", ()))
    name = PAIR_TARGET if PAIR_TARGET in names else column_among("target", target, names)
    return table.drop(columns=name), table[name]


def open_table(
    source: Any, schema: Schema | None = None, *, sheet: str | None = None, columns: Sequence[str] = ()
) -> Opened:
    """Open a path, a built-in name, or anything else that holds a table, whose columns get texts as names.

    The frame of Parquet files, of Dask and of blocks reads a column on request.
    """
    if isinstance(source, Opened):
        return source
    schema = (schema or Schema()).saying({name: {} for name in columns})
    path = Path(source) if isinstance(source, str | Path) else None
    builtin = path is not None and str(path) in BUILTIN
    if path is not None and not builtin and path.suffix != ".parquet" and not path.is_dir():
        return open_file(path, schema, sheet)
    refuse_sheet(sheet)
    if builtin:
        from sklearn.datasets import load_breast_cancer

        return Opened(load_breast_cancer(as_frame=True).frame, name=str(path), target_name="target")
    table = on_disk(path) if path is not None else as_table(source, schema)
    if isinstance(table, ColumnsOnDisk):
        return Opened(table, left_out(table.index), name=table.title)
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"a table must be {CONTAINERS}, got {type(source).__name__}")
    return Opened(table.reset_index(drop=True))
