"""Rows in a mapped file: releases from files and blocks are those from memory."""

import gc
import os
import pickle
import sys
import tempfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable import InputError
from deniable.releases import Mean
from deniable.tables import as_source, on_disk
from deniable.tables.blocks import mapped_rows
from deniable.testing import insecure_noise

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(90, 3)), columns=["a", "b", "c"]).assign(d=np.arange(90) % 7)
PARTS = [FRAME[:1], FRAME[1:40], FRAME[40:40], FRAME[40:]]


def _released(algorithm, data, bound="auto"):
    with insecure_noise(np.random.default_rng(1)):
        made = dn.release(algorithm, data, advantage=0.4, bound=bound, rng=0)
    return made.value, made.noise_scale


@pytest.mark.parametrize("algorithm", [Mean(), Mean(bounds=(-3.0, 9.0))])
def test_files_dask_and_blocks_release_what_the_array_does(algorithm, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    for i, part in enumerate(PARTS):
        part.to_parquet(tmp_path / f"{i}.parquet", index=False)
    held = _released(algorithm, np.ascontiguousarray(FRAME.to_numpy()))
    for data in (tmp_path, iter(PARTS), lambda: iter(PARTS), dask.from_pandas(FRAME, npartitions=3, sort=False)):
        for found, expected in zip(_released(algorithm, data), held, strict=True):
            np.testing.assert_array_equal(found, expected)


def slope(part):
    return np.linalg.lstsq(*part)[0]


def test_pairs_become_a_pair():
    X, y = FRAME.to_numpy()[:, :3], FRAME["d"].to_numpy(dtype=float)
    blocks = ((X[rows], y[rows]) for rows in np.array_split(np.arange(90), 5))
    for found, expected in zip(*(_released(slope, data, "centre") for data in (blocks, (X, y))), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def spilled():
    """Files of ours that are open and have no name any more, and those in the temporary folder that have one."""
    gc.collect()
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    files = {link.stat().st_ino for link in links if os.readlink(link).endswith("(deleted)")}
    return len(files), set(Path(tempfile.gettempdir()).glob("deniable*"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a spilled file keeps its name while it is used")
def test_a_spilled_file_has_no_name_is_read_by_workers_and_goes_with_the_last_array_of_it():
    before, named = spilled()
    part = mapped_rows(iter(PARTS))[3:5]
    assert spilled() == (before + 1, named)
    sums = joblib.Parallel(n_jobs=2, max_nbytes=0)(joblib.delayed(np.sum)(row) for row in (part[0], part[1]))
    assert sums == FRAME.to_numpy()[3:5].sum(axis=1).tolist()
    del part
    assert spilled() == (before, named)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a spilled file keeps its name while it is used")
def test_spilled_blocks_have_no_name():
    before, named = spilled()
    source = as_source((part for part in PARTS if len(part)), "d")
    assert spilled() == (before + 1, named)
    read = [block.y.number for task in source.tasks for block in pickle.loads(pickle.dumps(task)).blocks()]
    np.testing.assert_array_equal(np.concatenate(read), FRAME["d"])
    table = on_disk(iter(PARTS))
    assert spilled() == (before + 2, named)
    np.testing.assert_array_equal(table["a"], FRAME["a"])
    del source, table, read
    assert spilled() == (before, named)


def test_rows_are_written_in_one_pass_whatever_the_types_of_the_files(tmp_path):
    """Integers, truth values and doubles in files of several row groups; gaps are told with their row."""
    table = FRAME.assign(a=FRAME["d"] > 3)
    table[:50].to_parquet(tmp_path / "0.parquet", index=False, row_group_size=7)
    table[50:].astype({"d": "int16", "b": "float32"}).to_parquet(tmp_path / "1.parquet", index=False)
    expected = table.astype(float).to_numpy()
    expected[50:, 1] = expected[50:, 1].astype(np.float32)
    np.testing.assert_array_equal(mapped_rows(tmp_path), expected)
    table.astype({"d": "Int64"}).assign(d=lambda t: t["d"].mask(t.index == 60)).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"column 'd' must be finite, .*1.parquet row 60 has nan"):
        mapped_rows(tmp_path)
