"""``deniable train``: a raw table in, a private model, its report and what it costs out; or one line and no file."""

import inspect
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.preprocessing import FunctionTransformer

import deniable as dn
from deniable.cli._app import run
from deniable.noise.queries import SumNoise


@pytest.fixture
def people(tmp_path):
    """A table as people have them: an id, texts, blanks, dates, a skewed column, an answer in words."""
    rng = np.random.default_rng(0)
    n = 600
    age, wage = rng.integers(18, 90, n), rng.lognormal(10, 0.8, n).round(2)
    town = rng.choice(["Bern", "Graz", "Lyon"], n)
    answer = np.where(age + 8 * (town == "Graz") + rng.normal(0, 8, n) > 55, "yes", "no")
    frame = pd.DataFrame(
        {
            "id": [f"P{i:05d}" for i in range(n)],
            "age": age,
            "wage": np.where(rng.random(n) < 0.05, "", wage.astype(str)),
            "town": town,
            "joined": pd.date_range("2019-01-01", periods=n).strftime("%Y-%m-%d"),
            "smokes": rng.choice(["yes", "no", ""], n),
            "answer": answer,
        }
    )
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    return path


def train(*arguments):
    return run(["train", *map(str, arguments)])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_raw_table_becomes_a_model_that_takes_raw_rows(people, tmp_path, capsys):
    model, report = tmp_path / "model.skops", tmp_path / "report.html"
    assert train(people, "--target", "answer", "--advantage", 0.4, "--out", model, "--report", report) == 0
    out = capsys.readouterr().out.replace("\u00a0", " ")
    assert (
        "at even odds, no attacker tells whether a line of the file was in the data with accuracy above 70 %"
        in " ".join(out.split())
    )
    assert "(rests on held-out scores, measured without noise: not protected)" in out
    assert "unprotected: " in out
    assert "'id': nearly unique words: dropped" in out
    content = model.read_bytes()
    assert b"P00001" not in content
    loaded = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    raw = pd.read_csv(people, dtype=str, keep_default_na=False).drop(columns="answer")
    found = loaded.predict(raw)
    truth = pd.read_csv(people)["answer"].to_numpy()
    assert np.mean(found == truth) > 0.8
    assert loaded[-1].tradeoff_.advantage() <= 0.4
    assert {column.name: column.words for column in loaded[-1].columns_}["smokes"] == "flags"
    assert not any("smokes" in use.name for use in loaded[-1].certificate_.uses)  # two values that need no look
    assert dn.assess(loaded, raw, truth).numbers["use.accuracy.private"].value == np.mean(found == truth)
    assert not hasattr(loaded[-1], "_record_tradeoffs") or loaded[-1]._record_tradeoffs is None
    page = report.read_text()
    assert "Every query of the data" in page
    assert "P00001" not in page


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_reads_by_the_schema_that_it_was_trained_with(people, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.read_csv(people, dtype=str, keep_default_na=False)
    frame["age"] = [f"{int(age)},{int(age) % 7}00" for age in frame["age"]]  # 45.3 is 45,300
    frame.to_csv("german.csv", sep=";", index=False)
    columns = {"age": {"range": (18, 91)}, "wage": {"decimal": "."}, "id": {"kind": "dropped"}}
    dn.Schema(columns | {"answer": {"kind": "yes/no"}}, target="answer", decimal=",").write("schema.toml")
    assert run(["train", "german.csv", "--schema", "schema.toml", "--advantage", "0.9", "--out", "model.skops"]) == 0
    english, right = frame.assign(age=[age.replace(",", ".") for age in frame["age"]]), {}
    for name, rows in {"as declared": frame, "otherwise": english}.items():
        rows.drop(columns=["id", "answer"]).to_csv("new.csv", sep=";", index=False)
        assert run(["predict", "model.skops", "new.csv", "--out", "said.csv"]) == 0
        right[name] = np.mean(pd.read_csv("said.csv")["prediction"] == frame["answer"])
    assert right["as declared"] > 0.8 > 0.7 > right["otherwise"]  # whose ages are all missing
    capsys.readouterr()
    assert run(["train", "german.csv", "--schema", "none.toml"]) == 2
    assert "schema 'none.toml' must be a TOML file, and there is no such file" in capsys.readouterr().err


def test_a_written_model_predicts_rows_and_runs_no_code_of_others(people, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert train(people, "--target", "answer", "--advantage", 0.4, "--out", "model.skops") == 0
    capsys.readouterr()
    rows = pd.read_csv(people).drop(columns="answer")
    rows.to_csv("new.csv", index=False)
    assert run(["predict", "model.skops", "new.csv", "--out", "said.csv"]) == 0
    said = pd.read_csv("said.csv")
    assert np.mean(said["prediction"] == pd.read_csv(people)["answer"]) > 0.8
    assert np.allclose(said["probability_yes"] + said["probability_no"], 1)
    assert run(["predict", "model.skops", "new.csv", "--json"]) == 0
    assert [row["prediction"] for row in json.loads(capsys.readouterr().out)] == said["prediction"].tolist()
    skops.io.dump(FunctionTransformer(_called), "code.skops")
    rows.drop(columns="age").to_csv("less.csv", index=False)
    refused = {
        ("new.csv", "new.csv"): "model must be the .skops file",
        ("code.skops", "new.csv"): "could not be read",
        ("model.skops", "nowhere.csv"): "does not exist",
        ("model.skops", "less.csv"): "age",
    }
    for words, said_of_it in refused.items():
        assert run(["predict", *words]) == 2
        assert said_of_it in capsys.readouterr().err
    assert not (tmp_path / "called").exists()


def _called(X):
    open("called", "w").close()
    return X


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_regression_persons_parquet_and_no_holdout(people, tmp_path, capsys):
    frame = pd.read_csv(people).assign(patient=lambda t: "patient " + (t.index // 3).astype(str))
    path = tmp_path / "visits.parquet"
    frame.to_parquet(path)
    schema = tmp_path / "schema.toml"
    schema.write_text("[columns]\nwage = {range = [0, 500_000]}\nage = {range = [0, 120]}\n")
    options = ("--target", "age", "--group", "patient", "--schema", schema)
    asked = "epsilon=1,delta=1e-6,group_size=2"
    assert train(path, *options, "--limit", asked, "--holdout", 0, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    parts = {section["key"]: section for section in found["sections"]}
    assert any("for any 2 persons in or out together" in note for note in parts["account"]["notes"])
    assert 0.99e-6 < dn.tradeoff(dn.GaussianDP(2 * parts["account"]["numbers"][0]["value"])).delta(1.0) <= 1e-6
    assert "for one person" in parts["account"]["summary"]
    assert "use" not in parts
    assert found["reproduction"]["task"] == "regression"
    rows = parts["account"]["grids"][0]["rows"]
    assert not any("wage" in row[0] for row in rows if row[0].startswith("range"))
    assert not any("age" in row[1] for row in rows)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("who", ["Anna Mueller {}", "{}"])
@pytest.mark.parametrize("target", ["answer", "age"])
def test_persons_with_the_usual_held_out_records(people, tmp_path, capsys, who, target):
    """Held-out persons measure both models; the unprotected one never sees who they are."""
    frame = pd.read_csv(people).assign(patient=lambda t: [who.format(i // 3) for i in t.index])
    frame.to_csv(people, index=False)
    report = tmp_path / "report.html"
    told = ("--classes", "no,yes") if target == "answer" else ("--task", "regression")
    assert train(people, "--target", target, "--group", "patient", "--report", report, *told) == 0
    captured = capsys.readouterr()
    assert "unprotected: " in captured.out
    assert not any("Mueller" in text for text in (*captured, report.read_text()))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_words_among_numbers_are_in_no_file(people, tmp_path, capsys):
    """A text of several rows is missing among numbers; the model kept it as a word that means so."""
    frame = pd.read_csv(people, dtype=str)
    frame.loc[:5, "wage"] = "see Mueller file 4711"
    frame.to_csv(people, index=False)
    model, report = tmp_path / "model.skops", tmp_path / "report.html"
    assert train(people, "--target", "answer", "--full", "--out", model, "--report", report) == 0
    with zipfile.ZipFile(model) as files:
        kept = b"".join(files.read(name) for name in files.namelist())
    assert b"wage" in kept
    for content in (kept, report.read_bytes(), str(capsys.readouterr()).encode()):
        assert b"Mueller" not in content


def test_a_task_that_does_not_fit_the_target_is_one_line_and_no_file(people, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for target, task, message in (("answer", "regression", "numeric target"), ("wage", "classification", "fractions")):
        assert train(people, "--target", target, "--task", task, "--out", "model.skops") == 2
        assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_the_demo_of_the_makefile_decides(tmp_path, capsys, monkeypatch):
    root = Path(__file__).parents[2]
    made, trained = re.findall(r"\$\(BIN\)/(?:python|deniable) (.*people.csv.*)", (root / "Makefile").read_text())
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    subprocess.run([sys.executable, root / made.split()[0], *made.split()[1:]], check=True)
    assert run(trained.split()) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "MEETS THE POLICY" in printed
    assert "with accuracy above 55 %" in printed
    assert "held-out records" in printed
    assert "What the model does with each column" in Path("out/demo.html").read_text()


def test_the_split_leaves_each_record_out_by_itself():
    from deniable.workflows.train import _training_rows

    train = _training_rows(40_000, None, 0.25, SumNoise())
    assert abs(train.mean() - 0.75) < 0.02  # nine standard deviations
    persons = _training_rows(4000, np.arange(4000) // 4, 0.25, SumNoise()).reshape(-1, 4)
    assert np.all(persons == persons[:, :1])
    with pytest.raises(dn.InputError, match="no record is left"):
        _training_rows(10, None, 1 - 1e-12, SumNoise())


def test_no_seed_decides_who_is_held_out(people, capsys):
    """Known coins tell who trains; tests/guarantees/test_attacked_training.py plays the attack."""
    from deniable.workflows.train import train_table

    assert not {"rng", "seed", "random_state"} & set(inspect.signature(train_table).parameters)
    assert train(people, "--target", "answer", "--seed", 1) == 2
    assert "No such option: --seed" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_class_that_is_held_out_altogether_is_no_error(tmp_path, capsys, monkeypatch):
    """Three rows, two classes: the part that trains has one class only, and the guarantee holds."""
    monkeypatch.setattr(SumNoise, "coins", lambda self, label, n, chance: np.arange(n) == n - 1)
    path = tmp_path / "three.csv"
    path.write_text("a,b,y\n1,4,yes\n2,5,yes\n3,7,no\n")
    assert train(path, "--target", "y", "--classes", "no,yes") == 0
    assert "expect little more than guessing" in " ".join(capsys.readouterr().out.split())


def test_the_public_page_holds_nothing_that_no_noise_protects(people, tmp_path):
    public, owner = tmp_path / "public.json", tmp_path / "owner.json"
    words = ("--target", "answer", "--advantage", 0.4, "--report", public, "--owner-report", owner)
    assert train(people, *words) == 0
    shown, kept = dn.Assessment.from_json(public), dn.Assessment.from_json(owner)
    assert "What the model is good for" in kept.for_owner
    assert shown.for_owner == ""
    unprotected = [key for key in kept.numbers if key.startswith("use.")]
    assert unprotected
    assert shown.numbers == {key: number for key, number in kept.numbers.items() if key not in unprotected}
    assert "held-out" not in shown.to_html()


def test_exact_copies_stand_on_the_page_of_the_owner_alone(people, tmp_path, capsys):
    twice = tmp_path / "twice.csv"
    lines = people.read_text().splitlines()
    twice.write_text("\n".join([*lines, *[lines[1]] * 10]) + "\n")
    public, owner = tmp_path / "public.json", tmp_path / "owner.json"
    words = ("--target", "answer", "--advantage", 0.4, "--report", public, "--owner-report", owner)
    assert train(twice, *words) == 0
    said = capsys.readouterr()
    assert "rows are exact copies of another row" in " ".join(dn.Assessment.from_json(owner).to_text().split())
    for shown in (public.read_text(), said.out, said.err):
        assert "exact copies" not in shown
