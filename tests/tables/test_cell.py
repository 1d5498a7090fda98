"""A cell is read alone: the conventions, one example each, and that neither other records nor types change a code."""

import datetime as dt
import pathlib
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

from deniable.tables import DATE, MISSING, NUMBER, WORD, CellFormat, read_cell, read_cells, spelled

DAY = 18_736.0  # 2021-04-19


def bars(texts):
    return texts.split("|")


EXAMPLES = {
    (NUMBER, 7.0): [
        *bars("7|007|7.0|+7|7,0|€7|7 %|7 EUR| 7.00 |7e0"),
        7,
        7.0,
        np.int8(7),
        Decimal(7),
        Fraction(7),
    ],
    (NUMBER, 1200.5): bars("€ 1,200.50|1.200,50|1 200,50|1'200.50|1\u202f200,50|CHF 1'200.50|1,200.50 $|1’200.50"),
    (NUMBER, 12.0): [*bars("12 %|12|12.-|12,-|12.–|12,-- €|Fr. 12.—"), b"12"],
    (NUMBER, 1234.56): ["1.234,56", "1,234.56"],
    (NUMBER, 1.5): ["1,5", "1.5"],
    (NUMBER, 1234.0): bars("1,234|1 234|1'234.-|1.234,-"),
    (NUMBER, 1_234_567.0): ["1.234.567", "1,234,567"],
    (NUMBER, 1.234): ["1.234"],
    (NUMBER, 0.125): ["0,125", ".125"],
    (NUMBER, -5.0): ["-5", "\u22125", "\u20135", "(5)", "-$5", "- 5", "5-", "5.00-"],
    (NUMBER, 20_210_419.0): ["20210419"],
    (NUMBER, 12.5 / 24): ["12:30", "12:30 PM", "0 days 12:30:00", dt.time(12, 30), dt.timedelta(hours=12.5)],
    (MISSING, None): [
        *(None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s"), Decimal("NaN"), Decimal("sNaN")),
        *("", " ", "NA", "n/a", "NaN", "-", "—", "?", "#N/A", "inf", np.inf, "1e999", 10**400, "9" * 400),
    ],
    (WORD, "true"): [True, "true", "TRUE", np.bool_(True)],
    (WORD, "Köln Süd"): ["Köln Süd", "Ko\u0308ln  Su\u0308d ", "Köln Süd".encode(), "Köln Süd".encode("latin-1")],
    (DATE, DAY): [
        *bars("2021-04-19|19.04.2021|4/19/2021|19/04/2021|19-04-2021|19.04.21|19 Apr 2021|19APR2021|April 19, 2021"),
        *("2021-04-19T02:00+02:00", "2021-04-19 00:00:00Z", "19 avr 2021"),
        *(pd.Timestamp("2021-04-19 02:00", tz="Europe/Berlin"), dt.date(2021, 4, 19), pd.Period("2021-04-19", "D")),
    ],
    (DATE, DAY + 0.25): [
        "2021-04-19 06:00",
        "19.4.21 6:00",
        "19APR2021:06:00:00",
        "19.04.2021 06:00:00",
        np.datetime64("2021-04-19T06"),
    ],
    (DATE, 18_722.0): ["04/05/2021"],  # 5 April
    (DATE, 18_718.0): ["2021-04", pd.Period("2021-04", "M")],
    (DATE, -719_162.0): ["0001-01-01"],
    (DATE, 2_932_895.5): ["9999-12-30 12:00", dt.datetime(9999, 12, 30, 12)],
    (WORD, "tuple"): [(1, 2)],
    (WORD, "(0, 10]"): [pd.Interval(0, 10)],
    (WORD, str(uuid.UUID(int=7))): [uuid.UUID(int=7)],
    **{(WORD, w): [w] for w in bars("1-2|3+|<5|10-19|1.2.3|v1.0|0x1F|5 kg|36 months|2020-21|31.02.2021|none|unknown")},
}


def test_each_example_is_read_as_stated():
    asked = [(cell, as_stated) for as_stated, cells in EXAMPLES.items() for cell in cells]
    assert len(asked) > 90
    wrong = [(cell, read_cell(cell)) for cell, as_stated in asked if read_cell(cell) != as_stated]
    assert wrong == []


def test_a_code_keeps_its_digits_whatever_holds_it():
    """As a number of NumPy, or a decimal, which registers use for long ones, it was rounded: two codes became one."""
    code, form = 2**63 + 1, CellFormat(as_written=True)
    held = [str(code), code, np.uint64(code), Decimal(code), Decimal(f"{code}.00")]
    assert {read_cell(cell, form) for cell in held} == {(WORD, str(code))}
    for cells in (held, pd.Series([code]), pd.Series([code, None], dtype="UInt64")):
        assert read_cells(cells, form).words == (str(code),)
    assert [read_cell(cell, form)[0] for cell in (Decimal("inf"), Decimal("sNaN"), True, 7.5)] == [
        MISSING,
        MISSING,
        WORD,
        NUMBER,
    ]


def test_a_canonical_text_is_read_as_the_cell_that_it_spells():
    cells = [*EXAMPLES, (NUMBER, 0.1 + 0.2), (NUMBER, 1e300), (NUMBER, -(2.0**60)), (NUMBER, 5e-324)]
    assert [cell for cell in cells if read_cell(spelled(*cell)) != cell and cell[1] != "true"] == []
    assert spelled(NUMBER, 7.0) == "7"


def codes(cells):
    return [
        *zip(
            cells.kind.tolist(),
            np.where(np.isnan(cells.number), -1e9, cells.number).tolist(),
            cells.spelled,
            strict=True,
        )
    ]


def moved(read, seed):
    """How many codes differ when records are shuffled, dropped, repeated or joined by others."""
    rng, pool = np.random.default_rng(seed), [cell for cells in EXAMPLES.values() for cell in cells]
    column, more = np.empty(40, dtype=object), np.empty(3, dtype=object)
    column[:], more[:] = ([pool[i] for i in rng.integers(0, len(pool), n)] for n in (40, 3))
    rows = rng.integers(0, 40, 30)
    alone, other = codes(read(column)), codes(read(np.concatenate((column[rows], more))))
    return sum(alone[row] != code for row, code in zip(rows, other, strict=False))


def test_other_records_change_no_code():
    assert [seed for seed in range(100) if moved(read_cells, seed)] == []


def test_negative_control_a_reader_of_whole_columns_is_seen():
    def by_column(values):
        numbers = pd.to_numeric(pd.Series([*map(str, values)]), errors="coerce")
        return read_cells(numbers if numbers.notna().mean() > 0.25 else values)

    assert sum(moved(by_column, seed) for seed in range(20)) > 0


def test_the_type_of_a_column_changes_no_code():
    rng, failed = np.random.default_rng(0), []
    for _ in range(20):
        whole = pd.Series(rng.integers(-2000, 2000, 40))
        big = whole * 2**44 + 2**60 + 1
        part = pd.Series(rng.standard_normal(40) * 10.0 ** rng.integers(-9, 9, 40)).mask(rng.random(40) < 0.1)
        date = pd.Series(pd.to_datetime(rng.integers(-(10**9), 4 * 10**9, 40), unit="s")).astype("M8[us]")
        flag = (whole > 0).astype("boolean").mask(rng.random(40) < 0.1)
        word = pd.Series(rng.choice(["Ulm", "Köln", "7", "n.a.", "1,5"], 40))
        for values, types in (
            (whole, "float64 object Int64 Float64 string str category int32 int64[pyarrow] float[pyarrow]"),
            (big, "float64 object Int64 string category int64[pyarrow]"),
            (part, "object Float64 string str category double[pyarrow]"),
            (date, "M8[ns] object str category timestamp[us][pyarrow] UTC"),
            (flag, "object str category bool[pyarrow]"),
            (pd.to_timedelta(whole, unit="s"), "object str category duration[s][pyarrow]"),
            (word, "object string category string[pyarrow] bytes U9"),
        ):
            for kind in types.split():
                match kind:
                    case "UTC":
                        other = values.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
                    case "bytes":
                        other = values.map(str.encode)
                    case "U9":
                        other = np.array(values.tolist())
                    case _:
                        other = values.astype(kind)
                failed += [kind] if codes(read_cells(other)) != codes(read_cells(values)) else []
    assert failed == []
    found = read_cells([1.5, None, pathlib.PurePosixPath("a/b")])
    assert codes(found) == [(NUMBER, 1.5, "1.5"), (MISSING, -1e9, None), (WORD, -1e9, "a/b")]
