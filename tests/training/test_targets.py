"""A target is one column with a cell for each record, whatever holds it; what is none is refused in our words."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deniable as dn

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.random.default_rng(0).uniform(size=(300, 2))
UP = X[:, 0] > 0.5
RANGES = {0: (0, 1), 1: (0, 1)}
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(int(up)) for up in UP]
CLASSES = {
    "truth values as objects": (UP.astype(object), [False, True]),
    "truth values with room for gaps": (pd.Series(UP, dtype="boolean"), [False, True]),
    "whole numbers as objects": (UP.astype(int).astype(object), [0, 1]),
    "whole numbers with room for gaps": (pd.Series(UP.astype(int), dtype="Int64"), [0, 1]),
    "a list": (np.where(UP, "a", "b").tolist(), ["a", "b"]),
    "polars": (pl.Series(np.where(UP, 7, 8)), [7, 8]),
    "arrow": (pa.chunked_array([UP.tolist()]), [False, True]),
    "a column": (UP[:, None], [False, True]),
}


def _fit(y, kind=dn.PrivateClassifier, rows=X):
    return kind(advantage=0.3, ranges=RANGES).fit(rows, y)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_those_that_the_target_has(name):
    y, classes = CLASSES[name]
    assert _fit(y).classes_.tolist() == classes
    blocks = [(X[:99], y[:99]), (X[99:], y[99:])] if name != "a column" else [(X, UP)]
    assert _fit(None, rows=blocks).classes_.tolist() == classes


NONE = "every record, row 0 (the first is 0) has nothing, or an infinity; "
ROWS = "y must have one cell a record, got {} for 300 records; give all"
HOLDS = "y must hold a finite number in every record, row 0 (the first is 0) has a {}; convert it, or declare"
NO_NUMBER = HOLDS.format("word or a truth value")
FIRST = np.arange(300) == 0
REFUSED = {  # the target; what is said of it as classes, and as numbers
    "dates": (DAYS, "got date; convert y to texts", HOLDS.format("date")),
    "days as NumPy has them": (np.array(DAYS, dtype="M8[D]"), "convert y to texts", HOLDS.format("date")),
    "durations": (UP.astype("m8[D]"), "got timedelta64; convert y to texts", None),
    "complex": (UP + 1j, "got complex; convert y to texts", NO_NUMBER),
    "truth values": (UP, None, NO_NUMBER),
    "fractions": (X[:, 0], "Unknown label type: y must hold classes", None),
    "decimals": ([Decimal(int(up)) for up in UP], "got decimal; convert", None),
    "several types": (
        np.array(["a", *range(299)], dtype=object),
        "got mixed-integer; convert",
        NO_NUMBER,
    ),
    "bytes": (np.where(UP, b"a", b"b"), "got bytes; convert", NO_NUMBER),
    "an infinity": (np.where(FIRST, np.inf, UP), NONE, NONE),
    "None": ([None, *UP[1:].astype(int).tolist()], NONE, NONE),
    "a gap": (pd.Series([None, *UP[1:].astype(int).tolist()], dtype="Int64"), NONE, NONE),
    "a masked cell": (np.ma.array(UP.astype(float), mask=FIRST), NONE, NONE),
    "a number": (5, *["column 'y' must be a list or an array of cells, got int"] * 2),
    "a word": ("ill", *["column 'y' must be a list or an array of cells, got str"] * 2),
    "too few": (UP[:9], *[ROWS.format(9)] * 2),
    "none": ([], *[ROWS.format(0)] * 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_target_is_refused_by_what_it_holds(name):
    y, *told = REFUSED[name]
    for kind, said in zip((dn.PrivateClassifier, dn.PrivateRegressor), told, strict=True):
        if said is not None:
            with pytest.raises(dn.InputError) as error:
                _fit(y, kind)
            assert said in str(error.value)
            assert "2024" not in str(error.value), "no cell is quoted"


def test_columns_of_an_array_keep_their_names_beside_persons():
    """The range of column 2 was that of no column, or of another one, where column 1 named persons."""
    table = np.column_stack([X[:, 0], np.arange(300) // 2, 1000 * X[:, 1]])
    model = dn.PrivateClassifier(advantage=0.3, group=1, ranges={0: (0, 1), 2: (0, 1000)}).fit(table, UP)
    assert [column.name for column in model.columns_] == ["0", "2"]
    named = pd.DataFrame({"0": table[:, 0], "2": table[:, 2]})
    np.testing.assert_array_equal(model.predict_proba(table), model.predict_proba(named))
    with pytest.raises(ValueError, match="features"):
        model.predict(table[:, [0, 2]])  # whose second column is called 1, as that of the persons
    last = dn.PrivateClassifier(advantage=0.3, group=2, ranges={0: (0, 1), 1: (0, 1000)}).fit(table[:, [0, 2, 1]], UP)
    np.testing.assert_array_equal(last.predict(table[:, [0, 2, 1]]), last.predict(table[:, [0, 2]]))
    assert not hasattr(last, "feature_names_in_")


def test_records_of_a_person_have_a_way_out():
    table = np.column_stack([X, np.arange(300)])
    with pytest.raises(dn.InputError, match="at most 5040, got 6000; say how many most have"):
        dn.PrivateClassifier(group=2, records_per_person=6000).fit(table, UP)
