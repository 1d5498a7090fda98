import json

import numpy as np
import pandas as pd
import pytest
import skops.io

from deniable.cli._app import run
from deniable.tables import encode, read_table


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(18, 80, 200), "town": rng.choice(["a", "b"], 200)})
    frame["y"] = np.where(frame["age"] + rng.normal(scale=5, size=200) > 50, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def line(table, *more):
    folder = table.parent
    words = ["release", str(table), "--target", "y", "--out", str(folder / "model.skops")]
    return [*words, "--certificate", str(folder / "cert.json"), *more]


@pytest.mark.parametrize("model", ["logistic", "linear-svm", "naive-bayes"])
def test_model_and_certificate_are_written(table, model, capsys):
    assert run(line(table, "--model", model, "--eta", "0.2", "--n-resamples", "32", "--seed", "0", "--json")) == 0
    promise = json.loads((table.parent / "cert.json").read_text())
    assert promise == json.loads(capsys.readouterr().out)
    assert promise["eta"] <= 0.2
    assert promise["holds"]
    assert promise["encoding"]["columns"] == ["age", "town=a", "town=b"]
    path = table.parent / "model.skops"
    loaded = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    assert skops.io.get_untrusted_types(file=path) == []
    assert set(loaded.predict(pd.read_csv(table))) <= {"yes", "no"}


def test_the_model_encodes_raw_rows_as_it_was_trained(table):
    assert run(line(table, "--eta", "0.3", "--bound", "swap", "--C", "1e-6", "--n-resamples", "64")) == 0
    promise = json.loads((table.parent / "cert.json").read_text())
    assert promise["holds"]
    assert "closed form" in promise["coupling"]
    assert any("encoding" in text for text in promise["assumptions"])
    frame = pd.read_csv(table)
    encoded = encode(read_table(table, "y"))
    model = skops.io.load(table.parent / "model.skops")
    np.testing.assert_allclose(model[0].transform(frame), encoded.X[:, :-1], atol=1e-15)
    assert promise["encoding"]["columns"] == list(encoded.columns[:-1])
    low, high = promise["encoding"]["ranges"]["age"]
    outside = frame.assign(age=[low - 5, high + 5] * 100, town="c")  # clipped; an unknown category is none of them
    assert np.abs(model[0].transform(outside)).max() <= 1 / np.sqrt(3) + 1e-15


@pytest.fixture
def several(tmp_path):
    """Three classes that the columns tell apart."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.uniform(18, 80, 300), "town": rng.choice(["a", "b"], 300)})
    noisy = frame["age"] + rng.normal(scale=3, size=300)
    frame["y"] = np.select([noisy > 60, noisy > 38], ["old", "middle"], "young")
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("logistic", ["--bound", "swap", "--C", "1e-3"]),
        ("linear-svm", []),
        ("naive-bayes", []),
    ],
)
def test_targets_of_several_classes(several, model, more, capsys):
    more = ["--model", model, *more, "--eta", "0.3", "--n-resamples", "32", "--seed", "0", "--json"]
    assert run(line(several, *more)) == 0
    promise = json.loads(capsys.readouterr().out)
    assert promise["holds"]
    assert promise["eta"] <= 0.3
    if "swap" in more:
        assert "closed form" in promise["coupling"]
    path = several.parent / "model.skops"
    loaded = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    assert loaded[-1].classes_.tolist() == ["middle", "old", "young"]
    chances = loaded[-1].predict_proba if hasattr(loaded[-1], "predict_proba") else loaded[-1].decision_function
    rows = pd.read_csv(several)
    assert chances(loaded[0].transform(rows)).shape == (300, 3)
    assert set(loaded.predict(rows)) <= {"middle", "old", "young"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--target", "age"], "2 to 100 values, got 200"),
        (["--eta", "0.7"], "eta"),
        (["--eta", "0.001"], "n_resamples"),
        (["--model", "tree"], "model"),
        (["--C", "0"], "--C must be above 0"),
        (["--jobs", "0"], "--jobs must be"),
        (["--bound", "swap", "--model", "linear-svm"], "logistic only"),
    ],
)
def test_bad_input_writes_nothing(table, more, message, capsys):
    assert run(line(table, *more)) == 2
    assert message in capsys.readouterr().err
    assert not (table.parent / "model.skops").exists()
    assert not (table.parent / "cert.json").exists()


def test_statistics_are_written_with_their_certificate(table, capsys):
    folder = table.parent
    words = ["release", str(table), "--statistic", "mean(age) by town", "--statistic", "count() by town, y"]
    words += ["--range", "age=18:80", "--categories", "town=a,b", "--eta", "0.2"]
    files = {name: folder / name for name in ("t.csv", "t.svg", "cert.json")}
    done = run(
        [*words, "--out", str(files["t.csv"]), "--plot", str(files["t.svg"]), "--certificate", str(files["cert.json"])]
    )
    assert done == 0
    frame = pd.read_csv(files["t.csv"])
    assert frame["statistic"].value_counts().to_dict() == {"mean(age) by town": 2, "count() by town, y": 4}
    assert frame["value"].iloc[:2].between(18, 80).all()
    assert json.loads(files["cert.json"].read_text())["eta"] <= 0.2
    assert files["t.svg"].read_text().startswith("<?xml")
    assert "of the budget" in capsys.readouterr().out
    assert run([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["statistics"]) == 6


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--statistic", "maen(age)"], "did you mean 'mean'"),
        (["--statistic", "mean(age)", "--target", "y"], "--target goes with a model"),
        (["--statistic", "mean(age)", "--range", "age=18"], "NAME=LOW:HIGH"),
        (["--statistic", "mean(age)", "--categories", "=a"], "NAME=LABEL"),
        (["--statistic", "mean(age)", "--out", "t.txt"], ".csv or .json"),
        (["--plot", "t.svg"], "--plot goes with --statistic"),
        ([], "--out is missing"),
    ],
)
def test_bad_statistics_are_one_line(table, more, message, capsys):
    assert run(["release", str(table), *more]) == 2
    assert message in capsys.readouterr().err


def test_auto_compares_the_bounds_of_a_model(table, capsys):
    more = ["--eta", "0.3", "--bound", "auto", "--C", "1e-6", "--n-resamples", "64", "--seed", "1", "--json"]
    assert run(line(table, *more)) == 0
    promise = json.loads(capsys.readouterr().out)
    assert promise["holds"]
    assert promise["bound"] in ("swap", "centre")
    assert promise["eta"] <= 0.3


@pytest.mark.parametrize(("eta", "penalty", "costly"), [("0.02", "1", True), ("0.4", "1e-4", False)])
def test_it_says_what_the_model_is_worth_and_names_the_better_way(table, capsys, eta, penalty, costly):
    assert run(line(table, "--eta", eta, "--C", penalty, "--seed", "0")) == 0
    said = " ".join(capsys.readouterr().out.split())
    expected = json.loads((table.parent / "cert.json").read_text())["expected_accuracy"]
    assert (expected["without"] - expected["with_noise"] > 0.02) is costly
    assert f"about {expected['with_noise']:.3f} (without noise {expected['without']:.3f}" in said
    command = f"deniable train {table} --target y --advantage {2 * float(eta):g}"
    assert (command in said) is costly
