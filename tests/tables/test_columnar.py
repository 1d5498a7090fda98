"""Tables read column by column: what one data frame of the same rows gives."""

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable import InputError
from deniable.tables import read_cells, understand
from deniable.tables.columnar import ColumnsOnDisk, on_disk
from deniable.testing import insecure_noise


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


def test_only_what_is_asked_for_is_read(frame, tmp_path, monkeypatch):
    read, column = [], ColumnsOnDisk.column
    monkeypatch.setattr(ColumnsOnDisk, "column", lambda self, i: read.append(self.names[i]) or column(self, i))
    dn.release_statistics(_folder(frame, tmp_path / "many"), "mean(income) by region", advantage=0.4)
    assert read == ["income", "region"]


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


def test_bad_cells_are_told_with_block_and_row(frame):
    frame = frame.drop(columns="code").assign(y=frame["y"].astype(float))
    blocks = lambda bad: iter([frame[:100], bad, frame[200:]])  # noqa: E731
    gap = frame[100:200].assign(y=np.where(np.arange(100) == 3, np.nan, frame["y"][100:200]))
    with pytest.raises(InputError, match="target 'y' has 1 missing cell, first in block 1 row 3"):
        understand(blocks(gap), "y")
    with pytest.raises(InputError, match="it returned int"):
        understand(lambda: 3, "y")


def test_thousands_of_small_blocks_become_few_files(frame):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=800), "b": pd.Categorical(rng.choice(["u", "v", "w"], 800))})
    parts = [frame[i : i + 1] for i in range(800)]
    parts[1::2] = [part.assign(b=part["b"].astype(str).astype("category")) for part in parts[1::2]]
    table = on_disk(parts)
    assert (len(table.paths), len(table.rows)) == (1, 800)
    assert table.place_of(700) == "block 700 row 0"
    pd.testing.assert_series_equal(table["a"], frame["a"])
    assert table["b"].astype(str).tolist() == frame["b"].astype(str).tolist()
    changing = on_disk([frame[["a"]], frame[["a"]].assign(a=1), frame[["a"]]])
    assert len(changing.paths) == 3


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
