"""Rows in a mapped file: releases from files and blocks are those from memory."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable import InputError
from deniable.noise import Covariance, Mean, Ridge
from deniable.tables.rows import mapped_rows

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(90, 3)), columns=["a", "b", "c"]).assign(d=np.arange(90) % 7)
PARTS = [FRAME[:1], FRAME[1:40], FRAME[40:40], FRAME[40:]]


def _released(algorithm, data):
    made = dn.release(algorithm, data, eta=0.2, rng=0, insecure_testing_rng=np.random.default_rng(1))
    return made.value, made.noise_scale


@pytest.mark.parametrize("algorithm", [Mean(), Mean(bounds=(-3.0, 9.0)), Covariance()])
def test_files_dask_and_blocks_release_what_the_array_does(algorithm, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    for i, part in enumerate(PARTS):
        part.to_parquet(tmp_path / f"{i}.parquet", index=False)
    held = _released(algorithm, np.ascontiguousarray(FRAME.to_numpy()))
    for data in (tmp_path, iter(PARTS), lambda: iter(PARTS), dask.from_pandas(FRAME, npartitions=3, sort=False)):
        for found, expected in zip(_released(algorithm, data), held, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_pairs_become_a_pair():
    X, y = FRAME.to_numpy()[:, :3], FRAME["d"].to_numpy(dtype=float)
    blocks = ((X[rows], y[rows]) for rows in np.array_split(np.arange(90), 5))
    for found, expected in zip(_released(Ridge(), blocks), _released(Ridge(), (X, y)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_file_goes_with_the_last_array_of_it():
    before = set(Path(tempfile.gettempdir()).glob("deniable-rows-*"))
    part = mapped_rows(iter(PARTS))[3:5]
    made = set(Path(tempfile.gettempdir()).glob("deniable-rows-*")) - before
    assert len(made) == 1
    np.testing.assert_array_equal(part, FRAME.to_numpy()[3:5])
    del part
    gc.collect()
    assert not any(path.exists() for path in made)


@pytest.mark.parametrize(
    ("cell", "words"),
    [(np.nan, "column 'a' must be finite, block 1 row 3 has nan"), ("x", "column 'a' of block 1 holds text")],
)
def test_bad_cells_are_told_with_block_and_row(cell, words):
    bad = FRAME[1:40].astype({"a": object if cell == "x" else float})
    bad.iloc[3 if cell != "x" else slice(None), 0] = cell
    with pytest.raises(InputError, match=words):
        dn.release(Mean(), iter([FRAME[:1], bad]), eta=0.2)
    with pytest.raises(InputError, match="column 'a' must hold numbers, block 0 row 0 has 'u'"):
        dn.release(Mean(), iter([FRAME.assign(a="u")]), eta=0.2)
