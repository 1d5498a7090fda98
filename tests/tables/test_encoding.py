"""Tables: what is refused and how, and rows of norm at most 1 whatever comes in."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, strategies as st

import deniable as dn
from deniable.tables import TableWarning, encode, understand
from deniable.tables.encoding import coarse_range


def people(n=20, **columns):
    rng = np.random.default_rng(0)
    frame = {
        "age": rng.integers(18, 90, n),
        "city": rng.choice(["A", "B", "C"], n),
        "ill": np.arange(n) % 2,
    }
    return pd.DataFrame(frame | columns)


@pytest.mark.parametrize("name", ["breast-cancer"])
def test_builtin_data_needs_no_file_and_no_target(name):
    X, y = encode(understand(name))
    assert np.linalg.norm(X, axis=1).max() <= 1
    assert set(y) == {-1.0, 1.0}


@given(st.lists(st.floats(-1e300, 1e300) | st.just(np.nan), min_size=12, max_size=12))
@example([0.0, 4.7e-125, *[np.nan] * 10])
@example([1e16, 1e16 + 2, *[np.nan] * 10])
@pytest.mark.filterwarnings("ignore::deniable.tables.TableWarning")
def test_rows_never_exceed_norm_one_and_labels_are_signs(values):
    X, y = encode(understand(people(12, age=values, more=np.arange(12) % 5), "ill"))
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
    np.testing.assert_array_equal(y, np.where(np.arange(12) % 2, 1.0, -1.0))
    assert len(X) == 12
    assert np.isfinite(X).all()


def test_public_constants_clip():
    frame, size = people(), 1 / np.sqrt(3)
    schema = dn.Schema({"age": {"range": (30, 60)}, "city": {"categories": ["A", "B"]}}, target="ill")
    X, _ = encode(understand(frame, schema=schema))
    np.testing.assert_allclose(X[:, 0], size * np.clip((frame["age"] - 45) / 15, -1, 1))
    np.testing.assert_allclose(X[:, 1:3], size * np.stack([frame["city"] == "A", frame["city"] == "B"], axis=1))


def broken(column, row, value):
    frame = people().astype({"age": float})
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "target", "words"),
    [
        ("nowhere.csv", "ill", ["nowhere.csv", "does not exist", "breast-cancer"]),
        (people(), "sick", ["'sick'", "'age', 'city', 'ill'"]),
        (people(), None, ["target", "'age', 'city', 'ill'"]),
        (people(), "city", ["'city'", "exactly 2", "got 3"]),
        (broken("ill", [1, 2], np.nan), "ill", ["target 'ill' has 2 missing cells"]),
        (people()[["ill"]], "ill", ["no column", "besides the target"]),
        (people()[["ill"]].assign(same=1), "ill", ["no column", "'same': dropped: it is constant"]),
        (people(ill=[1] + 19 * [0]), "ill", ["at least 2 rows of each"]),
    ],
)
def test_refused_in_one_line_that_names_the_column(frame, target, words):
    with pytest.raises(dn.InputError) as error:
        encode(understand(frame, target))
    message = str(error.value)
    assert all(word in message for word in words), message


def test_unreadable_files(tmp_path):
    (tmp_path / "a.parquet").write_text("not parquet")
    (tmp_path / "a.zip").write_text("")
    (tmp_path / "a.sav").write_text("")
    (tmp_path / "a.csv").write_text("")
    for name, word in (
        ("a.parquet", "could not be read"),
        ("a.zip", "BadZipFile"),
        ("a.sav", ".parquet"),
        ("a.csv", "could not be read"),
    ):
        with pytest.raises(dn.InputError, match=word):
            understand(tmp_path / name, "y")


def test_missing_cells_have_an_indicator_and_the_middle():
    frame = people().astype({"age": float})
    frame.loc[[1, 2], "age"] = np.nan
    frame.loc[3, "city"] = None
    X, _ = encode(understand(frame, "ill"))
    size = 1 / np.sqrt(3)
    assert X.shape == (20, 7)  # age and its gaps, three cities and their gaps, the constant
    np.testing.assert_allclose(X[1:4, 1], [size, size, 0])
    np.testing.assert_allclose(X[1:3, 0], 0, atol=1e-15)
    np.testing.assert_allclose(X[3, 2:6], [0, 0, 0, size])


def test_ranges_read_off_the_data_are_coarse_and_rare_texts_have_no_indicator():
    age = np.linspace(18.37, 89.53, 100)
    frame = people(100, age=age, city=["A", "B"] * 49 + ["Rare"] * 2)
    X, _ = encode(understand(frame, "ill"))
    np.testing.assert_allclose(X[:, 0], (age - 52.5) / 37.5 / np.sqrt(3))  # from 15 to 90
    np.testing.assert_array_equal(X[-2:, 1:3], 0)


@given(st.floats(-1e200, 1e200), st.floats(-1e200, 1e200))
def test_coarse_ranges_lie_strictly_outside_but_for_zero(one, two):
    low, high = min(one, two), max(one, two)
    if low == high or (low, high) == (0, 1):  # what are perhaps flags keeps 0 and 1
        return
    start, end = coarse_range(low, high)
    assert start < low or (start == 0 <= low)
    assert end > high or (end == 0 >= high)
    assert end - start <= 2 * (high - low) or start == 0 or end == 0


def test_columns_that_identify_are_dropped_loudly():
    frame = people(300, name=[f"p{i}" for i in range(300)], same=1)
    with pytest.warns(TableWarning, match=r"'name': dropped: its texts are nearly unique.*'same': dropped"):
        X, _ = encode(understand(frame, "ill"))
    assert X.shape == (300, 5)  # age, three cities, the constant


def test_columns_are_not_held_twice():
    rng = np.random.default_rng(0)
    table = understand(
        pd.DataFrame({**{f"x{i}": rng.normal(size=40_000) for i in range(12)}, "y": rng.integers(0, 2, 40_000)}), "y"
    )
    tracemalloc.start()
    X, _ = encode(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.7 * X.nbytes
