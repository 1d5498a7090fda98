"""``deniable audit --members``: a table that copies its data, from files."""

import json

import numpy as np
import pandas as pd

from deniable.cli._app import run


def test_a_copy_is_found(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=300), "b": rng.choice(["x", "y"], 300), "note": "-"})
    for name, part in (("members", table[:100]), ("nonmembers", table[100:200]), ("reference", table[200:])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    table[:100].drop(columns="note").to_csv(tmp_path / "synthetic.csv", index=False)
    words = ["--members", str(tmp_path / "members.csv"), "--nonmembers", str(tmp_path / "nonmembers.csv")]
    assert run(["audit", str(tmp_path / "synthetic.csv"), *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    advantage = next(n for n in found["sections"][0]["numbers"] if n["key"] == "attack.advantage")
    assert advantage["low"] > 0.8
    words += ["--reference", str(tmp_path / "reference.csv"), "--method", "density", "--seed", "0"]
    assert run(["audit", str(tmp_path / "synthetic.csv"), *words, "--owner-report", str(tmp_path / "a.html")]) == 0
    assert "Density in a released table" in capsys.readouterr().out
    assert run(["audit", str(tmp_path / "members.csv"), "--members", str(tmp_path / "synthetic.csv"), *words[2:]]) == 2
    assert "missing: note" in capsys.readouterr().err


def test_reversed_scores_are_refused_and_warned_of(tmp_path, capsys):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"score": np.r_[rng.normal(1, 1, 300), rng.normal(0, 1, 300)], "member": [0] * 300 + [1] * 300}
    )
    table.to_csv(tmp_path / "loss.csv", index=False)
    assert run(["audit", str(tmp_path / "loss.csv")]) == 2
    assert "members score lower" in capsys.readouterr().err
    assert run(["audit", str(tmp_path / "loss.csv"), "--reverse", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Attack scores: loss.csv"
    table["member"] = 1 - table["member"]
    table.to_csv(tmp_path / "score.csv", index=False)
    assert run(["audit", str(tmp_path / "score.csv"), "--reverse", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert "is the direction right?" in found["warnings"][0]
    assert "is the direction right?" in found["alert"]
