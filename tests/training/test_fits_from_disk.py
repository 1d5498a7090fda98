"""Private models fitted to files and blocks: the model of the same rows in memory; bad rows told with their place."""

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable import InputError
from deniable.testing import insecure_noise
from deniable.training import fitting

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr(fitting, "STEPS", 60)


def _table(n=900):
    rng = np.random.default_rng(0)
    age = rng.normal(45, 15, n)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.05, np.nan, age),
            "city": pd.Categorical(rng.choice(["Ulm", "Rome"], n)),
            "word": rng.choice(["a", "b", None], n),
            "smokes": rng.random(n) < 0.3,
            "joined": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), unit="D"),
            "visits": rng.integers(0, 9, n),
            "person": rng.integers(0, 300, n),
        }
    )
    return frame.assign(y=np.where(age / 10 + rng.logistic(size=n) > 4.5, "ill", "well"))


@pytest.fixture(scope="module")
def table():
    return _table()


def _write(table, folder, cuts=(400, 401, 700)):
    folder.mkdir(exist_ok=True)
    for i, rows in enumerate(np.split(np.arange(len(table)), cuts)):
        table.iloc[rows].to_parquet(folder / f"{i}.parquet", index=False, row_group_size=128)
    return folder


def _fitted(*data, kind=dn.PrivateClassifier, target=None, **options):
    model = kind(advantage=0.3, **options)
    with insecure_noise(np.random.default_rng(1)):
        return model.fit(*data) if target is None else model.fit(*data, target=target)


def _same(found, held, rows):
    np.testing.assert_array_equal(found.model_.coefficients, held.model_.coefficients)
    np.testing.assert_array_equal(found.record_tradeoffs_.mu, held.record_tradeoffs_.mu)
    assert found.columns_ == held.columns_
    assert str(found.certificate_) == str(held.certificate_)
    np.testing.assert_array_equal(found.predict(rows), held.predict(rows))


def _sources(table, folder):
    dataframe = pytest.importorskip("dask.dataframe")
    yield _write(table, folder)
    yield dataframe.from_pandas(table, npartitions=3)
    yield iter([table[:7], table[7:7], table[7:]])
    yield lambda: [table[:500], table[500:]]
    yield table


@pytest.mark.parametrize("options", [{}, {"group": "person", "records_per_person": 3, "model": "linear"}])
def test_a_model_from_disk_is_the_one_from_memory(table, tmp_path, options):
    X, y = table.drop(columns="y"), table["y"]
    held = _fitted(X, y, **options)
    for source in _sources(table, tmp_path / "data"):
        _same(_fitted(source, target="y", **options), held, X)


def test_pairs_of_arrays_and_a_regression():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] + rng.normal(size=500)
    held = _fitted(X, y, kind=dn.PrivateRegressor)
    _same(_fitted([(X[:99], y[:99]), (X[99:], y[99:])], kind=dn.PrivateRegressor), held, X)


def test_bad_rows_are_told_with_file_and_row(table, tmp_path):
    broken = table.copy()
    broken.loc[899, "y"] = None
    with pytest.raises(InputError, match=r"y must hold a class in every record, .*3\.parquet row 199 has nothing"):
        _fitted(_write(broken, tmp_path / "b"), target="y")
    with pytest.raises(InputError, match=r"partition 2 row 299"):
        _fitted(pytest.importorskip("dask.dataframe").from_pandas(broken, npartitions=3, sort=False), target="y")


def test_files_and_targets_that_are_none(table, tmp_path):
    folder = _write(table, tmp_path / "data")
    with pytest.raises(InputError, match="target 'z' is not a column; it has: 'age', 'city'"):
        _fitted(folder, target="z")
    with pytest.raises(InputError, match="target is missing; name a column, one of: 'age'"):
        _fitted(folder)
    with pytest.raises(InputError, match="give it or y, not both"):
        _fitted(table, table["y"], target="y")
    with pytest.raises(InputError, match="target 'z' is not a column; it has: 'age', 'city'"):
        _fitted(table, target="z")
    with pytest.raises(InputError, match="target 'y' is not a column; it has: '0', '1'"):
        _fitted(np.ones((5, 2)), target="y")
    whole = (folder / "3.parquet").read_bytes()
    (folder / "3.parquet").write_bytes(whole[:2000] + bytes(2000) + whole[4000:])  # the footer is whole, a page is not
    with pytest.raises(InputError, match=r"3\.parquet could not be read"):
        _fitted(folder, target="y")
    (folder / "3.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"3\.parquet could not be read.*complete"):
        _fitted(folder, target="y")
