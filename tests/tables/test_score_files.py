"""Scores of other tools: layouts, names, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.audit import read_scores
from deniable.cli._app import run
from deniable.tables import TableWarning
from deniable.tables.score_files import each_pair

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


def written(path, content):
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "content",
    [
        "Score;Member\n0,9;ja\n0,1;nein\n0,8;ja\n0,3;nein\n",
        "score\tmembership\n0.9\ttrain\n0.1\ttest\n0.8\ttrain\n0.3\ttest\n",
        "llr,true_labels\n0.9,1\n0.1,2\n0.8,1\n0.3,2\n",
        "mia_score,in\n0.9,YES\n0.1,No\n0.8,yes\n0.3,no\n",
        "in,out\n0.9,0.1\n0.8,0.3\n",
        "train;test\n0,9;0,1\n0,8;0,3\n",
    ],
)
def test_texts_as_people_write_them(tmp_path, content):
    path = written(tmp_path / "scores.txt", content)
    if ";" in content:  # the header alone says that there are two readings
        with pytest.raises(dn.InputError, match="say --decimal"):
            read_scores(path)
    inside, outside = read_scores(path, decimal="," if ";" in content else "")
    assert (inside.tolist(), outside.tolist()) == ([0.9, 0.8], [0.1, 0.3])


def test_a_label_may_be_a_target_and_is_membership_only_where_no_other_column_is(tmp_path, capsys):
    path = written(tmp_path / "scores.csv", "score,label,is_member\n0.9,0,1\n0.1,1,0\n0.8,1,1\n0.3,0,0\n")
    assert read_scores(path)[0].tolist() == [0.9, 0.8]
    path = written(tmp_path / "scores.csv", "score,label\n0.9,1\n0.1,0\n0.8,1\n0.3,0\n")
    with pytest.warns(TableWarning, match="'label' is taken for who is a member; if it is a target"):
        assert read_scores(path)[0].tolist() == [0.9, 0.8]
    assert read_scores(path, member="label")[0].tolist() == [0.9, 0.8]
    run(["audit", str(path)])
    assert "'label' is taken for who is a member" in " ".join(capsys.readouterr().err.split())


def test_a_comma_that_may_be_either_mark_is_declared(tmp_path):
    """Next to 0,5 the comma of 1,234 was the decimal mark: a cell was read by what others hold."""
    path = written(tmp_path / "scores.csv", 'score,member\n"1,234",1\n"0,5",0\n')
    with pytest.raises(dn.InputError, match=r"'score' has numbers with a comma .* say --decimal , or \."):
        read_scores(path)
    assert read_scores(path, decimal=",")[0].tolist() == [1.234]
    with pytest.raises(dn.InputError, match="must hold numbers, row 2 has a word"):
        read_scores(path, decimal=".")


def test_json_and_npy(tmp_path):
    columns = {"signal_values": SCORES, "true_labels": MEMBER, "roc_auc": 1.0}  # as LeakPro has them
    nested = {"LiRA_1": {"attack_experiment_logger": {"instance_0": {"individual": {"member_prob": SCORES,
              "member": MEMBER}, "AUC": 1.0}}}}  # as SACRO-ML has them  # fmt: skip
    records = [{"score": s, "member": bool(m)} for s, m in zip(SCORES, MEMBER, strict=True)]
    report = {"membership": {"auc": 1.0, "roc": [{"threshold": 1.4, "tpr": 0.9, "fpr": 0.0}]}, "per_canary": [
        {"id": f"c-{i}", "included": bool(m), "repetitions": 16, "scores": {"masked_nll": 0.1, "headline_score": s}}
        for i, (s, m) in enumerate(zip(SCORES, MEMBER, strict=True))]}  # as memaudit has them  # fmt: skip
    for content in (columns, nested, records, report, {"members": [0.9, 0.8], "nonmembers": [0.1, 0.3]}):
        inside, outside = read_scores(written(tmp_path / "scores.json", json.dumps(content)))
        assert (inside.tolist(), outside.tolist()) == ([0.9, 0.8], [0.1, 0.3])
    named = np.rec.fromarrays([SCORES, MEMBER], names="score,member")
    np.save(tmp_path / "scores.npy", named)
    assert read_scores(tmp_path / "scores.npy")[0].tolist() == [0.9, 0.8]
    np.save(tmp_path / "scores.npy", np.column_stack([SCORES, MEMBER]))
    with pytest.raises(dn.InputError, match="does not say who is a member"):  # without names nothing is guessed
        read_scores(tmp_path / "scores.npy")
    np.savez(tmp_path / "p.npz", scores=SCORES, memberships=MEMBER, fpr=[0.0, 1.0], tpr=[0.0, 1.0], auc=1.0)
    assert read_scores(tmp_path / "p.npz")[1].tolist() == [0.1, 0.3]  # Privacy Meter
    np.savez(tmp_path / "s.npz", **{"individual.member_prob": SCORES, "individual.member": MEMBER})
    assert read_scores(tmp_path / "s.npz")[1].tolist() == [0.1, 0.3]


def test_infinite_scores_stay_so(tmp_path):
    inside, outside = read_scores(written(tmp_path / "a.csv", "score,member\ninf,1\n-Infinity,0\n0.5,1\n"))
    assert (inside.tolist(), outside.tolist()) == ([np.inf, 0.5], [-np.inf])


def test_arrays_of_several_views_are_refused(tmp_path):
    """Flattened, null scores of 8 views each were "violated at 95 %" in 10 of 10 files."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", member=rng.normal(size=(100, 8)), nonmember=rng.normal(size=(100, 8)))
    np.savez(tmp_path / "b.npz", scores=rng.normal(size=(4, 100)), memberships=rng.random((4, 100)) < 0.5)
    for name in "ab":
        with pytest.raises(dn.InputError, match=r"shape \((100, 8|4, 100)\), and an audit needs one score a record"):
            read_scores(tmp_path / f"{name}.npz")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "score,member\n0.1,1\n0.2,0,7\n", "line 3 has another number of cells"),
        ("a.csv", "score,member\n0.1,1\nhigh,0\n", "row 2 has a word"),
        ("a.csv", "score,member\n0.1,1\n0.2,\n", "row 2 does not"),
        ("a.csv", "score,member\n0.1,0\n0.2,1\n0.3,2\n", "must say member or not .* row 3 does not"),
        ("a.json", '{"tpr": [0, 1], "fpr": [0, 1]}', "no score column"),
        ("a.pkl", "", "must end in"),
        ("a.bin", "", "must end in"),
    ],
)
def test_the_error_names_the_row_or_what_to_export(tmp_path, name, content, message):
    with pytest.raises(dn.InputError, match=message):
        read_scores(written(tmp_path / name, content))


def test_pairs_of_a_stream_are_next_to_each_other():
    lines = ["score,member", "1,1", "2,0", "3,0", "4,0", "5,1", "6,1"]
    assert list(each_pair(lines)) == [(1.0, 2.0), (5.0, 4.0)]
    with pytest.raises(dn.InputError, match="no member column"):
        list(each_pair(["score", "1"]))
    with pytest.raises(dn.InputError, match="line 2: 'score' must be a number"):
        list(each_pair(["score,member", ",1"]))


@pytest.mark.parametrize("content", ["LLR ;Y\n0,5;in\n1,234;out\n", 'llr,y\n"0,5",in\n"1,234",out\n'])
def test_a_stream_is_read_as_a_file_is(tmp_path, content):
    """Options were dropped: a stream knew neither other columns nor a decimal mark, and 0,5;1 was one cell."""
    asked = {"score": "llr", "member": "y", "decimal": ","}
    (pair,) = each_pair(content.splitlines(), **asked)
    inside, outside = read_scores(written(tmp_path / "scores.csv", content), **asked)
    assert pair == (inside[0], outside[0]) == (0.5, 1.234)
    with pytest.raises(dn.InputError, match="say --decimal"):
        list(each_pair(content.splitlines(), score="llr", member="y"))
    with pytest.raises(dn.InputError, match="line 3: it has another number of cells than the first line, 2"):
        list(each_pair(["score,member", "0.5,1", "0,5,0"]))


def test_membership_is_no_score_of_itself(tmp_path):
    """It was the perfect attack: whatever was promised was violated."""
    path = written(tmp_path / "scores.csv", "score,member\n0.5,1\n0.2,0\n")
    for asked in ({"score": "member"}, {"member": "score"}):
        for read in (
            lambda asked: read_scores(path, **asked),
            lambda asked: [*each_pair(path.read_text().splitlines(), **asked)],
        ):
            with pytest.raises(dn.InputError, match="score and member must be two columns"):
                read(asked)


@pytest.mark.parametrize("name", ["s.npz", "s.npy", "s.json", "s.csv", "s.parquet"])
def test_a_sheet_of_what_has_none_is_refused(tmp_path, name):
    """It was ignored where the file was no text."""
    frame = pd.DataFrame({"score": [0.1, 0.9], "member": [0, 1]})
    frame.to_parquet(tmp_path / "s.parquet")
    frame.to_csv(tmp_path / "s.csv")
    (tmp_path / "s.json").write_text(frame.to_json(orient="records"))
    np.savez(tmp_path / "s.npz", **{column: frame[column].to_numpy() for column in frame})
    np.save(tmp_path / "s.npy", frame.to_records(index=False))
    with pytest.raises(dn.InputError, match="it has no sheets, of which 'two' could be one"):
        read_scores(tmp_path / name, sheet="two")
    assert read_scores(tmp_path / name)[0].tolist() == [0.9]


def test_files_of_numpy_without_numbers_are_refused_without_its_advice(tmp_path):
    """NumPy says how to load a pickle "unsafely"; whoever does so runs what the file says."""
    np.save(tmp_path / "objects.npy", np.array([{"score": 1.0}, 2.0], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", scores=np.array([{"score": 1.0}], dtype=object), member=[1])
    (tmp_path / "junk.npy").write_bytes(b"no array")
    (tmp_path / "junk.npz").write_bytes(b"PK no archive")
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', ")
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(
            dn.InputError, match=rf"{path.name}' is incomplete, or holds no arrays of numbers"
        ) as refused:
            read_scores(path)
        assert "pickle" not in str(refused.value)


def test_a_folder_of_parquet_files_is_read(tmp_path):
    frame = pd.DataFrame({"score": [0.1, 0.9, 0.4], "member": [0, 1, 0]})
    for i in range(2):
        frame.to_parquet(tmp_path / f"{i}.parquet")
    inside, outside = read_scores(tmp_path)
    assert (inside.tolist(), outside.tolist()) == ([0.9] * 2, [0.1, 0.4] * 2)
