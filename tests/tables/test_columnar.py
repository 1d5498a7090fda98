"""Tables read column by column: what one data frame of the same rows gives."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import deniable as dn
from deniable.tables import as_source, columnar, draft_schema, read_cells, understand
from deniable.tables.columnar import on_disk
from deniable.tables.persons import persons_of
from deniable.testing import insecure_noise


def person(cell, declared=None):
    return next(iter(persons_of([cell], declared)[1]), None)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "income": rng.lognormal(10, 1, n),
            "region": rng.choice(["N", "S", "W"], n),
            "kind": pd.Categorical(rng.choice(["a", "b"], n)),
            "children": pd.array(np.where(rng.random(n) < 0.1, None, rng.integers(0, 5, n)), dtype="Int64"),
            "member": rng.random(n) < 0.5,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "code": [f"{i:08x}" for i in range(n)],
            "y": rng.integers(0, 2, n),
        }
    )


def _folder(frame, folder, cuts=(100, 101)):
    folder.mkdir()
    for i, rows in enumerate(np.split(np.arange(len(frame)), cuts)):
        frame.iloc[rows].to_parquet(folder / f"{i}.parquet", index=i == 0)
    return folder


def test_a_folder_is_understood_as_the_frame_is(frame, tmp_path):
    held = understand(frame, "y")
    indexed = frame.set_index(pd.Index(7 * np.arange(300) % 299, name="number"))
    indexed.to_parquet(tmp_path / "one.parquet")
    blocks = [frame[:40], frame[40:40], frame[40:]]
    for source in (_folder(frame, tmp_path / "many"), tmp_path / "one.parquet", blocks, iter(blocks)):
        found = understand(source, "y")
        assert found.columns == held.columns
        pd.testing.assert_frame_equal(found.frame, held.frame)
        pd.testing.assert_series_equal(found.target, held.target, check_names=False)
    assert understand(tmp_path / "one.parquet", "y").notes == ("the index 'number' was left out",)


def test_statistics_of_a_folder_and_of_blocks_are_those_of_the_frame(frame, tmp_path):
    asked = ["mean(income) by region", "count() by kind", "histogram(children, edges=0:2:5)"]

    def release(data):
        with insecure_noise(np.random.default_rng(3)):
            return dn.release_statistics(data, asked, advantage=0.4, ranges={"income": (0, 2e5)})

    held = release(frame)
    dataframe = pytest.importorskip("dask.dataframe")
    for source in (
        _folder(frame, tmp_path / "many"), [frame[:40], frame[40:]], dataframe.from_pandas(frame, npartitions=3)
    ):  # fmt: skip
        pd.testing.assert_frame_equal(release(source).to_frame(), held.to_frame())


def test_types_that_change_between_files(frame, tmp_path):
    folder = _folder(frame, tmp_path / "many")
    frame[101:].assign(children=1.5).to_parquet(folder / "2.parquet", index=False)  # numbers all the same
    found = understand(folder).frame["children"]
    assert found.iloc[299] == 1.5
    assert found.isna().sum() == frame["children"][:101].isna().sum()
    frame[101:].assign(joined="2020-01-01", member=7).to_parquet(folder / "2.parquet", index=False)
    for name, last in (("joined", "2020-01-01"), ("member", "7")):
        found = read_cells(on_disk(folder)[name]).spelled.tolist()
        assert found == [*read_cells(frame[name][:101]).spelled, *[last] * 199]


@pytest.mark.parametrize(
    ("columns", "cell"),
    [
        ([pa.array([Decimal("1234567.89")], pa.decimal128(20, 2)), pa.array([1.5])], "1234567.89"),  # Arrow's cast errs
        ([pa.array([1], pa.timestamp("ns")), pa.array(["a"])], 1.1574074074074074e-14),
        ([pa.array([10**17 + 1]), pa.array([None, 1.5])], "100000000000000001"),
        ([pa.array([2**64 - 1], pa.uint64()), pa.array([-1])], "18446744073709551615"),
        ([pa.array(["a"]).dictionary_encode(), pa.array([None, None])], "a"),
        ([pa.array([dt.date(2021, 4, 19)]), pa.array([1], pa.timestamp("ms", "Europe/Oslo"))], "2021-04-19"),
    ],
)
def test_a_file_of_another_type_changes_no_cell(columns, cell, tmp_path):
    for i, column in enumerate(columns):
        pq.write_table(pa.table({"x": column}), tmp_path / f"{i}.parquet")
    together, alone = on_disk(tmp_path)["x"], [on_disk(tmp_path / f"{i}.parquet")["x"] for i in range(2)]
    found, (one, other) = read_cells(together), map(read_cells, alone)
    assert found.number.tolist()[:1] == one.number.tolist() or np.isnan(one.number[0])
    assert found.spelled.tolist() == [*one.spelled, *other.spelled]
    assert person(together.iloc[0]) == person(alone[0].iloc[0])
    assert cell in (found.number[0], person(together.iloc[0]))


def test_one_large_block_is_several_tasks_and_a_message_still_names_its_row(frame, monkeypatch):
    """A block was one task, read whole by one worker."""
    monkeypatch.setattr(columnar, "BATCH", 64)
    numbers = frame[["income", "y"]]
    source = as_source([numbers[:250], numbers[250:]], "y")
    assert [len(block.y) for task in source.tasks for block in task.blocks()] == [64, 64, 64, 108]
    at = [block.place_of(0) for task in source.tasks for block in task.blocks()]
    assert at == ["block 0 row 0", "block 0 row 64", "block 0 row 128", "block 0 row 192"]
    (block,) = source.tasks[-1].blocks()
    assert (block.place_of(57), block.place_of(58)) == ("block 0 row 249", "block 1 row 0")
    found = np.concatenate([block.columns[0].number for task in source.tasks for block in task.blocks()])
    np.testing.assert_array_equal(found, frame["income"])


def test_a_footer_is_read_once_and_a_column_three_times_at_most_by_a_draft(frame, tmp_path, monkeypatch):
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=100)
    read, opened = columnar.read_part, pq.ParquetFile
    seen, footers = [], []
    monkeypatch.setattr(columnar, "read_part", lambda part, name: seen.append(name) or read(part, name))
    monkeypatch.setattr(pq, "ParquetFile", lambda *given, **how: footers.append(given) or opened(*given, **how))
    source = as_source(tmp_path / "a.parquet", "y")
    assert (len(source.tasks), len(footers)) == (1, 1)
    draft_schema(tmp_path / "a.parquet")
    assert max(seen.count(name) for name in frame) <= 3


@pytest.mark.parametrize(
    "cut",
    [
        lambda y: y,
        lambda y: y.astype("Int64"),
        lambda y: y.map({0: "no", 1: "yes"}),
        lambda y: y.map({0: "no", 1: "yes"}).astype("category"),
        lambda y: y.to_numpy(),
        pd.Index,
        lambda y: pytest.importorskip("polars").Series(y.to_numpy()),
    ],
    ids=["whole", "Int64", "texts", "category", "array", "index", "polars"],
)
def test_the_labels_of_a_block_are_a_column_of_any_library(cut):
    """A series of pandas ended in "'Int64DType' object is not iterable", one of Polars in words about tables."""
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"]), pd.Series(rng.integers(0, 2, 40), name="t")
    X.index = y.index = range(7, 47)
    labels = cut(y)
    read = on_disk([(X[:25], labels[:25]), (X[25:], labels[25:])])
    assert read.names == ("a", "b", columnar.PAIR_TARGET)
    assert read.column(2).tolist() == list(labels)
    with pytest.raises(dn.InputError, match=r"block 0 must be \(X, y\) with one row of X per label"):
        on_disk([(X, y.to_frame())])


def test_one_column_is_no_table():
    for column in (pd.Series([1.0, 2.0], name="a"), pd.Series(["x"], name="a")):
        with pytest.raises(dn.InputError):
            dn.release_statistics(column, "mean(a)", advantage=0.5)
