"""``deniable synthesize``: rows and a page that hold released numbers only."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from deniable.cli._app import run
from deniable.synthesis import pairs
from deniable.training import fitting

pytestmark = pytest.mark.filterwarnings("ignore::deniable.synthesis.SynthesisWarning")


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr(pairs, "MODEL_ROWS", 1000)
    monkeypatch.setattr(pairs, "STEPS", (5, 20))
    monkeypatch.setattr(fitting, "STEPS", 20)


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 1500)
    table = pd.DataFrame(
        {"age": age, "town": rng.choice(["Ulm", "Rome"], 1500), "name": [f"Q{i}x" for i in range(1500)]}
    )
    table["ill"] = np.where(rng.random(1500) < age / 120, "yes", "no")
    table.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def test_rows_and_a_page_are_written_and_no_record_stands_in_either(people, capsys):
    out, page = people.with_name("made.csv"), people.with_name("page.html")
    assert run(["synthesize", str(people), "--advantage", "0.5", "--target", "ill", "--rows", "300",
                "--out", str(out), "--report", str(page)]) == 0  # fmt: skip
    made = pd.read_csv(out)
    assert made.shape == (300, 4)
    assert set(made["ill"]) == {"yes", "no"}
    text = page.read_text()
    for words in ("Rows are draws from a model, about nobody", "Pairs that were counted", "its noise (nine in ten)",
                  "rows equal to real ones is not protected", "What the made-up rows follow"):  # fmt: skip
        assert words in text
    assert 'class="noise"' in text  # on the bars of words
    assert not re.search(r"Q\d+x", text + out.read_text())
    assert "1,500" not in text  # the exact number of records
    assert "DOES NOT MEET" in capsys.readouterr().out.upper()


def test_json_and_refusals(people, capsys):
    assert run(["synthesize", str(people), "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert "synthesis" in [section["key"] for section in numbers["sections"]]
    assert run(["synthesize", str(people), "--target", "il"]) == 2
    assert "targets must name columns that are kept, got 'il'" in capsys.readouterr().err
    assert run(["synthesize", str(people), "--out", "made.parquet"]) == 2
