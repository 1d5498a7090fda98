"""Promise: a drafted schema holds kinds and formats as inferred; what else is read off a table is a comment."""

import tomllib

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.tables import draft_schema, understand
from deniable.workflows.train import train_table

N = 200
RNG = np.random.default_rng(0)
STRANGE = pd.DataFrame(
    {
        "Kunde": [f"K{10000 + i}" for i in RNG.permutation(N)],
        "who_id": [f"p{i % 50}" for i in range(N)],
        "Lohn": [f"{1000 + 7.1 * i:,.2f} €".translate(str.maketrans(",.", ".,")) if i % 9 else "" for i in range(N)],
        "Punkte": [f"{i / 30:.3f}".replace(".", ",") for i in range(N)],
        "Seit": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2021" for i in range(N)],
        "us": [f"{1 + i % 12:02d}/{1 + i % 28:02d}/2021" for i in range(N)],
        "PLZ": [("01067", "10115")[i % 2] for i in range(N)],
        "cm": [f"{150 + i % 50} cm" for i in range(N)],
        "Alter": ["siehe Akte", *(str(18 + i % 70) for i in range(N - 1))],
        "Ort": ["Ulm", "Rom"] * (N // 2),
        "nix": [""] * N,
        "Kauf": ["ja", "nein"] * (N // 2),
    }
)
EXPECTED = {
    "Kunde": {"kind": "dropped"},
    "who_id": {"kind": "dropped"},
    "Lohn": {"kind": "number", "unit": "€"},
    "Punkte": {"kind": "number"},
    "Seit": {"kind": "date", "order": "day"},
    "us": {"kind": "date", "order": "month"},
    "PLZ": {"kind": "code"},
    "cm": {"kind": "whole", "unit": "cm"},
    "Alter": {"kind": "whole"},
    "Ort": {"kind": "category"},
    "nix": {"kind": "dropped"},
    "Kauf": {"kind": "yes/no"},
}
DOUBTFUL = {
    "1,234 was read as 1234": ["1,234", "2,345", "7"],
    "1.234 was read as 1.234, though others have decimal commas": ["1.234", "123,456"],
    "04/05/2021 was read as 5 April": ["04/05/2021", "01/12/2021"],
    "01067 was read as 1067": ["01067", "10 115"],
    "2E3 was read as 2000": ["2E3", "4E1", "7"],
}


def test_what_a_stranger_s_table_drafts(tmp_path, capsys):
    path, out = tmp_path / "kunden.csv", tmp_path / "kunden.toml"
    STRANGE.to_csv(path, sep=";", index=False)
    assert run(["check", str(path), "--target", "Kauf", "--schema-out", str(out)]) == 0
    assert f"--schema {out}" in capsys.readouterr().err
    text = out.read_text(encoding="utf-8")
    first, text = text.split("\n", 1)
    assert first == "# drafted from the data: read, then delete this line"
    assert tomllib.loads(text) == {"target": "Kauf", "decimal": ",", "columns": EXPECTED}
    said = [
        '# If this column says whose record it is: person = "who_id"',
        "# 1 cell does not fit",
        '["01067", "10115"]',
    ]
    assert [words for words in said if words not in text] == []
    assert not [cell for cell in ("K10", "siehe", "p7", "was read as") if cell in text]
    out.write_text(text, encoding="utf-8")
    schema = dn.Schema.read(out)
    assert schema.column("Punkte").read(STRANGE["Punkte"]).number.max() == (N - 1) / 30 // 0.001 / 1000
    model = dn.PrivateClassifier(advantage=0.9, schema=schema).fit(STRANGE)
    used = [name for name, one in EXPECTED.items() if one["kind"] != "dropped" and name != "Kauf"]
    assert [column.name for column in model.columns_] == used
    public = text.replace("# range", "range").replace("# categories", "categories")
    out.write_text(public, encoding="utf-8")
    assert dn.Schema.read(out).column("Alter").range == (15, 90)  # all of it is TOML


def test_doubts_are_said_and_not_decided():
    wrong = {}
    for doubt, cells in DOUBTFUL.items():
        text = draft_schema(pd.DataFrame({"a": (cells * 20)[:40], "y": [0, 1] * 20}), "y")
        if doubt not in text or "decimal =" in text or "order =" in text:
            wrong[doubt] = text
    assert wrong == {}


CODES = {  # and whether it is drafted as a code: some begin with a zero, and no number is more than digits
    "postal codes": (["01067", "80331", "D-10115", ""], True),
    "long ones": (["00123", "04711", "n/a"], True),
    "spaces of thousands": (["01067", "10 115"], False),
    "decimals": (["007", "7.5"], False),
    "no zero": (["80331", "10115"], False),
    "zero itself": (["0", "10"], False),
}


@pytest.mark.parametrize("name", CODES)
def test_leading_zeros_are_drafted_as_a_code_and_check_says_so(name):
    """Read as numbers, 01067 and 1067 are one: `all cells are digits` missed columns with a gap or another code."""
    cells, code = CODES[name]
    frame = pd.DataFrame({"x": (cells * 60)[:120], "y": [0, 1] * 60})
    kind = tomllib.loads(draft_schema(frame, "y"))["columns"]["x"]["kind"]
    assert (kind == "code") == code
    notes = "; ".join(understand(frame, "y").columns[0].notes)
    assert ("01067 was read as 1067: kind = 'code' keeps the zeros" in notes) == any(
        c[:1] == "0" < c[1:] for c in cells
    )


def test_what_is_known_is_drafted_as_declared(tmp_path):
    known = dn.Schema({"cm": {"range": (100, 250)}, "PLZ": {"kind": "code", "categories": ["01067"]}}, person="who_id")
    text = draft_schema(STRANGE, "Alter", drop=["Ort"], schema=known)
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    schema = dn.Schema.read(tmp_path / "s.toml")
    assert schema.column("cm").range == (100, 250)
    assert schema.column("PLZ").labels == ("01067",)
    assert (schema.kind("Ort"), schema.target, schema.person) == ("dropped", "Alter", "who_id")


LINE = "# drafted from the data: read, then delete this line"


def test_nothing_leaves_by_a_draft_that_nobody_has_read(tmp_path, capsys):
    """Whether a column is constant, and so whether a line of a draft is there, is one record's doing."""
    frame = pd.DataFrame(
        {"age": [i * 7 % 41 for i in range(40)], "ill": ["no", "no", "yes", "yes"] * 10, "hiv": ["yes"] + ["no"] * 39}
    )
    path, out = tmp_path / "people.csv", tmp_path / "schema.toml"
    drafts = []
    for table in (frame, frame[1:]):
        table.to_csv(path, index=False)
        assert run(["check", str(path), "--target", "ill", "--schema-out", str(out)]) == 0
        drafts.append(out.read_text(encoding="utf-8"))
        assert drafts[-1].splitlines()[0] == LINE
    assert drafts[0].replace("yes/no", "dropped") != drafts[0] != drafts[1]
    assert "delete its first line" in capsys.readouterr().err
    told = ["--schema", str(out)]
    ways = {
        "train": ["train", str(path), *told, "--report", str(tmp_path / "r.html")],
        "publish": ["publish", str(path), "--statistic", "count() by hiv", *told, "--out", str(tmp_path / "r.csv")],
    }
    for words in ways.values():
        assert run(words) == 2
        assert LINE in capsys.readouterr().err
    assert [one.suffix for one in tmp_path.iterdir() if one.name.startswith("r.")] == []
    for moved in ("\n\n" + drafts[1], drafts[1].replace(LINE + "\n", "") + LINE):
        out.write_text(moved, encoding="utf-8")
        assert dn.Schema.read(out).drafted
    schema = dn.Schema.read(out)
    schema.only(["age"]).write(out)
    assert out.read_text(encoding="utf-8").startswith(LINE)  # nor by a copy
    for fit in (
        lambda: dn.PrivateClassifier(advantage=0.1, schema=schema).fit(frame),
        lambda: dn.PrivateRegressor(advantage=0.1, schema=schema).fit(frame[["age"]], frame["age"]),
        lambda: dn.release_statistics(frame, "count()", advantage=0.1, schema=schema),
        lambda: train_table(frame, target="ill", schema=schema),
    ):
        with pytest.raises(dn.InputError, match=LINE):
            fit()
    assert run(["check", str(path), *told]) == 0  # its owner may look
    out.write_text(drafts[1].replace(LINE + "\n", ""), encoding="utf-8")
    assert run([*ways["train"], "--advantage", "0.9"]) == 0
    out.write_text("drafted = false\n", encoding="utf-8")
    with pytest.raises(dn.InputError, match="drafted"):
        dn.Schema.read(out)
