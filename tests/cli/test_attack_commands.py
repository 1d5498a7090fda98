"""``deniable audit`` and ``deniable attack``: reports, exit codes and one-line errors."""

import json

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from deniable.cli._app import run
from deniable.cli.attack import _load_saved


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "scores.npz"
    np.savez(path, member=rng.normal(1, 1, 1000), nonmember=rng.normal(0, 1, 1000))
    return str(path)


def test_audit_reports_and_keeps_the_exit_code_of_a_verdict(scores, tmp_path, capsys):
    assert run(["audit", scores, "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["status"] == "measured"
    assert run(["audit", scores, "gaussian,1.5"]) == 0
    assert "consistent" in capsys.readouterr().out
    page = tmp_path / "audit.html"
    assert run(["audit", scores, "epsilon,0.1", "--owner-report", str(page)]) == 1
    assert "repeat" in capsys.readouterr().out
    assert page.stat().st_size > 1000


def test_attack_trains_and_reports(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=120), "b": rng.choice(["x", "y"], 120), "y": rng.integers(3, size=120)})
    table.to_csv(tmp_path / "data.csv", index=False)
    kept = tmp_path / "scores.npz"
    command = ["attack", str(tmp_path / "data.csv"), "--target", "y", "--shadows", "8", "--seed", "0"]
    model = ["--model", "tree"]
    assert run([*command, *model, "--out", str(kept), "--owner-report", str(tmp_path / "audit.html")]) == 0
    assert "Advantage" in capsys.readouterr().out
    assert run(["audit", str(kept), "epsilon,0.5"]) == 1


def test_attack_trains_a_saved_estimator_and_runs_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=120), "b": rng.choice(["x", "y"], 120), "y": rng.normal(size=120)})
    table.to_csv("data.csv", index=False)
    only_a = make_pipeline(make_column_transformer(("passthrough", ["a"])), DecisionTreeRegressor())
    skops.io.dump(only_a, "tree.skops")
    skops.io.dump(LogisticRegression(), "classifier.skops")
    skops.io.dump(FunctionTransformer(_marked), "code.skops")
    line = ["attack", "data.csv", "--target", "y", "--shadows", "8", "--seed", "0", "--json", "--model"]
    for model in ("tree.skops", "tree"):
        assert run([*line, model]) == 0
        found = json.loads(capsys.readouterr().out)
        assert next(n for n in found["sections"][0]["numbers"] if n["key"] == "attack.advantage")["low"] > 0.5
    for model, why in (("classifier.skops", "choose a regressor"), ("code.skops", "could not be read")):
        assert run([*line, model]) == 2
        assert why in capsys.readouterr().err
    assert not (tmp_path / "marked").exists()


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(2, max_depth=2),
        GradientBoostingClassifier(n_estimators=2, max_depth=1),
        HistGradientBoostingClassifier(max_iter=2, max_depth=3),
        CalibratedClassifierCV(LogisticRegression(C=0.3)),
        make_pipeline(StandardScaler(), StackingClassifier([("tree", DecisionTreeClassifier(max_depth=1))])),
    ],
    ids=lambda model: type(model).__name__,
)
def test_of_a_saved_fit_only_the_parameters_are_read(tmp_path, model):
    unfitted, path = repr(model), tmp_path / "model.skops"
    X = np.random.default_rng(0).normal(size=(60, 3))
    skops.io.dump(model.fit(X, X[:, 0] > 0), path)
    assert skops.io.get_untrusted_types(file=path)  # the fit itself could not be read
    found = _load_saved(str(path))
    assert repr(found) == unfitted
    assert not hasattr(found, "classes_")


def _marked(X):
    open("marked", "w").close()
    return X
