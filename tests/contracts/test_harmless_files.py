"""What is meant to be published holds no value of an identifying column, no extreme of any column, no fitted state."""

import copy
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import deniable as dn
from deniable.cli._app import run

N = 200
NAMES = [f"Zerlina Quux{i % 180:03d}" for i in range(N)]  # 180 different ones
IBANS = [f"DE{7919 * (i + 1):014d}" for i in range(N)]
BIRTHS = [f"{1 + i % 28} Sept {1931 + i % 70}" for i in range(N)]
LOW, HIGH = 18.372819, 93.918273


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    wage = rng.uniform(LOW, HIGH, N)
    wage[[3, 77]] = LOW, HIGH
    town = rng.choice(["Aix", "Bonn"], N).astype(object)
    town[5] = "Tinyville"  # lives there alone
    return pd.DataFrame(
        {
            "name": NAMES,
            "account": IBANS,
            "born": BIRTHS,
            "number": 531_441_917_003 + 7919 * np.arange(N),
            "wage": wage,
            "town": town,
            "y": np.where(wage + rng.normal(size=N) > 55, "ill", "well"),
        }
    )


@pytest.fixture
def table(people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def secrets(frame):
    identifying = {str(cell) for c in ("name", "account", "born", "number") for cell in frame[c]}
    return identifying | {"Tinyville", repr(LOW), repr(HIGH), "18.3728", "93.9182"}


def content(path):
    """All bytes of a file, those inside an archive included."""
    data = path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            data += b"".join(archive.read(name) for name in archive.namelist())
    return data


def assert_harmless(data, frame):
    text = data if isinstance(data, str) else data.decode("latin-1")
    found = sorted(word for word in secrets(frame) if word in text)
    assert not found, found[:5]


def test_the_net_catches_what_it_should(people):
    with pytest.raises(AssertionError):
        assert_harmless(f"... {NAMES[17]} ...", people)
    with pytest.raises(AssertionError):
        assert_harmless(json.dumps([LOW]), people)


@pytest.mark.parametrize("suffix", [".html", ".json", ".csv"])
def test_profiles_name_no_person(table, people, suffix, capsys):
    out, option = table.parent / f"profile{suffix}", "--out" if suffix == ".csv" else "--owner-report"
    assert run(["profile", str(table), "--target", "y", "--epsilon", "1", "--seed", "0", option, str(out)]) == 0
    told = capsys.readouterr()
    for text in (content(out), told.out, told.err):
        assert_harmless(text, people)
    assert "'name': dropped" in told.err


def test_attacks_name_no_person(table, people, capsys):
    out = table.parent / "attack.json"
    words = ["attack", str(table), "--target", "y", "--model", "linear", "--shadows", "8"]
    assert run([*words, "--seed", "0", "--owner-report", str(out)]) == 0
    told = capsys.readouterr()
    for text in (content(out), told.out, told.err):
        assert_harmless(text, people)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", ["additive", "linear"])
def test_trained_models_and_their_reports_name_no_person(table, people, model, capsys):
    folder = table.parent
    words = ["train", str(table), "--target", "y", "--advantage", "0.9", "--model", model]
    assert run([*words, "--out", str(folder / "model.skops"), "--report", str(folder / "report.html")]) == 0
    told = capsys.readouterr()
    assert "'name': nearly unique words: dropped" in told.out + told.err
    for text in (content(folder / "model.skops"), content(folder / "report.html"), told.out, told.err):
        assert_harmless(text, people)


def test_check_prints_no_cell(table, people, capsys):
    for more in ([], ["--json"]):
        assert run(["check", str(table), "--target", "y", *more]) == 0
        assert_harmless(capsys.readouterr().out, people)


@pytest.mark.parametrize("wrap", ["plain", "pipeline"])
def test_a_released_estimator_carries_nothing_of_an_earlier_fit(wrap, people):
    X = people[["wage"]].assign(more=np.arange(N) % 7 * 1.0).to_numpy()
    inner = LinearSVC() if wrap == "plain" else make_pipeline(StandardScaler(), LinearSVC())
    inner.fit(X, people["y"])  # on all data: what must not travel
    final = inner if wrap == "plain" else inner[-1]
    model = dn.MembershipPrivate(inner, advantage=0.6, n_resamples=32, random_state=0).fit(X, people["y"])
    secret = np.asarray(final.coef_, dtype=np.float64).tobytes()
    copies = {
        "pickle": pickle.dumps(model),
        "deep copy": pickle.dumps(copy.deepcopy(model)),
        "skops": skops.io.dumps(model),
    }
    for data in copies.values():
        assert secret not in data
    again = pickle.loads(copies["pickle"])
    assert not [name for name in vars(again.estimator) if name.endswith("_") and not name.startswith("_")]
    assert np.array_equal(again.predict(X), model.predict(X))
    assert hasattr(final, "coef_")  # the user's own object is left alone
