"""Tables: what is refused and how, and rows of norm at most 1 whatever comes in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.tables.reading import encode, read_table


def people(n=20, **columns):
    rng = np.random.default_rng(0)
    frame = {
        "age": rng.integers(18, 90, n),
        "city": rng.choice(["A", "B", "C"], n),
        "ill": np.arange(n) % 2,
    }
    return pd.DataFrame(frame | columns)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_files_of_every_kind_give_the_same_table(tmp_path, suffix):
    frame, path = people(), tmp_path / f"people{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    np.testing.assert_array_equal(encode(read_table(path, "ill")).X, encode(read_table(frame, "ill")).X)


@pytest.mark.parametrize("name", ["breast-cancer", "digits-3-8"])
def test_builtin_data_needs_no_file_and_no_target(name):
    encoded = encode(read_table(name))
    assert np.linalg.norm(encoded.X, axis=1).max() <= 1
    assert set(encoded.y) == {-1.0, 1.0}


@given(st.lists(st.floats(-1e300, 1e300), min_size=12, max_size=12, unique=True))
def test_rows_never_exceed_norm_one_and_labels_are_signs(values):
    encoded = encode(read_table(people(12, age=values), "ill"))
    assert np.linalg.norm(encoded.X, axis=1).max() <= 1 + 1e-12
    assert encoded.classes == (0, 1)
    assert encoded.X.shape == (12, len(encoded.columns))


def test_public_constants_clip_and_name_what_was_assumed():
    encoded = encode(read_table(people(), "ill"), ranges={"age": [30, 60], "city": ["A", "B"]})
    assert encoded.assumed_public == ()
    assert encoded.ranges == {"age": [30.0, 60.0], "city": ["A", "B"]}
    assert np.abs(encoded.X[:, 0]).max() <= 1 / np.sqrt(3)
    assert encode(read_table(people(), "ill")).assumed_public == ("age", "city")


def broken(column, row, value):
    frame = people().astype({"age": float})
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "target", "words"),
    [
        ("nowhere.csv", "ill", ["nowhere.csv", "does not exist", "breast-cancer"]),
        (people(), "sick", ["'sick'", "age, city, ill"]),
        (people(), None, ["target", "age, city, ill"]),
        (people(), "city", ["'city'", "exactly 2", "got 3"]),
        (broken("age", [1, 2], np.nan), "ill", ["NaN", "2 in 'age'"]),
        (broken("age", 3, np.inf), "ill", ["infinite", "1 in 'age'"]),
        (people(same=1, too="x"), "ill", ["constant", "same, too", "--drop"]),
        (people(9), "ill", ["at least 10 rows", "got 9"]),
        (people(300, name=[f"p{i}" for i in range(300)]), "ill", ["'name'", "300 different", "--drop name"]),
        (people()[["ill"]], "ill", ["no column besides"]),
        (people(ill=[1] + 19 * [0]), "ill", ["at least 2 rows of each"]),
    ],
)
def test_refused_in_one_line_that_names_the_column(frame, target, words):
    with pytest.raises(dn.InputError) as error:
        read_table(frame, target)
    message = str(error.value)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"height": [0, 1]}, ["height", "not in"]),
        ({"age": [5]}, ["age", "[low, high]"]),
        ({"age": [9, 3]}, ["low < high"]),
        ({"age": [0, float("nan")]}, ["finite"]),
        ({"city": "AB"}, ["categories"]),
        ({"city": []}, ["categories"]),
    ],
)
def test_bad_constants(ranges, words):
    with pytest.raises(dn.InputError) as error:
        encode(read_table(people(), "ill"), ranges=ranges)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_unreadable_files(tmp_path):
    (tmp_path / "a.parquet").write_text("not parquet")
    (tmp_path / "a.xlsx").write_text("")
    (tmp_path / "a.csv").write_text("")
    for name, word in (("a.parquet", "could not be read"), ("a.xlsx", ".parquet"), ("a.csv", "could not be read")):
        with pytest.raises(dn.InputError, match=word):
            read_table(tmp_path / name, "y")
