import json

import numpy as np
import pandas as pd
import pytest

from deniable.cli._app import run


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(18, 80, 200), "town": rng.choice(["a", "b"], 200)})
    frame["y"] = np.where(frame["age"] + rng.normal(scale=5, size=200) > 50, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def test_statistics_are_written_with_their_certificate(table, capsys):
    folder = table.parent
    words = ["publish", str(table), "--statistic", "mean(age) by town", "--statistic", "count() by town, y"]
    schema = folder / "schema.toml"
    schema.write_text('[columns.age]\nrange = [18, 80]\n[columns.town]\ncategories = ["a", "b"]\n')
    words += ["--schema", str(schema), "--records", "200", "--advantage", "0.4"]
    files = {name: folder / name for name in ("t.csv", "cert.json")}
    done = run([*words, "--out", str(files["t.csv"]), "--certificate", str(files["cert.json"])])
    assert done == 0
    frame = pd.read_csv(files["t.csv"])
    assert frame["statistic"].value_counts().to_dict() == {"mean(age) by town": 4, "count() by town, y": 16}
    assert frame["value"].iloc[:2].between(18, 80).all()
    assert json.loads(files["cert.json"].read_text())["advantage"] <= 0.4
    assert "of the budget" in capsys.readouterr().out
    assert run([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["statistics"]) == 20
