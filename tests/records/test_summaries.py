"""Summaries of many records: those of the arrays themselves; files that are whole or not there."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable import InputError


@pytest.fixture(scope="module")
def profile():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(101, 3)) / 10
    return dn.privacy_profile(X, rng.integers(0, 2, 101), regularization=0.1, rng=0)


def test_every_record_in_a_file(profile, tmp_path):
    place = tmp_path / "each.parquet"
    profile.to_parquet(place, fpr=0.01)
    found = pd.read_parquet(place)
    frame = profile.to_frame(0.01).sort_values("record", ignore_index=True)
    pd.testing.assert_frame_equal(found, frame[found.columns])
    with pytest.raises(InputError, match=r"must end in \.parquet"):
        profile.to_parquet(tmp_path / "each.csv")
    before = place.read_bytes()
    with pytest.raises(ValueError, match="expected length 101 but got length 50"):
        replace(profile, radii=profile.radii[:50]).to_parquet(place)
    assert place.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["each.parquet"]


def test_profile_in_blocks_from_the_command_line(tmp_path, capsys):
    from deniable.cli._app import run

    rng = np.random.default_rng(1)
    folder, place = tmp_path / "data", tmp_path / "each.parquet"
    folder.mkdir()
    for i in range(2):
        frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"]).assign(y=rng.integers(0, 2, 80))
        frame.to_parquet(folder / f"{i}.parquet", index=False)
    line = ["profile", str(folder), "--target", "y", "--epsilon", "1", "--in-blocks", "--seed", "0"]
    assert run(line) == 2
    assert "norm at most 1" in capsys.readouterr().err
    work = ["--row-bound", "9", "--out", str(place)]
    assert run([*line, *work]) == 0
    assert "160 records" in capsys.readouterr().out
    assert len(pd.read_parquet(place)) == 160
    for extra, said in ((["--drop", "a"], "--drop does not go with --in-blocks"), (["--jobs", "0"], "--jobs must be")):
        assert run([*line, *extra]) == 2
        assert said in capsys.readouterr().err
    assert run(["profile", "breast-cancer", "--epsilon", "1", "--cluster", "tcp://a:1"]) == 2
    assert "--cluster goes with --in-blocks" in capsys.readouterr().err
