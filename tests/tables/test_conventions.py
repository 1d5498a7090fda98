"""What cells of offices, registers and instruments are, and that each way to read a table says the same of a column."""

import datetime as dt
import json
import tempfile
import tomllib
import zipfile
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.records.encoder import read_problem
from deniable.records.losses import as_loss
from deniable.tables import (
    DATE,
    NUMBER,
    WORD,
    ColumnSchema,
    Schema,
    as_source,
    draft_schema,
    encode,
    read_alike,
    read_cell,
    read_cells,
    understand,
)
from deniable.testing import insecure_noise
from deniable.training import TrainingWarning
from oracles.sheets import xlsx

LIMITS = ColumnSchema(censored="limit", decimal=",", unit="mg/l")
CELLS = [
    (ColumnSchema(), "4137-", "-4137"),
    (ColumnSchema(), "1,234.50-", "-1234.5"),
    (ColumnSchema(), "-7-", "-7-"),
    (ColumnSchema(), "(7-", "(7-"),
    (ColumnSchema(), "17,25,874", "1725874"),
    (ColumnSchema(), "1,00,00,000.5", "10000000.5"),
    (ColumnSchema(), "17,2,874", "17,2,874"),
    (ColumnSchema(), "None", "None"),
    (ColumnSchema(), "0000-00-00", None),
    (ColumnSchema(), "0000-00-00 00:00:00", None),
    (ColumnSchema(), "9999-12-31", None),
    (ColumnSchema(), "31.12.9999", None),
    (ColumnSchema(), "9999-12-31T23:59:59", None),
    (ColumnSchema(), dt.date(9999, 12, 31), None),
    (ColumnSchema(), "9999-12-30", "9999-12-30"),
    (ColumnSchema(), "#REF!", None),
    (ColumnSchema(), "20230623", "20230623"),
    (ColumnSchema(kind="date"), "20230623", "2023-06-23"),
    (ColumnSchema(kind="date"), 20230623, "2023-06-23"),
    (ColumnSchema(kind="date"), "20231323", None),
    (ColumnSchema(kind="date"), "99991231", None),
    (ColumnSchema(kind="date"), 7, None),
    (ColumnSchema(unit="kg"), "7 kg", "7"),
    (ColumnSchema(unit="kg"), "7 g", "7 g"),
    (ColumnSchema(unit="kg"), "7 %", "7 %"),
    (ColumnSchema(unit="mg/l", decimal=","), "2,6 mg/l", "2.6"),
    (ColumnSchema(), "90+", "90+"),
    (ColumnSchema(), "< 0,5", "< 0,5"),
    (LIMITS, "90+", "90"),
    (LIMITS, "< 0,5", "0.5"),
    (LIMITS, "≥1.234,5 mg/l", "1234.5"),
    (LIMITS, "< low", "< low"),
    (LIMITS, "+", "+"),
]


@pytest.mark.parametrize(("own", "cell", "expected"), CELLS)
def test_a_cell_is_read_as_stated(own, cell, expected):
    own = own.checked("x")
    assert own.read(pd.Series([cell], dtype=object)).spelled.tolist() == [expected]
    kinds = own.read(pd.Series([cell, "Ulm", 7, None], dtype=object)).spelled.tolist()
    assert kinds[0] == expected  # whatever stands beside it


def test_dates_that_have_not_come_are_missing_in_columns_of_times():
    never = pd.Series(np.array(["9999-12-31", "2021-04-19"], dtype="M8[s]"))
    assert read_cells(never).spelled.tolist() == [None, "2021-04-19"]
    assert read_cell(never.iloc[0]) == (0, None)


def test_limits_are_declared_and_checked():
    with pytest.raises(dn.InputError, match="censored of column 'x' must be one of"):
        dn.Schema({"x": {"censored": "half"}})
    assert "censored" in dn.Schema({"x": {"censored": "limit"}}).to_toml()


N = 200
LAB = pd.DataFrame(
    {
        "Fall": [f"F{i:05d}" for i in range(N)],
        "Wert": [f"{1 + i % 40},{i % 10} mg/l" if i % 7 else "" for i in range(N)],
        "Dosis": [f"{1 + i % 9}.{i % 1000:03d}" for i in range(N)],
        "Aufnahme": [f"{1 + i % 28}.{1 + i % 12}.2023" for i in range(N)],
        "Station": ["Innere", "innere ", "Chirurgie"] * (N // 3) + ["Innere"] * (N % 3),
        "tot": ["ja", "nein"] * (N // 2),
    }
)


@pytest.fixture
def hospital(tmp_path):
    LAB.to_csv(tmp_path / "labor.csv", sep=";", index=False)
    return tmp_path / "labor.csv"


def test_a_header_of_semicolons_stops_once_everywhere(hospital, capsys, tmp_path):
    statistic = ["--statistic", "mean(Dosis)"]
    ways = {
        "train": ["train", str(hospital), "--target", "tot", "--holdout", "0"],
        "publish": ["publish", str(hospital), *statistic],
        "profile": ["profile", str(hospital), "--target", "tot", "--epsilon", "1"],
        "attack": ["attack", str(hospital), "--target", "tot", "--model", "tree", "--shadows", "8"],
        "audit": ["audit", str(hospital), "--members", str(hospital), "--nonmembers", str(hospital)],
    }
    for words in ways.values():
        assert run(words) == 2
        assert "say --decimal , or --decimal ." in " ".join(capsys.readouterr().err.split())
    assert run(["check", str(hospital)]) == 2
    told = " ".join(capsys.readouterr().out.split())
    assert "say --decimal" in told
    assert "with a decimal comma: 0, with a decimal point: 0" not in told
    means = {}
    for mark in (",", "."):
        with insecure_noise(np.random.default_rng(0)):
            assert run([*ways["publish"], "--decimal", mark, "--advantage", "0.9", "--json"]) == 0
        means[mark] = json.loads(capsys.readouterr().out)["statistics"]
    assert means[","] != means["."]
    for source in (hospital, LAB):
        schema = Schema(decimal=",")
        assert {c.name: c.kind for c in understand(source, schema=schema).columns}["Dosis"] == "number"
    lines = [f"{name};1" for name in "ab"]
    (tmp_path / "plain.csv").write_text("\n".join(["who,x", *lines]))  # the lines do not ask, the header does
    assert "decimal" not in str(understand(tmp_path / "plain.csv", strict=False).problems)


def test_a_draft_settles_the_mark_for_the_whole_file(hospital, tmp_path):
    text = draft_schema(hospital, "tot")
    assert 'decimal = ","' in text.split("[columns")[0]
    (tmp_path / "s.toml").write_text(text.split("\n", 1)[1], encoding="utf-8")
    schema = dn.Schema.read(tmp_path / "s.toml")
    assert (schema.column("Wert").unit, schema.column("Wert").kind) == ("mg/l", "number")
    assert schema.column("Dosis").read(["1.234"]).number.tolist() == [1234]
    model = dn.PrivateClassifier(advantage=0.9, schema=schema, classes=["ja", "nein"]).fit(hospital)
    assert {c.name: c.kind for c in model.columns_} == {
        "Wert": "number", "Dosis": "number", "Aufnahme": "date", "Station": "category",
    }  # fmt: skip


def test_a_model_carries_the_mark_and_asks_for_no_column_that_it_left_out(hospital, tmp_path, capsys):
    model = tmp_path / "m.skops"
    words = ["train", str(hospital), "--target", "tot", "--decimal", ",", "--advantage", "0.9", "--holdout", "0"]
    assert run([*words, "--classes", "ja,nein", "--out", str(model)]) == 0
    capsys.readouterr()
    few = LAB.drop(columns=["Fall", "tot"])
    few.to_csv(tmp_path / "new.csv", sep=";", index=False)
    assert run(["predict", str(model), str(tmp_path / "new.csv"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == N
    few[["Dosis"]].to_csv(tmp_path / "less.csv", sep=";", index=False)
    assert run(["predict", str(model), str(tmp_path / "less.csv")]) == 2
    assert "'Wert'" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:left out")
def test_estimators_ask_for_no_column_that_they_left_out():
    frame = LAB.assign(x=np.arange(N) % 17)
    schema = Schema(decimal=",", target="tot")
    model = dn.PrivateClassifier(advantage=0.9, schema=schema, classes=["ja", "nein"]).fit(frame)
    used = [column.name for column in model.columns_]
    assert "Fall" not in used
    whole = frame.drop(columns="tot")
    np.testing.assert_array_equal(model.predict(whole[used]), model.predict(whole))
    with pytest.raises(ValueError, match=used[0]):
        model.predict(whole[used[1:]])


SHEETS = {"Deckblatt": [["Bericht"], [None]], "Daten": [["a", "b"], *([i % 7, ("x", "y")[i % 2]] for i in range(40))]}


def test_a_cover_sheet_is_named(tmp_path, capsys):
    path = tmp_path / "t.xlsx"
    path.write_bytes(xlsx(SHEETS))
    assert run(["check", str(path)]) == 2
    told = " ".join(capsys.readouterr().out.split())
    assert "'Deckblatt' must name the columns" in told
    assert "'Daten' (--sheet)" in told
    assert run(["check", str(path), "--sheet", "Daten"]) == 0
    assert run(["check", str(path), "--sheet", "daten"]) == 2
    assert "it has no sheet 'daten'" in capsys.readouterr().err


def test_a_remark_far_away_takes_no_memory(tmp_path):
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("xl/worksheets/sheet1.xml", '<c r="A1"/><c r="XFD1048576"/>')
    with pytest.raises(dn.InputError, match="too far apart"):
        understand(path)


@pytest.mark.parametrize("first", ["sep=;", "# exported by lab 7", "SEP=,"])
def test_lines_above_the_header_are_named(tmp_path, first):
    (tmp_path / "t.csv").write_text(f"{first}\na,b\n1,2\n")
    with pytest.raises(dn.InputError, match=r"the first line must name the columns; delete it"):
        understand(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("Report, 2024, final, two\na,b\n1,2\n3,4\n5,6\n")
    with pytest.raises(dn.InputError, match=r"delete a title or comments above it"):
        understand(tmp_path / "t.csv")


def test_nothing_usable_ends_with_2(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("Report 2024\nid;a\n1;2\n3;4\n")
    assert run(["check", str(tmp_path / "t.csv")]) == 2
    assert "no column can be used" in " ".join(capsys.readouterr().out.split())


def test_a_zip_of_two_files_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as packed:
        packed.writestr("a.csv", "a\n1\n")
        packed.writestr("b.csv", "a\n1\n")
    with pytest.raises(dn.InputError, match="it must hold one file"):
        understand(tmp_path / "t.zip")


def test_check_says_how_a_column_is_written_and_what_was_not_read():
    frame = LAB.assign(
        Grenze=["< 0,5", "90+", "7"] * (N // 3) + ["8"] * (N % 3), Fehler=["#DIV/0!", *(i % 40 for i in range(1, N))]
    )
    notes = {c.name: "; ".join(c.notes) for c in understand(frame, strict=False).columns}
    assert "unit = 'mg/l'" in notes["Wert"]
    assert [c.written for c in understand(frame, strict=False).columns if c.name in ("Wert", "Aufnahme")] == [
        "decimal comma",
        "day first",
    ]
    assert "differ from another one in case only" in notes["Station"]
    assert "censored = 'limit'" in notes["Grenze"]
    assert "1 cell with a formula error" in notes["Fehler"]


EDUCATION = ["9th", "10th", "11th", "12th", "5th-6th", *["HS-grad", "Bachelors", "Masters"] * 5]
HINTS = {  # cells, and what is said of them: a hint is one that makes a column of numbers
    "incomes": (["<=50K", ">50K", "<=50K"], ()),
    "schools": (EDUCATION, ()),
    "ages": (["0-17", "18-64", "65+"], ()),
    "weights": (["70 kg", "71,5 kg", "70 kg", "none"], ("unit = 'kg'",)),
    "reais": (["R$ 566,60", "R$ 1.566,60"], ("unit = 'R$'",)),
    "batches": (["K10", "K11", "P7"], ()),
    "found": (["< 0,5 mg/l", "0,7 mg/l", "0,8 mg/l"], ("unit = 'mg/l'", "censored = 'limit'")),
    "limits": (["90+", "< 0.5", "7"], ("censored = 'limit'",)),
}


@pytest.mark.parametrize(("cells", "said"), HINTS.values(), ids=HINTS)
def test_a_hint_is_said_where_following_it_makes_numbers(cells, said):
    cells = (cells * N)[:N]
    (column,) = understand({"x": cells}, strict=False).columns
    assert [hint for hint in ("unit = ", "censored = ") if hint in "; ".join(column.notes)] == [
        key for key in ("unit = ", "censored = ") if any(key in one for one in said)
    ]
    assert all(one in "; ".join(column.notes) for one in said)
    assert ("unit = " in draft_schema({"x": cells})) == any("unit" in one for one in said)


TELLING = {  # words that are no dates, and a date that is read otherwise than the others show
    "a version": ([f"1.{i % 5}.{i % 3}" for i in range(N)], ""),
    "an address": ([f"10.0.{i % 9}.{i}" for i in range(N)], "nearly unique"),
    "a book": ([f"978-3-16-{1000 + i}-0" for i in range(N)], "nearly unique"),
    "a date": ([f"{1 + i % 28}.{1 + i % 12}.2021 bis 7.1.2022" for i in range(N)], "dates are in a form"),
    "both orders": ([f"{1 + i % 28:02d}/04/2021" for i in range(N)], "was read as 5 April, though others have the d"),
}


@pytest.mark.parametrize(("cells", "said"), TELLING.values(), ids=TELLING)
def test_what_is_said_of_dates_is_true(cells, said):
    (column,) = understand({"x": cells}, strict=False).columns
    assert ("dates are in a form" in column.line) == ("dates are" in said)
    assert said in column.line


def test_one_rule_says_how_a_column_is_written():
    """A draft, a remark and an audit ask the same question: in which way alone can most cells be read?"""
    column = ["1,5"] * 30 + ["2.5"] * 3 + ["1.234"] * 7
    (found,) = understand({"x": column}, strict=False).columns
    assert found.written == "decimal comma"
    assert any("though others have decimal commas" in note for note in found.notes)
    assert 'decimal = ","' in draft_schema({"x": column})
    with pytest.raises(dn.InputError, match="declare its decimal"):
        read_alike({"a": {"x": column}, "b": {"x": ["2.5"] * 30}})


def test_wide_tables_are_summed_up(tmp_path, capsys):
    pd.DataFrame({f"c{i}": [3, 1, 2] * 10 for i in range(300)}).to_csv(tmp_path / "wide.csv", index=False)
    assert run(["check", str(tmp_path / "wide.csv")]) == 0
    out = capsys.readouterr().out
    assert "columns: 300 number" in out
    assert len(out.splitlines()) < 30


RNG = np.random.default_rng(0)


def each(write, odd=()):
    cells = [write(i) for i in range(N)]
    for i, cell in enumerate(odd):
        cells[7 * i] = cell
    return cells


MESSY = {  # the cells of a column, what is declared of it, and its kind everywhere
    "whole": (each(lambda i: f"{i % 9}"), {}, "number"),
    "blanks": (each(lambda i: "" if i % 5 == 0 else f"{i % 30}"), {}, "number"),
    "leading zeros": (each(lambda i: f"{i % 30:03d}"), {"kind": "whole"}, "number"),
    "a code": (each(lambda i: f"{i % 9:03d}"), {"kind": "code"}, "category"),
    "points": (each(lambda i: f"{i / 7:.2f}"), {}, "number"),
    "commas": (each(lambda i: f"{i / 7:.2f}".replace(".", ",")), {}, "number"),
    "three decimals": (each(lambda i: f"{i / 7:.3f}".replace(".", ",")), {"decimal": ","}, "number"),
    "thousands": (each(lambda i: f"{1000 + 37 * i:,}"), {}, "number"),
    "points for thousands": (each(lambda i: f"{1e6 + 37 * i:,.2f}".translate(str.maketrans(",.", ".,"))), {}, "number"),
    "spaces for thousands": (each(lambda i: f"{1e6 + 37 * i:,.0f}".replace(",", "\u202f")), {}, "number"),
    "apostrophes": (each(lambda i: f"{1e6 + 37 * i:,.0f}".replace(",", "'")), {}, "number"),
    "lakhs": (each(lambda i: f"17,{10 + i % 80},874"), {}, "number"),
    "euros": (each(lambda i: f"{i},50 €"), {}, "number"),
    "dollars": (each(lambda i: f"${i}.50"), {}, "number"),
    "percent": (each(lambda i: f"{i % 100} %"), {}, "number"),
    "a unit": (each(lambda i: f"{i % 50} kg"), {"unit": "kg"}, "number"),
    "minus behind": (each(lambda i: f"{i % 50}-"), {}, "number"),
    "parentheses": (each(lambda i: f"({1 + i % 50})"), {}, "number"),
    "exponents": (each(lambda i: f"{i % 50}e3"), {}, "number"),
    "odd texts": (each(lambda i: f"{i % 60}", ["see file", "n/a", "?"]), {}, "number"),
    "999": (each(lambda i: 999 if i % 9 == 0 else i % 40), {"missing": (999,)}, "number"),
    "limits": (each(lambda i: f"< {i % 30},5"), {"censored": "limit"}, "number"),
    "ISO dates": (each(lambda i: f"2023-{1 + i % 12:02d}-{1 + i % 28:02d}"), {}, "date"),
    "dotted dates": (each(lambda i: f"{1 + i % 28}.{1 + i % 12}.2023"), {}, "date"),
    "slashes": (each(lambda i: f"{1 + i % 28:02d}/{1 + i % 12:02d}/2023"), {"order": "day"}, "date"),
    "names of months": (each(lambda i: f"{1 + i % 28} Mar 2023"), {}, "date"),
    "times": (each(lambda i: f"2023-03-{1 + i % 28:02d}T12:30:00Z"), {}, "date"),
    "digits of dates": (each(lambda i: f"2023{1 + i % 12:02d}{1 + i % 28:02d}"), {"kind": "date"}, "date"),
    "never": (each(lambda i: "9999-12-31" if i % 3 == 0 else f"2023-01-{1 + i % 28:02d}"), {}, "date"),
    "timestamps": (each(lambda i: pd.Timestamp("2023-01-01") + pd.Timedelta(days=i)), {}, "date"),
    "clocks": (each(lambda i: f"{i % 24}:{i % 60:02d}"), {}, "number"),
    "yes and no": (each(lambda i: ("yes", "no")[i % 2]), {}, "category"),
    "ja und nein": (each(lambda i: ("ja", "nein")[i % 3 % 2]), {}, "category"),
    "truth": (each(lambda i: i % 2 == 0), {}, "category"),
    "words": (each(lambda i: ("Ulm", "Köln", "Rome, Texas")[i % 3]), {}, "category"),
    "None": (each(lambda i: ("None", "some", "many")[i % 3]), {}, "category"),
    "case": (each(lambda i: ("Innere", "innere ", "INNERE")[i % 3]), {}, "category"),
    "spaces": (each(lambda i: (" a  b", "a b ", "c")[i % 3]), {}, "category"),
    "gaps and words": (each(lambda i: ("", "x", "y")[i % 3]), {}, "category"),
    "decimals of Python": (each(lambda i: Decimal(i) / 4), {}, "number"),
    "a scale": (each(lambda i: ("1", "2", "3+")[i % 3]), {}, "number"),
    "a scale with dates": (each(lambda i: ("2021-01-01", "2022-01-01", "later")[i % 3]), {}, "date"),
    "ages": (each(lambda i: "90+" if i % 9 == 0 else f"{18 + i % 70}"), {}, "number"),
    "two fifths": (each(lambda i: f"{i % 30}" if i % 5 < 2 else ("low", "high")[i % 2]), {}, "category"),
    "a third": (each(lambda i: ("soon", "later", f"2023-01-{10 + i % 12}")[i % 3]), {}, "category"),
    "large": (each(lambda i: 10**15 + 7 * (i * 31 % 97)), {"kind": "number"}, "number"),
}


def plain(kind):
    return {"whole": "number", "yes/no": "category", "code": "category"}.get(kind, kind)


FRAME = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, (cells, _, _) in MESSY.items()})
FRAME["y"] = [0, 1] * (N // 2)
DECLARED = Schema({name: said for name, (_, said, _) in MESSY.items() if said}, target="y")
EXPECTED = {name: kind for name, (_, _, kind) in MESSY.items()}
LIMIT = dn.Limit(epsilon=400.0, delta=1e-9)  # so little noise that every column stands out


def checked():
    return {c.name: plain(c.kind) for c in understand(FRAME, schema=DECLARED).columns}


def drafted():
    columns = tomllib.loads(draft_schema(FRAME, schema=DECLARED))["columns"]
    return {name: plain(said["kind"]) for name, said in columns.items() if name != "y"}


def trained():
    return {c.name: c.kind for c in fitted().columns_}


def predicted():
    """The kind as which a column of canonical cells, each of a type of its own, gives the same probabilities.

    Of numbers and words the model uses both: what is left out then changes something.
    """
    model = fitted()
    rows = FRAME.drop(columns="y")
    chances, kinds = model.predict_proba(rows), {}
    for name in MESSY:
        cells = DECLARED.column(name).read(FRAME[name])
        day, every = dt.datetime(1970, 1, 1), [None] * N
        each = [(kind, x, text) for kind, x, text in zip(cells.kind, cells.number, cells.spelled, strict=True)]
        for kind, values in {
            "number": [float(x) if k == NUMBER else None for k, x, _ in each],
            "date": [day + dt.timedelta(float(x)) if k == DATE else None for k, x, _ in each],
            "category": [text if k == WORD else None for k, _, text in each],
        }.items():
            typed = rows.assign(**{name: pd.Series(values, dtype=object)})
            if np.array_equal(model.predict_proba(typed), chances):
                kinds.setdefault(name, kind)
            every = [b if a is None else a for a, b in zip(every, values, strict=True)]
        both = rows.assign(**{name: pd.Series(every, dtype=object)})
        if name not in kinds and np.array_equal(model.predict_proba(both), chances):
            counts = {"number": NUMBER, "date": DATE, "category": WORD}
            kinds[name] = max(counts, key=lambda kind: np.sum(cells.kind == counts[kind]))
    return kinds


def fitted():
    ends = pytest.warns(TrainingWarning, match="range of large, where the search ends")  # 10¹⁵
    with insecure_noise(np.random.default_rng(0)), ends:
        return dn.PrivateClassifier(limit=LIMIT, schema=DECLARED, classes=[0, 1]).fit(FRAME)


def published():
    """Means are of numbers or dates; of words the groups are counted."""
    names = {name: f"c{i}" for i, name in enumerate(MESSY)}
    words = {name for name, kind in EXPECTED.items() if kind == "category"}
    asked = {name: f"count() by {new}" if name in words else f"mean({new})" for name, new in names.items()}
    schema = Schema({names[name]: said for name, said in DECLARED.columns.items()})
    with insecure_noise(np.random.default_rng(0)):
        made = dn.release_statistics(FRAME.rename(columns=names), [*asked.values()], limit=LIMIT, schema=schema)
    kinds = {}
    for name, rows in zip(asked, made.rows, strict=True):
        known = {str(word).casefold() for word in DECLARED.column(name).read(FRAME[name]).words}
        groups = any(str(word).casefold() in known for row in rows for word in row.group)
        kinds[name] = (
            "category" if groups else "date" if rows[0].dated else "number" * bool(rows[0].value == rows[0].value)
        )
    return kinds


def profiled():
    table = understand(FRAME, "y", schema=DECLARED)
    width = {c.name: encode(replace(table, columns=(c,)))[0].shape[1] - 1 - bool(c.missing) for c in table.kept}
    indicators = {name for name, parts in width.items() if parts > 1}
    return {c.name: "category" if c.name in indicators else plain(c.kind) for c in table.columns}


def profiled_by_the_library():
    """Each column by itself, from Parquet: rows with gaps are refused, and the refusal says what it should hold."""
    found = {}
    for name in MESSY:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/one.parquet"
            FRAME[[name, "y"]].map(lambda cell: str(cell) if isinstance(cell, Decimal) else cell).to_parquet(path)
            try:
                problem = read_problem(as_source(path, "y", DECLARED), as_loss("logistic"), 1e-2, "none", "mean", None)
                found[name] = plain(problem.tasks[0][0].encoder.kinds[0])
            except dn.InputError as error:
                said = (
                    EXPECTED[name] if "must be finite" in str(error) or "must hold numbers" in str(error) else "refused"
                )
                found[name] = "category" if "must have no gaps" in str(error) else said
    return found


def audited():
    rows = RNG.permutation(N)
    columns, _ = read_alike({"synthetic": FRAME.iloc[rows[:100]], "records": FRAME.iloc[rows[100:]]}, DECLARED)
    dates = {name for name, kind in EXPECTED.items() if kind == "date"}  # which are numbers there, of days
    return {
        name: "category" if shared.numbers is None else "date" if name in dates else "number"
        for name, shared in zip(MESSY, columns, strict=False)
    }


WAYS = [checked, drafted, trained, predicted, published, profiled, profiled_by_the_library, audited]


@pytest.mark.filterwarnings("ignore::deniable.tables.TableWarning")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_way_to_read_a_table_gives_a_column_one_kind(way):
    assert len(MESSY) >= 40
    found = way()
    assert {name: found.get(name) for name in EXPECTED if found.get(name) != EXPECTED[name]} == {}


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_an_audit_of_messy_files_finds_all_copies(tmp_path, ending, capsys):
    frame = FRAME.map(lambda cell: str(cell) if isinstance(cell, Decimal) else cell)
    for name, rows in {"made": frame[:100], "in": frame[:100], "out": frame[100:]}.items():
        path = tmp_path / f"{name}{ending}"
        rows.to_csv(path, index=False) if ending == ".csv" else rows.to_parquet(path, index=False)
    DECLARED.write(tmp_path / "schema.toml")
    made, inside, outside = (str(tmp_path / f"{name}{ending}") for name in ("made", "in", "out"))
    words = ["audit", made, "--members", inside, "--nonmembers", outside, "--schema", str(tmp_path / "schema.toml")]
    assert run([*words, "--json"]) == 0
    assert "100 of 100 members, 0 of 100 non-members" in json.loads(capsys.readouterr().out)["headline"]
    found = dn.attack_synthetic(frame[:100], inside, outside, schema=DECLARED)
    assert found.audit().copies.copied_members == 100


def test_released_counts_say_how_many_cells_were_not_read():
    """The count is that of the kinds' query: noisy, and told only where it stands out of the noise."""
    frame = pd.DataFrame({"wage": [f"{i % 90}" if i % 4 else ("see file", "none")[i % 8 // 4] for i in range(4000)]})
    with insecure_noise(np.random.default_rng(0)):
        notes = [row.note for part in dn.release_statistics(frame, "mean(wage)", advantage=0.9).rows for row in part]
        clean = dn.release_statistics(frame[frame["wage"].str.isdigit()], "mean(wage)", advantage=0.9)
    count = float(notes[0].split("about ")[1].split(" ")[0].replace(",", ""))
    assert count == pytest.approx(1000, abs=60)
    assert "cells of wage are no numbers" in notes[0]
    assert not any("cells of wage" in row.note for part in clean.rows for row in part)
