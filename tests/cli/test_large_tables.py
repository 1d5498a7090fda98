"""Parquet folders that are not what they should be, on the command line: told with file and row, nothing is written."""

import json

import numpy as np
import pandas as pd
import pytest

import deniable.cli  # noqa: F401  (registers the commands)
from deniable.cli._app import run

pytest.importorskip("pyarrow")


def _parts(count=3, n=60):
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(rng.normal(size=(n, 2)) / 10, columns=["a", "b"]) for _ in range(count)]
    return [frame.assign(y=rng.integers(0, 2, n)) for frame in frames]


def _written(folder, parts):
    folder.mkdir()
    for i, part in enumerate(parts):
        part.to_parquet(folder / f"{i}.parquet", index=False)
    return folder


def _renamed(parts):
    parts[2] = parts[2].rename(columns={"b": "c"})


def _gap_in_target(parts):
    parts[1].loc[7, "y"] = np.nan


PROFILE = ["profile", "{data}", "--target", "y", "--epsilon", "1", "--in-blocks", "--out", "{out}/each.parquet"]
TRAIN = ["train", "{data}", "--target", "y", "--advantage", "0.3", "--out", "{out}/model.skops"]
MISSING = r"2.parquet must have the columns of .*0.parquet: column 'b' is missing"
BAD = [(PROFILE, _renamed, MISSING), (TRAIN, _renamed, MISSING), (PROFILE, _gap_in_target, r"1.parquet row 7")]


def _run(command, data, out):
    return run([word.format(data=data, out=out) for word in command])


@pytest.mark.parametrize(("command", "spoil", "words"), BAD)
def test_bad_files_are_told_and_nothing_is_written(command, spoil, words, tmp_path, capsys):
    import re

    parts, out = _parts(), tmp_path / "out"
    spoil(parts)
    out.mkdir()
    assert _run(command, _written(tmp_path / "data", parts), out) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(words, said), said
    assert not [path for path in out.rglob("*") if path.is_file()]


def test_a_gap_in_row_group_7000_and_changed_bytes_are_told(tmp_path, capsys):
    frame = pd.concat(_parts(3, 7010), ignore_index=True)
    frame.loc[3 * 7000 + 1, "b"] = np.inf
    frame.to_parquet(tmp_path / "gap.parquet", index=False, row_group_size=3)
    (tmp_path / "out").mkdir()
    assert _run(PROFILE, tmp_path / "gap.parquet", tmp_path / "out") == 2
    assert "gap.parquet row 21001 has inf" in " ".join(capsys.readouterr().err.split())
    path = tmp_path / "bytes.parquet"
    frame[:1000].to_parquet(path, index=False, write_page_checksum=True, compression="none", use_dictionary=False)
    content = path.read_bytes()
    path.write_bytes(content[:4000] + bytes(40) + content[4040:])
    for command in (PROFILE, TRAIN):
        assert _run(command, path, tmp_path / "out") == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "bytes.parquet could not be read" in said, said
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_empty_files_and_texts_that_appear_late_change_nothing(tmp_path, capsys):
    parts = [part.assign(k=values) for part, values in zip(_parts(), ("u", "v", "w"), strict=True)]
    whole = _written(tmp_path / "whole", [pd.concat(parts)])
    cut = _written(tmp_path / "cut", [parts[0], parts[0][:0], *parts[1:]])
    said = []
    for data in (whole, cut):
        assert _run([*PROFILE[:-2], "--row-bound", "2", "--seed", "0", "--json"], data, tmp_path) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0]["records"] == said[1]["records"] == 180
    assert said[0]["largest_advantage"] == pytest.approx(said[1]["largest_advantage"], rel=1e-9)
    assert [r["record"] for r in said[0]["most_exposed"]] == [r["record"] for r in said[1]["most_exposed"]]
