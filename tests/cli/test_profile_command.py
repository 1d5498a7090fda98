"""``deniable profile`` prints what the library says, and says that it is sensitive."""

import json

import pandas as pd

from deniable.cli._app import run


def test_json_and_table(capsys, tmp_path):
    table = tmp_path / "profile.csv"
    line = ["profile", "breast-cancer", "--epsilon", "1", "--regularization", "0.01", "--seed", "0"]
    assert run([*line, "--json", "--out", str(table)]) == 0
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    found = {number["key"]: number["value"] for number in section["numbers"]}
    assert found["records.count"] == 569
    assert found["records.error"] <= 1e-8
    written = pd.read_csv(table)
    assert len(written) == 569
    assert written["advantage"].max() == found["records.worst.advantage"]
    assert "never publish" in section["notes"][0]
    assert run([*line, "--by", "mean radius"]) == 0
    printed = capsys.readouterr().out.replace("\u00a0", " ")
    for words in ("do not publish", "TPR at FPR 1 %", "Exposure by mean radius", "from an advantage of 5 % to 95 %"):
        assert words in " ".join(printed.split())
    assert run([*line, "--noise", "gaussian", "--delta", "1e-5", "--json"]) == 0
    (gaussian,) = json.loads(capsys.readouterr().out)["sections"]
    assert gaussian["numbers"] != section["numbers"]
    assert run([*line, "--noise", "gaussian"]) == 2  # which needs a δ
