"""Who is a person is a canonical text: spellings of one person never make two."""

import datetime as dt
import unicodedata
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deniable.noise.queries import HEAVIEST, units_of
from deniable.tables import ColumnSchema
from deniable.tables.columnar import on_disk
from deniable.tables.persons import copies_line, persons_of
from deniable.training.features import as_table


def person(cell, declared=None):
    return next(iter(persons_of([cell], declared)[1]), None)


SPELLINGS = [
    (7, 7.0, "7", " 7", "7.0\t", "007", "+7.00", "7e0", np.int8(7), np.float32(7), Decimal("7.0")),
    ("Zoë", unicodedata.normalize("NFD", "Zoë"), " Zoë\u00a0", np.str_("Zoë\n")),
    (0, -0.0, "-0.00", "0"),
    (1e22, "1e22", "10000000000000000000000", 10**22),
    (0.5, ".5", "0.50"),
    (
        "First Last",
        "First  Last",
        b"First Last",
        "first LAST",
        "First\u00a0Last",
        "Fir\u200bst Last",
        "\ufeffFirst Last",
    ),
    ("1,234", "1234", 1234, "1 234", "\uff11\uff12\uff13\uff14", Fraction(1234)),
    (True, "TRUE", "true", np.bool_(True)),
    (dt.date(2021, 4, 19), "2021-04-19", "19.04.2021", pd.Timestamp("2021-04-19"), np.datetime64("2021-04-19")),
    tuple(f"A{dash}1" for dash in "-\u2010\u2011\u2012\u2013\u2014\u2212\ufe63"),
    ("O'Brien", "O\u2019Brien", "O\u02bcBRIEN"),
    ("Stra\u00dfe", "STRASSE"),
    (10**17 + 1, "100000000000000001", "100,000,000,000,000,001.0", np.int64(10**17 + 1)),
]


@pytest.mark.parametrize("spellings", SPELLINGS, ids=str)
def test_one_person_has_one_text(spellings):
    assert len({person(cell) for cell in spellings}) == 1
    assert person(person(spellings[0])) == person(spellings[0])


def test_different_persons_stay_apart_and_long_numbers_keep_every_digit():
    cells = ["7", "70", "-7", "0.7", "P7", "p-7", "12345678901234567890", "12345678901234567891", 10**17 + 1, "True", 1]
    assert len({person(cell) for cell in cells}) == len(cells)


def test_order_and_neighbours_change_nobody():
    """Each cell is read alone: booleans, numbers and texts in one column, which equality across cells would merge."""
    cells = np.array([True, 1, "1", 1.0, "True"], dtype=object)
    for order in (slice(None), slice(None, None, -1)):
        who, named = persons_of(cells[order])
        assert [named[k] for k in who[order]] == ["true", "1", "1", "1", "true"]


def test_one_text_among_large_ids_merges_nobody():
    """Ids above 2⁵³ next to one text, or next to one gap in another block, file or frame, became 20 persons of 300."""
    ids = [10**17 + i for i in range(300)]
    mixed = pd.DataFrame({"who": pd.Series([*ids, "p7"], dtype=object)})
    gap = pa.table({"who": pa.array([*ids, None])})
    for column in (
        mixed["who"],
        on_disk([mixed])["who"],
        on_disk([mixed[:300], mixed[300:]])["who"],
        as_table(gap)["who"],
    ):
        assert len(persons_of(column)[1]) == 300 + (column.dtype == object)


def test_a_code_is_as_written():
    code = ColumnSchema(kind="code")
    assert [person(cell, code) for cell in ("007", "7", 7, "AB", "ab", "A  B")] == ["007", "7", "7", "AB", "ab", "A B"]
    assert person("1.234", ColumnSchema(decimal=",")) == person(1234)
    assert person(999, ColumnSchema(missing=(999,))) is None


@pytest.mark.parametrize("nobody", [None, np.nan, pd.NA, pd.NaT, "", "  ", "n/a", "\u200b"])
def test_a_record_of_nobody_weighs_nothing(nobody):
    units = units_of(pd.Series(["a", nobody, "b", "A"], dtype=object), "person")
    assert units.labels == ("a", "b")
    assert units.weights.tolist() == [HEAVIEST / 2, 0, HEAVIEST, HEAVIEST / 2]
    assert units_of([nobody], "person").total(1) == 0


@pytest.mark.parametrize("cells", SPELLINGS, ids=str)
def test_spellings_of_one_person_move_a_fit_as_one(cells):
    """200 spellings of one person were 200 persons: 60 of 60 attacks were right."""
    units = units_of(pd.Series([*cells * 20, "someone else"], dtype=object), "person")
    assert units.weights[:-1].sum() <= HEAVIEST
    assert len(units.labels) == 2


def test_a_person_of_eight_spellings_weighs_one():
    """Eight spellings made eight persons, with eight times the weight that is charged for."""
    eight = ["1", "1.0", " 1", 1, 1.0, "01", "+1", "1e0"]
    units = units_of(pd.Series([*eight, "2"], dtype=object), "person", 1)
    assert units.labels == ("1", "2")
    assert units.weights[:8].sum() == units.weights[8] == HEAVIEST


def test_copies_are_counted_as_pandas_counts_them_however_late_rows_part():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 40):
        table = pd.DataFrame({"a": rng.integers(0, 3, n), "b": rng.choice(["x", "y"], n), "c": rng.integers(0, 2, n)})
        said = copies_line(table[name] for name in table.columns)
        copies = int(table.duplicated().sum())
        assert [line.partition(" are ")[0] for line in said] == [f"{copies} of {n} rows"] * (copies > 0)
