"""Whatever holds a table in memory as a data frame whose cells are those that were given: no type is inferred."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import InputError
from deniable._optional import require
from deniable._shown import LISTED
from deniable.tables.cell import DAY

CONTAINERS = (
    "a path, a data frame (pandas, Polars, PyArrow, DuckDB, Dask, what else Narwhals knows or has __arrow_c_stream__), "
    "an array, a dict of columns, or blocks"
)
_TITLE = 2  # names that may be those of a title, or of a cover sheet


def as_frame(data: Any, names: Sequence[Any] = ()) -> Any:
    """Return a table in memory as a data frame, or as an array if it has no names; anything else as it is.

    A list of dicts says of no column whether it is there: its columns are ``names``, which are declared.

    Raises
    ------
    InputError
        For columns of other lengths, records without declared names, and types that Arrow lacks.
    """
    found = _taken(data, names)
    if not isinstance(found, pd.DataFrame):
        return found
    if found.columns.nlevels > 1:
        raise InputError("the columns have several levels of names; flatten them")
    return found.set_axis(pd.Index(names_of(found.columns), dtype=object), axis=1)


def name_of(name: Any) -> str:
    """Return what a column is called: its name as a text without blanks around it; of 2024.0 it is 2024.

    >>> import deniable as dn
    >>> dn.tables.name_of(" age "), dn.tables.name_of(0)
    ('age', '0')
    """
    whole = isinstance(name, float) and name.is_integer()
    return str(int(name) if whole else "" if name is None else name).strip()


def names_of(columns: Iterable[Any]) -> tuple[str, ...]:
    """Return what columns are called, no two alike; one without a name is called after its place.

    >>> import deniable as dn
    >>> dn.tables.names_of(["age ", ""])
    ('age', '(column 2)')
    """
    names = tuple(name_of(name) or f"(column {i})" for i, name in enumerate(columns, 1))
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InputError(f"columns must have different names, got {few(twice)} more than once; rename the copies")
    return names


def _taken(data: Any, names: Sequence[Any]) -> Any:
    if isinstance(data, pd.DataFrame):
        return data
    if type(data).__module__.startswith("scipy.sparse"):
        raise InputError("sparse input is not supported: a cell that is not stored is read, too; give data.toarray()")
    if isinstance(data, Mapping):
        return _of_columns(data)
    if isinstance(data, np.ndarray):
        return (
            _of_columns({name: data[name] for name in data.dtype.names})
            if data.dtype.names
            else _missing_where_masked(data)
        )
    if isinstance(data, list | tuple) and data and isinstance(data[0], Mapping):
        return of_records(data, names)
    if not in_arrow(data) and hasattr(type(data), "columns"):  # of a lazy frame they are not asked for
        narwhals: Any = require("narwhals", purpose="Reading a frame that is neither of pandas nor of Arrow")
        known = narwhals.from_native(data, pass_through=True)
        known = known.collect() if isinstance(known, narwhals.LazyFrame) else known
        data = known.to_native() if isinstance(known, narwhals.DataFrame) else known
    if in_arrow(data):
        import pyarrow as pa

        with _taken_over(data):
            data = pa.table(data)
        return frame_of(data)  # its own conversion makes floats of whole numbers next to a gap
    return data.to_pandas() if hasattr(data, "to_pandas") else data


def in_arrow(data: Any) -> bool:
    """Whether something is a table that Arrow can take over."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def batches_of(data: Any) -> Iterator[Any]:
    """Yield the batches of a stream of Arrow: of a query of DuckDB, of a reader; it need not fit into memory."""
    import pyarrow as pa

    with _taken_over(data):
        yield from pa.RecordBatchReader.from_stream(data)


@contextmanager
def _taken_over(data: Any) -> Iterator[None]:
    import pyarrow as pa

    types = getattr(data, "dtypes", None)
    told = {*map(str, [*(types if isinstance(types, list) else ()), getattr(data, "dtype", "")])}
    if told & {"Object", "BIT", "BIGNUM"}:  # of Polars, of DuckDB
        raise InputError("a table must have no column of Python objects, BIT or BIGNUM: addresses or bytes; convert it")
    try:
        yield
    except Exception as error:  # of Arrow, or of who runs the query: its words may quote a cell
        raise InputError(
            f"PyArrow {pa.__version__} cannot take the table over ({fault(error)}): a query fails, or a column has a "
            "type that it lacks, such as Int128; run the query alone, or cast the column"
        ) from None


def of_records(rows: Sequence[Any], names: Sequence[Any]) -> pd.DataFrame:
    """Return records, each a dict, as the declared columns: one that a record does not have is missing in it."""
    if not names:
        raise InputError(
            "a list of dicts and JSON lines have no header: a record would say which columns there are; declare the "
            "columns in a schema, or name them by columns="
        )
    held = [{name_of(name): cell for name, cell in row.items()} if isinstance(row, Mapping) else {} for row in rows]
    return _of_columns({name: [row.get(name) for row in held] for name in map(name_of, names)})


def _of_columns(columns: Mapping[Any, Any]) -> pd.DataFrame:
    """Return columns side by side, whatever their indices are."""
    found = [as_column(name, values) for name, values in columns.items()]
    if not found:
        raise InputError("a table must have at least one column, got an empty dict")
    if len({len(one) for one in found}) > 1:
        lengths = {name: len(one) for name, one in zip(columns, found, strict=True)}
        raise InputError(f"all columns must have one length, got {few([*lengths.items()])}")
    frame = pd.DataFrame(dict(enumerate(found)), index=range(len(found[0])))
    return frame.set_axis(pd.Index(list(columns), dtype=object), axis=1)


def as_column(name: Any, values: Any) -> pd.Series[Any]:
    """Return one column, of whatever library, with the cells and the type that it has.

    Parameters
    ----------
    name
        What messages call it.
    values
        A list, an array, or a series of pandas, Polars or PyArrow.

    Returns
    -------
    pandas.Series
        Its cells, numbered from 0.

    Raises
    ------
    InputError
        For what has no length, or more than one cell a record.

    Examples
    --------
    >>> import deniable as dn
    >>> dn.tables.as_column("age", [33, None]).tolist()
    [33, None]
    """
    import pyarrow as pa

    values = values if hasattr(values, "__len__") or not hasattr(values, "__array__") else np.asarray(values)
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not hasattr(values, "__len__"):
        raise InputError(f"column {name!r} must be a list or an array of cells, got {type(values).__name__}")
    if isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(values).reset_index(drop=True)
    if in_arrow(values):
        with _taken_over(values):
            return as_series(pa.chunked_array(values if hasattr(values, "__arrow_c_stream__") else [values]))
    if not isinstance(values, np.ndarray):
        return pd.Series(list(values), dtype=object)  # and a series in a frame keeps its type
    if values.ndim != 1:
        raise InputError(f"column {name!r} must have one cell a record, got an array of shape {values.shape}")
    values = _missing_where_masked(values)
    return pd.Series(values, dtype=object if values.dtype == object else None)


def _missing_where_masked(values: Any) -> Any:
    """Return an array whose masked cells are missing: what lies below a mask is no cell."""
    if isinstance(values, np.ma.MaskedArray):
        hidden, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[hidden] = None
    return values


def index_columns(schema: Any) -> tuple[str, ...]:
    """Return the names of columns that pandas wrote as the index."""
    known = (schema.pandas_metadata or {}).get("index_columns", [])
    return tuple(name for name in known if isinstance(name, str) and name in schema.names)


def as_series(column: Any) -> pd.Series[Any]:
    """Return a column of Arrow as one of pandas, in which no whole number is rounded for the gaps next to it.

    Each cell is converted alone where one is beyond what Python can hold: no record decides how others are read.
    """
    import pyarrow as pa

    if "arrow.opaque" in str(column.type):
        raise InputError(f"a table must have no column of a type that Arrow lacks, got {column.type}: cast it to text")
    try:
        return _converted(column)
    except Exception:
        texts = "string" in str(column.type) and not pa.types.is_dictionary(column.type)
        return pd.Series(map(_alone, column.cast(pa.large_binary()) if texts else column), dtype=object)


def _alone(cell: Any) -> Any:
    with suppress(Exception):
        return cell.as_py()


def _converted(column: Any) -> pd.Series[Any]:
    import pyarrow as pa

    kind = column.type
    if "string" in str(kind):
        column.validate(full=True)
    if pa.types.is_timestamp(kind) and kind.tz:  # which need not be a zone that is known here
        column = column.cast(pa.timestamp(kind.unit))
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind):
        return pd.Series(column.to_pylist(), dtype=object)
    if str(kind) == "month_day_nano_interval":  # days, a month as 30 of them
        spans = [None if span is None else (span[0] * 30 + span[1], span[2] / DAY) for span in column.to_pylist()]
        return pd.Series([None if span is None else sum(span) for span in spans], dtype="float64")
    if pa.types.is_integer(kind) and column.null_count:
        return pd.Series(column.to_pylist(), dtype="Int64" if pa.types.is_signed_integer(kind) else "UInt64")
    found: pd.Series[Any] = column.to_pandas()
    return found


def frame_of(table: Any) -> pd.DataFrame:
    """Return a table of Arrow as a data frame, each column by :func:`as_series`."""
    series = [as_series(table.column(i)) for i in range(table.num_columns)]
    frame = pd.DataFrame(dict(enumerate(series)), index=range(table.num_rows))
    return frame.set_axis(list(table.column_names), axis=1)


def few(names: Iterable[Any]) -> str:
    """Return names in a row, the first ones of many."""
    known = [*names]
    return ", ".join(map(repr, known[:LISTED])) + f", … ({len(known)} in all)" * (len(known) > LISTED)


def fault(error: Exception) -> str:
    """Return what kind of error it was. Its own text may quote a cell: it is shown by ``--debug`` alone."""
    return getattr(error, "strerror", None) or type(error).__name__


def near(asked: str, names: Iterable[str]) -> str:
    """Suggest the name that was probably meant."""
    small = {name.casefold(): name for name in names}
    word = asked.casefold()
    close = difflib.get_close_matches(word, small, n=1, cutoff=0.6)
    close = close or [name for name in small if len(word) > 2 and (word in name or (len(name) > 2 and name in word))]
    return f"; did you mean {small[close[0]]!r}?" if close else ""


def no_column(option: str, asked: str, names: Iterable[str]) -> str:
    """Say that what an option names is no column, and which there are."""
    return f"{option} {asked!r} is not a column{near(asked, names)}; it has: {few(names)}{above_header([*names])}"


def above_header(names: Sequence[str]) -> str:
    """Say what to do if so few names are a title's, or a cover sheet's: a function of the header alone.

    Examples
    --------
    >>> from deniable.tables import above_header
    >>> "delete it" in above_header(["Report of 2026"]), above_header(["age", "town", "income", "ill"])
    (True, '')
    """
    said = "; if this is a title, delete it, or name another sheet (--sheet): the first row must name every column"
    return said * (len(names) <= _TITLE)


def column_among(option: str, asked: Any, names: Collection[str]) -> str:
    """Return the name of the column that an option asks for.

    Parameters
    ----------
    option
        What messages call it.
    asked
        The name that it has.
    names
        Those of the table.

    Returns
    -------
    str
        The name as the table has it.

    Raises
    ------
    InputError
        If it is None, or no column: with the nearest name.

    Examples
    --------
    >>> import deniable as dn
    >>> dn.tables.column_among("target", " ill", ["age", "ill"])
    'ill'
    """
    if asked is None:
        raise InputError(f"{option} is missing; name a column, one of: {few(names)}")
    if (name := name_of(asked)) not in names:
        raise InputError(no_column(option, name, names))
    return name
