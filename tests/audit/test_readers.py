"""Scores of other tools: layouts, names, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.audit import read_scores

SCORES, MEMBER = [0.9, 0.1, 0.8, 0.3], [1, 0, 1, 0]


@pytest.mark.parametrize("member", [MEMBER, [True, False, True, False], ["in", "out", "In", "OUT"], [1, -1, 1, -1]])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_tables(tmp_path, suffix, member):
    path = tmp_path / f"scores.{suffix}"
    frame = pd.DataFrame({"score": SCORES, "member": member})
    frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
    inside, outside = read_scores(path)
    assert inside.tolist() == [0.9, 0.8]
    assert outside.tolist() == [0.1, 0.3]


def test_named_columns_and_two_column_tables(tmp_path):
    path = tmp_path / "scores.csv"
    pd.DataFrame({"llr": SCORES, "y": MEMBER}).to_csv(path, index=False)
    assert read_scores(path, score="llr", member="y")[0].tolist() == [0.9, 0.8]
    pd.DataFrame({"member": [1.0, 2.0, np.nan], "nonmember": [0.0, 0.5, 0.7]}).to_csv(path, index=False)
    inside, outside = read_scores(path)
    assert (len(inside), len(outside)) == (2, 3)


def test_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", scores=np.array([SCORES]), membership=np.array([MEMBER]))
    assert read_scores(tmp_path / "a.npz")[1].tolist() == [0.1, 0.3]
    np.savez(tmp_path / "b.npz", member_scores=[1.0], nonmember_scores=[0.0, 0.5])
    assert read_scores(tmp_path / "b.npz")[1].tolist() == [0.0, 0.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("score,member\n0.1,1\n,0\n", "got nan"),
        ("score,member\n0.1,maybe\n", "must say member or not"),
        ("value,member\n0.1,1\n", "no score column"),
        ("score,which\n0.1,1\n", "no member column"),
        ("member,nonmember\n1,2\n,3\n4,5\n", "got nan"),
        ("member,nonmember\na,2\n", "must hold numbers"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, content, message):
    path = tmp_path / "scores.csv"
    path.write_text(content)
    with pytest.raises(dn.InputError, match=message):
        read_scores(path)
