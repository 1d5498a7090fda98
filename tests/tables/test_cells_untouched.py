"""From whatever container a cell comes, it is read as it is alone: `read(table)[i] == read(table[i:i+1])`."""

import csv
import datetime as dt
import io
import json
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from deniable import InputError
from deniable.tables import NUMBER, ColumnSchema, Schema, read_cell
from deniable.tables.columnar import on_disk
from deniable.tables.files import as_table, open_table
from deniable.tables.persons import persons_of
from oracles.sheets import ods, xlsx


def person(cell, declared=None):
    return next(iter(persons_of([cell], declared)[1]), None)


TEXTS = [
    *("7", "007", "7.0", "1,5", "1.5", "1,234", "1.234", "1.234,5", "1,234.50", "12  345", "12 345", "1'234", "12 %"),
    *(
        "€ 7",
        "7 kg",
        "kg 7",
        "-0",
        "(7)",
        "1e3",
        "1e400",
        "100000000000000017",
        "100000000000000016",
        "NA",
        "n.a.",
        "?",
    ),
    *("-", " ", "none", "999", "inf", "yes", "No", "TRUE", "true", "t", "Ja", "Ulm", " Ulm ", "ULM", "Köln", "a  b"),
    *("2021-04-19", "19.04.2021", "04/05/2021", "13/01/2021", "2021-04-19T02:00+02:00", "12:30", "1 day 02:00", "soon"),
    *("0001-01-01", "1\u202f234", "7\u00a0kg", "\u22127", "\u200b7", "\ufeffUlm", "A\u2010B", "A\u2212B", "\uff17"),
    *("Ko\u0308ln", "stra\u00dfe", "O\u2019Brien", "Mueller's", "a;b", "a,b", "list", "b'7'", "nan", "3.0", "x\u0a00"),
]
NUMBERS = [7, 7.0, 3.0, -0.0, 0.1, 5e-324, 2**53 + 1, 2**62 + 1, 10**17 + 17, float("inf"), 1e17, True, False]
SCALARS = [
    *(np.float32(0.1), 2**64, 10**400, np.bool_(False), Decimal("1.10"), Decimal("0.3"), Decimal("NaN"), 1 + 2j, None),
    *(Decimal("1e999"), Decimal("7.25"), Fraction(1, 3), np.nan, pd.NA, pd.NaT, b"7", b"\xff", b"1,5", np.str_("7")),
    *(np.int8(7), np.longdouble("0.1"), "\ud800", repr("\ud800"), "a\0x", "a\0y", "a\0", dt.date(2021, 4, 19)),
    *(dt.datetime(2021, 4, 19, 2), pd.Timestamp("2021-04-19"), pd.Timestamp(1), pd.Timestamp(2), dt.time(12, 30)),
    *(pd.Timestamp("2021-04-19 02:00", tz="Europe/Oslo"), dt.datetime(1, 1, 1, tzinfo=dt.UTC), np.timedelta64(3, "h")),
    *(np.datetime64("2021", "Y"), np.datetime64("30000-01-01", "s"), pd.Period("2021-04", "M"), pd.Timedelta(1)),
    *(dt.timedelta(10**8), pd.Interval(0, 1), UUID(int=7), lambda: 7, object, ...),
]
OBJECTS = [*TEXTS, *NUMBERS, *SCALARS, [1, 2], {"a": 1}, (1, 2), np.array([1, 2])]
SCHEMAS = {
    "nothing": ColumnSchema(),
    **{kind: ColumnSchema(kind=kind) for kind in ("number", "whole", "date", "yes/no", "category", "code")},
    "comma": ColumnSchema(decimal=","),
    "point": ColumnSchema(decimal="."),
    "day": ColumnSchema(order="day"),
    "month": ColumnSchema(order="month"),
    "unit": ColumnSchema(unit="kg"),
    "missing": ColumnSchema(missing=(999, "Ulm", "2021-04-19", True)),
    "range": ColumnSchema(range=(0, 9)).checked("x"),
    "categories": ColumnSchema(categories=("NA", "Ulm", "7")).checked("x"),
    "numbers with commas": ColumnSchema(kind="number", decimal=",", unit="€", missing=(999,)),
}


def frame_of(cells):
    return pd.DataFrame({"x": pd.Series(cells, dtype=object)})


def cut(cells):
    return [frame_of(part) for part in (cells[:1], cells[1:50], cells[50:]) if len(part)]


def of_text(code, ending="csv"):
    def written(cells, folder):
        rows = io.StringIO()
        csv.writer(rows, quoting=csv.QUOTE_ALL).writerows([("who", "x"), *(("p", cell) for cell in cells)])
        (folder / f"t.{ending}").write_bytes(rows.getvalue().encode(code))
        return open_table(folder / f"t.{ending}").frame["x"]

    return written


def of_sheet(write, ending):
    def opened(cells, folder):
        pytest.importorskip("python_calamine")
        (folder / f"t.{ending}").write_bytes(write({"people": [["who", "x"], *(["p", cell] for cell in cells)]}))
        return open_table(folder / f"t.{ending}").frame["x"]

    return opened


def of_arrow(made):
    return lambda cells, _: column_of(made(pa.table({"x": pa.array(cells, pa.string())})))


def column_of(table):
    return as_table(table)["x"]


def of_polars(made):
    return lambda cells, _: column_of(made(pytest.importorskip("polars").DataFrame({"x": cells})))


def of_duckdb(cells, _):
    people = pa.table({"x": pa.array(cells, pa.string())})  # noqa: F841  (DuckDB finds it by its name)
    return column_of(pytest.importorskip("duckdb").sql("select x from people"))


def of_structured(cells, _):
    rows = np.empty(len(cells), dtype=[("who", "i8"), ("x", object)])
    rows["x"] = np.array([*cells, None], dtype=object)[:-1]
    return column_of(rows)


def of_masked(cells, _):
    values = np.ma.masked_array(np.array([*cells, None], dtype=object)[:-1], mask=False)
    return column_of({"x": values})


def of_json(cells, folder):
    (folder / "t.jsonl").write_text("".join(json.dumps({"who": 1, "x": cell}) + "\n" for cell in cells))
    return open_table(folder / "t.jsonl", columns=["x"]).frame["x"]


def of_stata(cells, folder):
    pd.DataFrame({"x": cells}).to_stata(folder / "t.dta", write_index=False, version=118)
    return open_table(folder / "t.dta").frame["x"]


def of_parquet(cells, folder):
    parquet.write_table(pa.table({"x": cells}), folder / "t.parquet")
    return open_table(folder / "t.parquet").frame["x"]


def of_folder(cells, folder):
    place = Path(tempfile.mkdtemp(dir=folder))  # a file of one type for each cell
    for i, cell in enumerate(cells):
        parquet.write_table(pa.table({"x": [cell]}), place / f"{i:03}.parquet")
    return on_disk(place)["x"]


def of_dask(cells, _):
    dask, frames = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    with dask.config.set({"dataframe.convert-string": False}):
        return on_disk(frames.from_pandas(frame_of(cells), npartitions=min(3, len(cells)), sort=False))["x"]


ENCODED = [text for text in TEXTS if text.encode("cp1252", "replace").decode("cp1252") == text]
IN_FILES = [*TEXTS[::5], *NUMBERS, Decimal("1.10"), Decimal("7.25"), dt.date(2021, 4, 19), pd.Timestamp(1), b"7", None]
IN_SHEETS = [*(text for text in TEXTS if text.strip() and text.isprintable()), 7, 7.5, -1e-7, 2**53, None]
CONTAINERS = {
    "objects": (lambda cells, _: pd.Series(cells, dtype=object), OBJECTS),
    "a block": (lambda cells, _: on_disk([frame_of(cells)])["x"], OBJECTS),
    "an iterator": (lambda cells, _: on_disk(iter(cut(cells)))["x"], OBJECTS),
    "a function": (lambda cells, _: on_disk(lambda: cut(cells))["x"], OBJECTS),
    "targets": (lambda cells, _: on_disk([(np.zeros((len(cells), 1)), cells)])["(y)"], OBJECTS[:-4]),
    "rows": (lambda cells, _: on_disk(iter([([[c, 0] for c in cells], np.zeros(len(cells)))]))["0"], OBJECTS[:-4]),
    "dask": (of_dask, OBJECTS),
    "a folder": (of_folder, IN_FILES),
    "a Parquet file": (of_parquet, TEXTS),
    "strings of Python": (lambda cells, _: pd.Series(cells, dtype=pd.StringDtype("python")), [*TEXTS, "a\0x", "a\0y"]),
    "strings of Arrow": (lambda cells, _: pd.Series(cells, dtype=pd.StringDtype("pyarrow")), [*TEXTS, "a\0x", "a\0y"]),
    "categories": (lambda cells, _: pd.Series(pd.Categorical(cells)), TEXTS),
    "blocks of categories": (lambda cells, _: on_disk([frame_of(cells).astype("category")])["x"], TEXTS),
    "UTF-8": (of_text("utf-8"), TEXTS),
    "UTF-16": (of_text("utf-16"), TEXTS),
    "Windows-1252": (of_text("cp1252"), ENCODED),
    "tabs": (of_text("utf-8", "tsv"), TEXTS),
    "a workbook": (of_sheet(xlsx, "xlsx"), [*IN_SHEETS, True, dt.datetime(2021, 4, 19, 2), "#DIV/0!"]),
    "a spreadsheet": (
        of_sheet(ods, "ods"),
        [text for text in IN_SHEETS if not isinstance(text, str) or "  " not in text],
    ),
    "Arrow": (of_arrow(lambda table: table), TEXTS),
    "a reader of Arrow": (of_arrow(lambda table: table.to_reader(max_chunksize=7)), TEXTS),
    "batches of Arrow": (of_arrow(lambda table: iter(table.to_batches(max_chunksize=7))), TEXTS),
    "Polars": (of_polars(lambda frame: frame), TEXTS),
    "lazy Polars": (of_polars(lambda frame: frame.lazy()), TEXTS),
    "categories of Polars": (
        of_polars(lambda frame: frame.cast({"x": pytest.importorskip("polars").Categorical})),
        TEXTS,
    ),
    "DuckDB": (of_duckdb, [text for text in TEXTS if "\0" not in text]),
    "a dict": (lambda cells, _: as_table({"who": cells, "x": cells})["x"], OBJECTS),
    "a dict of arrays": (
        lambda cells, _: as_table({"x": np.array([*cells, None], dtype=object)[:-1]})["x"],
        OBJECTS[:-4],
    ),
    "records": (lambda cells, _: as_table([{"x": cell} for cell in cells], Schema({"x": {}}))["x"], OBJECTS),
    "a structured array": (of_structured, OBJECTS[:-4]),
    "lines of JSON": (of_json, [*TEXTS, *(number for number in NUMBERS if number == number), None, [1], {"a": 1}]),
    "Stata": (of_stata, [text for text in TEXTS if text.isascii() and "\0" not in text]),
    "labels of a mask": (of_masked, OBJECTS[:-4]),
}
TYPED = {
    **{name: [0, 1, 100] for name in ("int8", "uint64", "float32", "Int16", "UInt32", "Float32", "Sparse[int64]")},
    **{name: [2**62 + 1, 2**53 + 1, None] for name in ("Int64", "int64[pyarrow]", "object")},
    **{name: [0.1, None, -0.0, 5e-324] for name in ("float64", "Float64", "Sparse[float64]", "double[pyarrow]")},
    **{name: [True, False, None] for name in ("boolean", "bool[pyarrow]", "category")},
    **{f"datetime64[{unit}]": ["2021-04-19", "1970-01-01", None] for unit in ("s", "ms", "us", "ns")},
    "datetime64[ns]": [pd.Timestamp(1), pd.Timestamp(2), None],
    "datetime64[ns, Europe/Oslo]": [pd.Timestamp(1, tz="UTC"), None],
    "timestamp[ns][pyarrow]": [pd.Timestamp(1), pd.Timestamp(2), None],
    "timestamp[s][pyarrow]": [pd.Timestamp("2021"), None],
    "timedelta64[s]": [10**9, 5],
    "timedelta64[ns]": [pd.Timedelta(1), None],
    "date32[pyarrow]": [dt.date(2021, 4, 19), dt.date(1, 1, 1), None],
    "decimal128(20, 2)[pyarrow]": [Decimal("0.30"), Decimal("1234567.89"), None],
    "binary[pyarrow]": [b"7", b"\xff", None],
    "large_binary[pyarrow]": [b"7", b"\xff", None],
    "period[M]": ["2021-04", "2021-05"],
    "complex128": [1 + 2j, 3],
    "float16": [0.5, 7],
    "longdouble": [0.5, 7],
}


def read(own, column):
    """The kinds, the numbers to the last bit, and the words."""
    cells = own.read(column)
    words = [cells.words[place] if place >= 0 else None for place in cells.word]
    return [*zip(cells.kind.tolist(), map(repr, cells.number.tolist()), words, strict=True)]


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_cell_is_read_as_it_is_alone(name, tmp_path):
    opened, cells = CONTAINERS[name]
    whole, alone = opened(cells, tmp_path), [opened([cell], tmp_path) for cell in cells]
    assert len(whole) == len(cells) > 30
    for schema, own in SCHEMAS.items():
        found, each = read(own, whole), [read(own, one)[0] for one in alone]
        assert [(schema, cell, a, b) for cell, a, b in zip(cells, found, each, strict=True) if a != b] == []


@pytest.mark.parametrize("name", ["a block", "an iterator", "a function", "targets", "rows", "dask"])
def test_a_spilled_cell_is_the_cell_that_was_given(name, tmp_path):
    opened, cells = CONTAINERS[name]
    spilled = opened(cells, tmp_path)
    for own in SCHEMAS.values():
        assert read(own, spilled) == read(own, pd.Series(cells, dtype=object))
    assert persons_of(spilled)[1] == persons_of(pd.Series(cells, dtype=object))[1]


@pytest.mark.parametrize("name", TYPED)
def test_columns_of_a_type_hold_what_its_cells_hold(name, tmp_path):
    kind = pd.ArrowDtype(pa.decimal128(20, 2)) if name.startswith("decimal") else name
    column = pd.Series(TYPED[name], dtype=object).astype(kind)
    rest = pd.Series(["Ulm", 7, 1.5], dtype=object)
    ways = {
        "spilled": on_disk([pd.DataFrame({"x": column})])["x"],
        "next to other blocks": on_disk([pd.DataFrame({"x": column}), pd.DataFrame({"x": rest})])["x"][: len(column)],
    }
    for own in SCHEMAS.values():
        expected = read(own, column)
        assert [read(own, column[i : i + 1])[0] for i in range(len(column))] == expected
        assert {way: read(own, found) for way, found in ways.items()} == dict.fromkeys(ways, expected)


def categories(*cells):
    return pd.Series(pd.Categorical(cells))


def in_a_dictionary(*cells):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(cells).dictionary_encode()))


PARTS = {
    "no cell": pd.Series([None, None], dtype=object),
    "no category": categories(None, None),
    "cells of any type": pd.Series(["Ulm", 7, None], dtype=object),
    "words": categories("Ulm", "a\0x", None),
    "truth values": categories(True, False, None),
    "whole numbers": categories(2**62 + 1, 7, None),
    "durations": categories(pd.Timedelta(1), pd.Timedelta("1D"), None),
    "moments": categories(pd.Timestamp(1, tz="Europe/Oslo"), None),
    "any categories": categories("7", dt.date(2021, 4, 19), None),
    "durations of Arrow": in_a_dictionary(pd.Timedelta(1), None),
    "words of Arrow": in_a_dictionary("a\0x", "a\0y", "a", None),
    "bytes of Arrow": in_a_dictionary(b"7", b"\xff", None),
}


@pytest.mark.parametrize("one", PARTS)
@pytest.mark.parametrize("other", PARTS)
def test_neither_gaps_nor_categories_of_a_block_change_a_cell(one, other):
    parts = [PARTS[name] for name in (one, one, other)]
    spilled = on_disk([pd.DataFrame({"x": part}) for part in parts])["x"]
    given = pd.Series([cell for part in parts for cell in part.tolist()], dtype=object)
    for own in (SCHEMAS["nothing"], SCHEMAS["code"], SCHEMAS["comma"]):
        assert read(own, spilled) == read(own, given)


def test_a_text_with_a_zero_is_no_other_category(tmp_path):
    parquet.write_table(pa.table({"x": pa.array(["a\0x", "a", "a\0y"]).dictionary_encode()}), tmp_path / "t.parquet")
    assert ColumnSchema().read(open_table(tmp_path / "t.parquet").frame["x"]).spelled.tolist() == ["a\0x", "a", "a\0y"]


def of_buffer(kind, cells, width=np.int32):
    return pa.Array.from_buffers(kind, len(cells), [None, pa.py_buffer(np.array(cells, width))])


def of_bytes(*cells):
    return pa.array(cells, pa.binary()).view(pa.string())


NO_PYTHON = {  # a column of Arrow with cells that Python has no value for, and how they are read
    "a day beyond its years": (of_buffer(pa.date32(), [10**8, 18_736, -(2**31)]), [None, "2021-04-19", None]),
    "a day in milliseconds": (of_buffer(pa.date64(), [10**17, 86_400_000], np.int64), [None, "1970-01-02"]),
    "moments without an end": (
        of_buffer(pa.timestamp("us"), [2**63 - 1, 0, 1 - 2**63], np.int64),
        [None, "1970-01-01", None],
    ),
    "other bytes than UTF-8": (of_bytes(b"K\xf6ln", "Köln".encode(), b"7"), ["Köln", "Köln", "7"]),
    "days in a list": (pa.ListArray.from_arrays([0, 1, 2], of_buffer(pa.date32(), [10**8, 0])), [None, "list"]),
    "a dictionary with copies": (pa.DictionaryArray.from_arrays([0, 1, 2], ["a", "a", "b"]), ["a", "a", "b"]),
    "a zone that is not known": (of_buffer(pa.timestamp("s", tz="Mars/Base"), [0], np.int64), ["1970-01-01"]),
    "a zone": (of_buffer(pa.timestamp("s", tz="Asia/Tokyo"), [0], np.int64), ["1970-01-01"]),
}


@pytest.mark.parametrize("name", NO_PYTHON)
def test_no_cell_refuses_a_table_or_changes_another_one(name, tmp_path):
    """One day of the year 275760, or one text in Windows-1252, ended the fit: its record was seen to be there."""
    cells, expected = NO_PYTHON[name]
    table = pa.table({"x": cells})
    if name not in ("a dictionary with copies", "a day in milliseconds"):
        parquet.write_table(table, tmp_path / "t.parquet")
        assert ColumnSchema().read(open_table(tmp_path / "t.parquet").frame["x"]).spelled.tolist() == expected
    for made in (lambda part: part, lambda part: part.to_reader(), lambda part: {"x": part["x"]}):
        assert ColumnSchema().read(column_of(made(table))).spelled.tolist() == expected
        alone = [ColumnSchema().read(column_of(made(table[i : i + 1]))).spelled[0] for i in range(len(cells))]
        assert alone == expected


def test_a_frame_of_addresses_is_refused():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": polars.Series([object()], dtype=polars.Object)})
    for table in (SimpleNamespace(dtypes=["Int64", "Object"], __arrow_c_stream__=None), frame, frame.lazy()):
        with pytest.raises(InputError, match="Python objects"):
            as_table(table)
    with pytest.raises(InputError, match="Python objects"):
        as_table({"x": frame["x"]})
    wide = polars.DataFrame({"x": polars.Series([1], dtype=polars.Int128)})
    for table in (wide, wide.lazy(), {"x": wide["x"]}):
        with pytest.raises(InputError, match="Int128"):
            as_table(table)


def test_moments_of_all_units_are_spelled():
    far = pd.Series(np.array([2**63 - 2, -(2**62), 10**16, 10**12], dtype="M8[s]"))
    assert len(set(ColumnSchema().read(far).spelled)) == len(set(persons_of(far)[1])) == 4


@pytest.mark.parametrize("schema", SCHEMAS)
def test_cells_that_read_alike_are_one_person(schema):
    own, persons = SCHEMAS[schema], {}
    for cell in OBJECTS:
        (kind, number, word), who = read(own, pd.Series([cell], dtype=object))[0], person(cell, own)
        whole = kind == NUMBER and abs(float(number)) >= 2**53 and who  # tells large numbers apart by their digits
        persons.setdefault((kind, number, word, whole), set()).add(who)
        assert (who is None) == (kind == 0 or who is None)
    assert {key: who for key, who in persons.items() if len(who) > 1} == {}


def test_read_cell_is_what_a_column_reads():
    for cell in OBJECTS:
        kind, value = read_cell(cell)
        found = ColumnSchema().read(pd.Series([cell], dtype=object))
        assert (int(found.kind[0]), found.words[0] if kind == 3 else value) == (kind, value)
