"""Parquet folders that are not what they should be, on the command line: told with file and row, nothing is written."""

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


PROFILE = ["profile", "{data}", "--target", "y", "--epsilon", "1", "--in-blocks", "--out", "{out}/each.parquet"]
TRAIN = ["train", "{data}", "--target", "y", "--advantage", "0.3", "--out", "{out}/model.skops"]


def _run(command, data, out):
    return run([word.format(data=data, out=out) for word in command])


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
