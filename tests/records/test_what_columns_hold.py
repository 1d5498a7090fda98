"""Columns of frames, blocks, Dask and Parquet are the same numbers, days and texts; no cell is quoted."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dn

N = 120
RNG = np.random.default_rng(0)
A = RNG.uniform(-0.3, 0.3, N).round(3)
DAYS = [dt.date(1970, 1, 1 + i % 2) for i in range(N)]
WORDS = RNG.choice(["u", "v"], N)
Y = (A > 0).astype(int)
COLUMNS = {
    "numbers": (pd.Series(A), [A]),
    "decimals": (pd.Series([Decimal(str(a)) for a in A]), [A]),
    "whole numbers as objects": (pd.Series(Y[::-1].tolist(), dtype=object), [Y[::-1]]),
    "truth values": (pd.Series(Y[::-1] == 1), [Y[::-1]]),
    "timestamps": (pd.Series(pd.to_datetime(DAYS)), [[day.day - 1 for day in DAYS]]),
    "dates": (pd.Series(DAYS, dtype=object), [[day.day - 1 for day in DAYS]]),
    "texts": (pd.Series(WORDS), [WORDS == "u", WORDS == "v"]),
    "categories": (pd.Series(WORDS).astype("category"), [WORDS == "u", WORDS == "v"]),
}


def advantage(X, **options):
    mechanism = dn.OutputPerturbation(epsilon=1.0, row_bound=2.0)
    return dn.privacy_profile(X, regularization=0.01, mechanism=mechanism, rng=0, **options).advantage()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_holds_the_same_in_all_of_them(name, tmp_path):
    column, numbers = COLUMNS[name]
    frame = pd.DataFrame({"a": A, "x": column, "y": Y})
    expected = advantage(np.column_stack([A, *numbers]).astype(float), y=Y)
    frame.to_parquet(tmp_path / "t.parquet")
    frames = pytest.importorskip("dask.dataframe")
    with pytest.importorskip("dask").config.set(
        {"dataframe.convert-string": False}
    ):  # else Dask makes texts of objects
        parts = frames.from_pandas(frame, npartitions=2)
    for source in (frame, [frame[:50], frame[50:]], tmp_path / "t.parquet", parts):
        np.testing.assert_allclose(advantage(source, target="y"), expected, rtol=1e-9)
    if len(numbers) == 1:
        np.testing.assert_allclose(advantage(frame[["a", "x"]], y=Y), expected, rtol=1e-9)


def test_a_file_of_views_of_texts(tmp_path):
    parquet.write_table(
        pa.table({"a": A, "x": pa.array(WORDS.tolist(), pa.string_view()), "y": Y}), tmp_path / "t.parquet"
    )
    frame = pd.DataFrame({"a": A, "x": WORDS, "y": Y})
    np.testing.assert_allclose(advantage(tmp_path / "t.parquet", target="y"), advantage(frame, target="y"), rtol=1e-9)


def test_nested_columns_are_named_and_no_cell_is_quoted(tmp_path):
    frame = pd.DataFrame({"a": A, "x": [["Mueller 4711"]] * N, "y": Y})
    frame.to_parquet(tmp_path / "t.parquet")
    for source, options in ((frame, {"target": "y"}), (tmp_path / "t.parquet", {"target": "y"}), (frame, {})):
        with pytest.raises(dn.InputError, match=r"column 'x'|y must be given") as refused:
            advantage(source, **options)
        assert "Mueller" not in str(refused.value)
