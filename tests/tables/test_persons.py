"""Who is a person is a canonical text: spellings of one person never make two."""

import unicodedata
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.noise.queries import HEAVIEST, units_of
from deniable.tables.persons import person, persons_of


@pytest.mark.parametrize(
    "spellings",
    [
        (7, 7.0, "7", " 7", "7.0\t", "007", "+7.00", "7e0", np.int8(7), np.float32(7), Decimal("7.0")),
        ("Zoë", unicodedata.normalize("NFD", "Zoë"), " Zoë\u00a0", np.str_("Zoë\n")),
        (0, -0.0, "-0.00", "0"),
        (1e22, "1e22", "10000000000000000000000", 10**22),
        (0.5, ".5", "0.50"),
    ],
)
def test_one_person_has_one_text(spellings):
    assert len({person(cell) for cell in spellings}) == 1
    assert person(person(spellings[0])) == person(spellings[0])


def test_different_persons_stay_apart_and_long_numbers_keep_every_digit():
    cells = ["7", "70", "-7", "0.7", "P7", "p7", "12345678901234567890", "12345678901234567891", "7e999", "True", "1"]
    assert len({person(cell) for cell in cells}) == len(cells)


def test_order_and_neighbours_change_nobody():
    """Each cell is read alone: booleans, numbers and texts in one column, which equality across cells would merge."""
    cells = np.array([True, 1, "1", 1.0, "True"], dtype=object)
    for order in (slice(None), slice(None, None, -1)):
        who, named = persons_of(cells[order])
        assert [named[k] for k in who[order]] == ["True", "1", "1", "1", "True"]


@pytest.mark.parametrize("nobody", [None, np.nan, pd.NA, pd.NaT, "", "  ", "n/a"])
def test_a_record_of_nobody_is_refused(nobody):
    with pytest.raises(dn.InputError, match="but some are missing"):
        persons_of(pd.Series(["a", nobody], dtype=object))


def test_a_person_of_eight_spellings_weighs_one():
    """Eight spellings made eight persons, with eight times the weight that is charged for."""
    eight = ["1", "1.0", " 1", 1, 1.0, "01", "+1", "1e0"]
    units = units_of(pd.Series([*eight, "2"], dtype=object), 1)
    assert units.labels == ("1", "2")
    assert units.weights[:8].sum() == units.weights[8] == HEAVIEST
