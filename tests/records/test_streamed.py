"""Profiles of rows read in blocks: the numbers of arrays, however they are cut; bad files told with file and row."""

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable import InputError
from deniable.records import neighbours
from oracles.scripts import loaded

OPTIONS = {"regularization": 1e-2, "mechanism": dn.OutputPerturbation(epsilon=1.0), "rng": 0}


def _table(n=700, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X /= 1.001 * np.linalg.norm(X, axis=1).max()
    y = np.where(X @ [3.0, -2.0, 1.0, 0.0] + 0.2 * rng.logistic(size=n) > 0, "yes", "no")
    return pd.DataFrame(X, columns=list("abcd")).assign(y=y)


@pytest.fixture(scope="module")
def table():
    return _table()


@pytest.fixture(scope="module")
def held(table):
    return dn.privacy_profile(table[list("abcd")].to_numpy(), table["y"].to_numpy(), **OPTIONS)


def _same(found, held):
    tight = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(found.optimum, held.optimum, **tight)
    np.testing.assert_allclose(found.distance, held.distance, **tight)
    np.testing.assert_allclose(found.privacy_loss(), held.privacy_loss(), **tight)
    np.testing.assert_allclose(found.advantage(), held.advantage(), **tight)
    np.testing.assert_allclose(found.tpr(0.01), held.tpr(0.01), **tight)
    np.testing.assert_allclose(found.leave_one_out([3, 650]), held.leave_one_out([3, 650]), **tight)
    assert np.all(found.radius() <= 2 * held.radius() + 1e-12)


def _write(table, folder, cuts, **options):
    folder.mkdir(exist_ok=True)
    for i, part in enumerate(np.split(np.arange(len(table)), cuts)):
        table.iloc[part].to_parquet(folder / f"part-{i}.parquet", index=False, **options)
    return folder


@pytest.mark.parametrize("cuts", [[], [1, 300], [0, 350, 350, 699]])
def test_parquet_gives_the_numbers_of_arrays_however_it_is_cut(table, held, tmp_path, cuts):
    _same(dn.privacy_profile(_write(table, tmp_path / "data", cuts), target="y", **OPTIONS), held)


def test_row_groups_of_one_file(table, held, tmp_path, monkeypatch):
    monkeypatch.setattr("deniable.tables.blocks._TASK", 100)
    path = tmp_path / "data.parquet"
    table.to_parquet(path, index=False, row_group_size=64)
    _same(dn.privacy_profile(path, target="y", **OPTIONS), held)


def test_blocks_of_every_kind(table, held):
    pairs = [(part[list("abcd")].to_numpy(), part["y"].to_numpy()) for part in (table[:200], table[200:])]
    _same(dn.privacy_profile(pairs, **OPTIONS), held)
    _same(dn.privacy_profile(iter(pairs), **OPTIONS), held)
    _same(dn.privacy_profile(lambda: iter([table[:500], table[500:]]), target="y", **OPTIONS), held)


def test_a_dask_frame(table, held):
    dataframe = pytest.importorskip("dask.dataframe")
    _same(dn.privacy_profile(dataframe.from_pandas(table, npartitions=3), target="y", **OPTIONS), held)


@pytest.mark.parametrize("loss", ["squared", "poisson", "softmax", "huber"])
def test_other_losses_and_an_intercept(loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)) / 4
    y = rng.integers(0, 3, 300)
    options = {
        "regularization": 1e-2, "mechanism": dn.OutputPerturbation(scale=0.1), "loss": loss,
        "intercept": "regularized", "normalization": "sum", "rng": 0,
    }  # fmt: skip
    held = dn.privacy_profile(X, y, **options)
    found = dn.privacy_profile([(X[:120], y[:120]), (X[120:], y[120:])], **options)
    np.testing.assert_allclose(found.distance, held.distance, rtol=1e-9)
    np.testing.assert_allclose(found.privacy_loss(), held.privacy_loss(), rtol=1e-8, atol=1e-10)


def test_wide_certificates_are_iterated(table, held):
    pairs = [(part[list("abcd")].to_numpy(), part["y"].to_numpy()) for part in (table[:200], table[200:])]
    rough = dn.privacy_profile(pairs, **OPTIONS, tolerance=1.0)
    assert rough.iterations == 0
    fine = dn.privacy_profile(pairs, **OPTIONS, tolerance=1e-9)
    assert fine.iterations > 0
    assert np.all(fine.radius() <= 1e-9 * fine.distance)
    assert np.all(
        np.linalg.norm(rough.leave_one_out() - fine.leave_one_out(), axis=1) <= rough.radius() + fine.radius()
    )


def test_of_too_many_wide_certificates_some_everywhere_are_iterated(table, monkeypatch):
    """The first rows were iterated, and the last never."""
    monkeypatch.setattr(neighbours, "_MOST_ITERATED", 100)
    pairs = [(table[list("abcd")].to_numpy(), table["y"].to_numpy())]
    fine = dn.privacy_profile(pairs, **OPTIONS, tolerance=1e-9)
    at = np.flatnonzero(fine.radius() <= 1e-9 * fine.distance)
    assert len(at) == 100
    np.testing.assert_array_equal(at, np.arange(100) * len(table) // 100)


def test_texts_become_columns_wherever_their_values_first_appear(table, tmp_path):
    colour = np.where(np.arange(len(table)) < 500, "red", np.where(table["a"] > 0, "blue", "green"))
    frame = table[["a", "b"]].assign(colour=colour, y=table["y"])
    hot = np.column_stack([frame[["a", "b"]], *(frame["colour"] == c for c in ("blue", "green", "red"))])
    options = OPTIONS | {"mechanism": dn.OutputPerturbation(epsilon=1.0, row_bound=2.0)}
    held = dn.privacy_profile(hot, table["y"].to_numpy(), **options)
    found = dn.privacy_profile(_write(frame, tmp_path / "data", [400]), target="y", **options)
    np.testing.assert_allclose(found.distance, held.distance, rtol=1e-9)


def test_bad_rows_are_told_with_file_and_row(table, tmp_path):
    broken = table.copy()
    broken.loc[450, "c"] = np.nan
    folder = _write(broken, tmp_path / "gap", [400])
    with pytest.raises(InputError, match=r"column 'c' must be finite, .*part-1\.parquet row 50 has nan"):
        dn.privacy_profile(folder, target="y", **OPTIONS)
    broken = table.copy()
    broken.loc[430, "y"] = None
    with pytest.raises(InputError, match=r"the target.* no gaps, .*part-1\.parquet row 30"):
        dn.privacy_profile(_write(broken, tmp_path / "target", [400]), target="y", **OPTIONS)
    long = table.copy()
    long.loc[699, "a"] = 5.0
    with pytest.raises(InputError, match=r"norm at most 1 .*part-1\.parquet row 299 has 5"):
        dn.privacy_profile(_write(long, tmp_path / "long", [400]), target="y", **OPTIONS)


def test_the_kernel_on_batches_of_arrow_as_spark_gives_them(table, held):
    """``benchmarks/scale/spark.py``, with a stand-in for Spark's data frame."""
    from types import SimpleNamespace

    import pyarrow as pa

    from deniable.records.encoder import read_problem
    from deniable.records.losses import as_loss
    from deniable.tables import as_source

    module = loaded("benchmarks/scale/spark.py")

    class Frame:
        def mapInArrow(self, kernel, schema):
            assert schema == "sums binary"
            parts = ([table[:300], table[300:350]], [table[350:]])  # two partitions
            batches = [[pa.RecordBatch.from_pandas(one, preserve_index=False) for one in part] for part in parts]
            rows = [row for part in batches for batch in kernel(iter(part)) for row in batch.to_pylist()]
            return SimpleNamespace(collect=lambda: [SimpleNamespace(**row) for row in rows])

    problem = read_problem(as_source([table], "y"), as_loss("logistic"), 1e-2, "none", "mean", None)
    np.testing.assert_allclose(module.on_spark(Frame(), problem), held.optimum, rtol=1e-9, atol=1e-12)
