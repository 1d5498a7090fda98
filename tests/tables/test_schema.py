"""Promise: what is declared is read as declared, costs no query, and comes back from a file and with a model."""

import copy
import datetime as dt
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sklearn.base import clone

import deniable as dn
from deniable.tables.schema import KINDS
from deniable.workflows.train import train_table

READ = [  # what is declared of a column, and how cells are then spelled; None is missing
    ({"kind": "number", "decimal": ","}, {"1.234": "1234", "1,234": "1.234", "1.234,5 €": "1234.5", "1.5": None}),
    ({"kind": "number", "decimal": ","}, {"0.987": None, "Fr. 1.200,50": "1200.5", "-,5": "-0.5", "(1,5)": "-1.5"}),
    ({"kind": "number", "decimal": "."}, {"1,234": "1234", "1,5": None, "1.234,5": None, "1.234.567": None}),
    ({"kind": "number"}, {"yes": "1", "nein": "0", "12:00": "0.5", "2021-04-19": None, "see file": None, 7: "7"}),
    ({"kind": "number", "unit": "kg"}, {"5 kg": "5", "kg 5": "5", "5": "5", "5 lb": None, "5 €": None}),
    ({"kind": "number", "missing": (999,)}, {"999": None, "999.0": None, 999.0: None, "99": "99"}),
    ({"range": (0, 5)}, {"7": "7", "x": None}),  # clipped later
    ({"kind": "whole"}, {"7.0": "7", "7.5": None, 7.5: None, 7: "7"}),
    ({"kind": "date", "order": "day"}, {"04/05/2021": "2021-05-04", "4.5.2021": "2021-05-04", "04/19/2021": None}),
    ({"kind": "date", "order": "month"}, {"04/05/2021": "2021-04-05", "4.5.2021": "2021-04-05", "19.4.2021": None}),
    ({"kind": "date"}, {"19/04/2021": "2021-04-19", "7": None, pd.Timestamp("2021-04-19"): "2021-04-19"}),
    ({"kind": "date", "missing": ("1900-01-01",)}, {"01.01.1900": None, "2021-04-19": "2021-04-19"}),
    ({"kind": "yes/no"}, {"ja": "yes", "N": "no", True: "yes", "0": "no", "2": None, "maybe": None}),
    ({"kind": "code"}, {"007": "007", "7": "7", "1,5": "1,5", "NA": None, "2021-4-1": "2021-4-1"}),
    ({"categories": ("NA", "DE", 7)}, {"NA": "NA", "n.a.": None, "7.0": "7", "FR": "FR"}),
    ({}, {"007": "7", "x": "x", "1,5": "1.5", "": None}),
]
WRONG = {
    "column 'a' has no 'rnge'; did you mean 'range'": {"columns": {"a": {"rnge": (0, 1)}}},
    "low < high, got \\(1, 0\\)": {"columns": {"a": {"range": (1, 0)}}},
    "the range of 'a' must fit its kind 'date'": {"columns": {"a": {"kind": "date", "range": (1, 2)}}},
    "the range of 'a' must fit its kind 'category'": {"columns": {"a": {"kind": "category", "range": (1, 2)}}},
    "the range of 'a' must be two finite": {"columns": {"a": {"range": ("x", "y")}}},
    "kind of column 'a' must be one of 'number'": {"columns": {"a": {"kind": "numbr"}}},
    "the categories of 'a' must be a list of .* different": {"columns": {"a": {"categories": ["x", "x"]}}},
    "none of which means": {"columns": {"a": {"categories": ["x", ""]}}},
    "categories of 'a' must be a list, got 'xy'": {"columns": {"a": {"categories": "xy"}}},
    "decimal of column 'a' must be one of '.', ','": {"columns": {"a": {"decimal": ";"}}},
    "unit of column 'a' must be a text": {"columns": {"a": {"unit": 3}}},
    "order of a schema must be one of 'day'": {"order": "year"},
    "task of a schema": {"task": "cluster"},
    "must be different columns": {"target": "a", "person": "a"},
    "columns must be a mapping": {"columns": ["a"]},
    "missing of 'all columns' must be a list": {"missing": "x"},
}


def test_cells_are_read_as_declared_and_others_are_missing():
    wrong = []
    for declared, cells in READ:
        column = dn.Schema({"a": declared}).column("a")
        found = column.read(list(cells)).spelled.tolist()
        alone = [column.read([cell]).spelled[0] for cell in cells]
        wrong += [(declared, found, alone)] if not found == alone == list(cells.values()) else []
    assert wrong == []


def test_other_records_change_no_cell():
    rng, wrong = np.random.default_rng(0), []
    for declared, cells in READ:
        column, rows = dn.Schema({"a": declared}).column("a"), list(cells)
        more = [*rows, "1.234,56", "see file", 7.5, None, "04/05/2021", True, b"1,5"]
        order = rng.permutation(len(more))
        found = column.read([more[i] for i in order]).spelled[np.argsort(order)][: len(rows)]
        wrong += [declared] if found.tolist() != list(cells.values()) else []
    assert wrong == []


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_declared_is_refused_in_words(message):
    with pytest.raises(dn.InputError, match=message):
        dn.Schema(**WRONG[message])


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.one_of(WORDS, st.booleans(), st.integers(-(2**50), 2**50), st.floats(allow_nan=False, allow_infinity=False))
SPANS = st.one_of(
    st.none(), st.tuples(st.floats(-1e9, 0), st.floats(1, 1e9)), st.just((dt.date(2020, 1, 1), "2021-01-01"))
)
COLUMNS = st.fixed_dictionaries({}, optional={
    "kind": st.sampled_from(["", *KINDS]), "range": SPANS, "categories": st.lists(VALUES, max_size=4),
    "decimal": st.sampled_from(["", ".", ","]), "order": st.sampled_from(["", "day", "month"]), "unit": WORDS,
    "missing": st.lists(VALUES, max_size=3),
})  # fmt: skip


@given(
    columns=st.dictionaries(WORDS, COLUMNS, max_size=4), target=st.one_of(st.none(), WORDS), missing=st.lists(VALUES)
)
def test_a_schema_comes_back_from_its_file(tmp_path_factory, columns, target, missing):
    try:
        schema = dn.Schema(columns, target=target or None, missing=tuple(missing), decimal=",")
    except dn.InputError:
        return
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    schema.write(path)
    assert dn.Schema.read(path) == schema == pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema)


def test_files_that_hold_no_schema(tmp_path):
    wrong = {"kolumns = 1": "has no 'kolumns'; did you mean 'columns'", "columns = ": "is not TOML", "": ""}
    for text, message in wrong.items():
        (tmp_path / "s.toml").write_text(text)
        if message:
            with pytest.raises(dn.InputError, match=message):
                dn.Schema.read(tmp_path / "s.toml")
    assert dn.Schema.read(tmp_path / "s.toml") == dn.Schema()
    with pytest.raises(dn.InputError, match="no such file"):
        dn.Schema.read(tmp_path / "none.toml")


RNG = np.random.default_rng(0)
N = 3000
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "wage": [f"{1000 + 1000 * x:.2f} €".replace(".", ",") for x in RNG.random(N)],
        "town": RNG.choice(["Aix", "Bonn"], N),
        "zip": [f"{i:05d}" for i in RNG.integers(1000, 1020, N)],
        "id": np.arange(N),
    }
)
PEOPLE["ill"] = np.where(PEOPLE.age > 50, "ja", "nein")
SCHEMA = dn.Schema(
    {
        "age": {"kind": "whole", "range": (18, 90)},
        "wage": {"range": (0, 3000), "decimal": ",", "unit": "€"},
        "town": {"categories": ["Aix", "Bonn"]},
        "zip": {"kind": "code"},
        "id": {"kind": "dropped"},
        "ill": {"kind": "yes/no"},
    },
    target="ill",
)


def asked(model):
    return {use.name for use in model.certificate_.uses}


def test_what_is_declared_is_not_asked():
    model = dn.PrivateClassifier(advantage=0.2, schema=SCHEMA).fit(PEOPLE)
    assert model.classes_.tolist() == ["no", "yes"]
    assert not [name for name in asked(model) if any(column in name for column in ("range of", "target", "categories"))]
    bare = dn.PrivateClassifier(advantage=0.2, classes="discover").fit(PEOPLE.drop(columns=["ill", "id"]), PEOPLE.ill)
    assert {"range of age", "range of wage", "categories of the target"} <= asked(bare)
    by = dn.PrivateRegressor(advantage=0.2, schema=replace(SCHEMA, target="wage", person="id")).fit(PEOPLE)
    assert (by.certificate_.unit, "range of the target" in asked(by)) == ("person", False)
    assert np.corrcoef(model.predict(PEOPLE.drop(columns="ill")) == "yes", PEOPLE.age > 50)[0, 1] > 0.8


def test_shorthands_and_schema_have_the_same_ledger():
    X, y = PEOPLE[["age", "town"]], PEOPLE["ill"].map({"ja": "yes", "nein": "no"})
    schema = dn.Schema({"age": {"range": (18, 90)}, "town": {"categories": ["Aix", "Bonn"]}, "ill": {"kind": "yes/no"}})
    with dn.testing.insecure_noise(np.random.default_rng(0)):
        first = dn.PrivateClassifier(advantage=0.2, schema=replace(schema, target="ill")).fit(X, y)
    with dn.testing.insecure_noise(np.random.default_rng(0)):
        short = {"ranges": {"age": (18, 90)}, "categories": {"town": ["Aix", "Bonn"]}, "classes": ["no", "yes"]}
        second = dn.PrivateClassifier(advantage=0.2, **short).fit(X, y)
    assert first.certificate_.uses == second.certificate_.uses
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_a_schema_in_an_estimator_can_be_cloned_and_is_kept_with_the_model():
    model = dn.PrivateClassifier(advantage=0.2, schema=SCHEMA)
    assert clone(model).schema == SCHEMA
    assert max(len(kind().get_params()) for kind in (dn.PrivateClassifier, dn.PrivateRegressor)) <= 14
    model.fit(PEOPLE)
    rows = PEOPLE.drop(columns="ill")
    copied = pickle.loads(pickle.dumps(model))
    assert copied.schema_ == SCHEMA
    np.testing.assert_array_equal(copied.predict_proba(rows), model.predict_proba(rows))
    english = rows.assign(wage=[wage.replace(",", ".") for wage in rows["wage"]])  # declared otherwise: missing
    nothing = rows.assign(wage="")
    np.testing.assert_array_equal(model.predict_proba(english), model.predict_proba(nothing))
    with pytest.raises(dn.InputError, match="schema 'wgae' is not a column; did you mean 'wage'"):
        dn.PrivateClassifier(schema=dn.Schema({"wgae": {"kind": "number"}})).fit(rows, PEOPLE["ill"])
    with pytest.raises(dn.InputError, match="schema must be a deniable"):
        dn.PrivateClassifier(schema={"wage": (0, 1)}).fit(rows, PEOPLE["ill"])


def test_a_trained_table_keeps_target_task_persons_and_dropped_columns():
    made = train_table(PEOPLE, schema=replace(SCHEMA, person="id", task="classification"), advantage=0.2)
    assert made.model[-1].certificate_.unit == "person"
    assert [column.name for column in made.model[-1].columns_] == ["age", "wage", "town", "zip"]
    assert made.model.predict(PEOPLE.drop(columns=["id", "ill"])).shape == (N,)
    number = train_table(PEOPLE, schema=dn.Schema({"age": {"kind": "number"}}, target="age"), holdout=0)
    assert isinstance(number.model[-1], dn.PrivateRegressor)  # by its declared kind: no query asks what it holds
    whole = replace(SCHEMA, target="age", task="regression")
    assert "range of the target" not in asked(train_table(PEOPLE, schema=whole, holdout=0).model[-1])


def test_statistics_by_a_schema():
    options = {"advantage": 0.9, "schema": SCHEMA}
    made = dn.release_statistics(PEOPLE, ["mean(wage)", "count() by ill", "mean(ill) by town"], **options)
    assert made.found == ()
    assert not [use.name for use in made.certificate.uses if use.name.startswith(("range of", "categories of"))]
    (mean,), counts, _ = made.rows
    assert mean.value == pytest.approx(1500, rel=0.05)
    assert [row.group for row in counts] == [("no",), ("yes",), ("(other)",), ("(missing)",)]
    options["schema"] = SCHEMA.saying({"wage": {"decimal": ".", "categories": (1,)}})
    (lost,) = dn.release_statistics(PEOPLE, ["count() by wage"], **options).rows
    assert lost[2].value == pytest.approx(N, rel=0.05)  # all of them are missing
    wrong = {"mean(town)": "declared as 'category'", "count() by id": "declared as 'dropped'"}
    for statistic, message in wrong.items():
        with pytest.raises(dn.InputError, match=message):
            dn.release_statistics(PEOPLE, statistic, **options)


def test_a_schema_that_notepad_saved_is_read(tmp_path):
    (tmp_path / "s.toml").write_text('[columns.a]\nkind = "number"\n', encoding="utf-8-sig")
    assert dn.Schema.read(tmp_path / "s.toml") == dn.Schema({"a": {"kind": "number"}})


CATEGORIES = {  # what is declared; whether its categories are of its kind
    "yes/no": ({"kind": "yes/no", "categories": ["a", "b"]}, False),
    "yes/no, as it is": ({"kind": "yes/no", "categories": ["ja", "nein"]}, True),
    "whole": ({"kind": "whole", "categories": [1, 1.5]}, False),
    "date": ({"kind": "date", "categories": ["2024-01-01", "x"]}, False),
    "number": ({"kind": "number", "categories": [1, 2]}, True),
    "missing": ({"categories": ["a", "b"], "missing": ["b"]}, False),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_categories_are_cells_of_the_kind(name):
    said, fits = CATEGORIES[name]
    if fits:
        assert dn.Schema({"x": said}).kind("x") == said["kind"]
    else:
        with pytest.raises(dn.InputError, match="none of which means a missing cell or is of another kind"):
            dn.Schema({"x": said})


def test_none_is_missing_and_need_not_be_declared(tmp_path):
    """It was written as the word "None", which a column may hold."""
    schema = dn.Schema({"x": {"missing": [None, float("inf"), 9]}}, missing=[None])
    schema.write(tmp_path / "schema.toml")
    assert dn.Schema.read(tmp_path / "schema.toml") == schema
    assert schema.column("x").read(["None", "9", None, "7"]).spelled.tolist() == ["None", None, None, "7"]


def test_a_long_code_keeps_its_digits_whatever_holds_it():
    own = dn.Schema({"x": {"kind": "code"}}).column("x")
    codes = [2**53, 2**53 + 1, 7]
    held = [codes, [*map(str, codes)], np.array(codes), np.array(codes, dtype=object), pd.Series(codes, dtype="UInt64")]
    for values in held:
        assert own.read(values).spelled.tolist() == [*map(str, codes)]
