"""``deniable profile`` prints what the library says, and says that it is sensitive."""

import json

import pandas as pd

from deniable.cli._app import run


def test_json_and_table(capsys, tmp_path):
    table = tmp_path / "profile.csv"
    line = ["profile", "breast-cancer", "--epsilon", "1", "--regularization", "0.01", "--seed", "0"]
    assert run([*line, "--json", "--out", str(table)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["records"] == 569
    assert facts["largest_relative_error"] <= 1e-8
    assert facts["transition"]["epsilon_low"] < facts["transition"]["epsilon_high"]
    assert "never publish" in facts["warning"]
    exposed = [row["advantage"] for row in facts["most_exposed"]]
    assert exposed == sorted(exposed, reverse=True)  # no release was given: by typical ones
    assert exposed[0] == facts["largest_advantage"]
    assert len(pd.read_csv(table)) == 569
    assert run([*line, "--by", "mean radius", "--top", "3"]) == 0
    printed = capsys.readouterr().out.replace("\u00a0", " ")
    assert "never publish" in printed
    assert "TPR at FPR 0.1 %" in printed
    shown_largest = float(printed.split("largest advantage ")[1].split(" %")[0]) / 100
    assert facts["largest_advantage"] <= shown_largest <= facts["largest_advantage"] * 1.001
