"""Files as offices, registers and instruments export them: `check` names what stands beside the records."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.synthesis import SynthesisWarning
from deniable.tables import understand
from deniable.testing import insecure_noise
from deniable.training import TrainingWarning
from oracles.sheets import xlsx

N = 60
DAYS = [dt.date(2023, 1, 1) + dt.timedelta(5 * i) for i in range(N)]
ROWS = [[f"P{i % 7}", 20 + i % 50, 2000 + 7 * (i * 31 % N)] for i in range(N)]


def lines(header, write, end=""):
    return "\n".join([header, *(write(i) for i in range(N)), *end.splitlines(), ""])


FILES = {  # the file; the exit code of check; what it says
    "a total below": (lines("region,sales", lambda i: f"N{i % 3},{i % 9}", "Total,270"), 0, "totals or remarks: 1"),
    "a sum below": (lines("Ort\tMenge", lambda i: f"N{i % 3}\t{i % 9}", "Summe:\t270"), 0, "totals or remarks: 1"),
    "remarks below": (
        lines("c,a,b", lambda i: f"C{i % 5},{i % 7},{i % 3}", '\n"Source: the bank",,\n"Updated: 01/01/2024",,'),
        0,
        "totals or remarks: 2",
    ),
    "no total": (lines("x,y", lambda i: f"{('N', 'Summer', 'Total hip')[i % 3]},{i % 9}"), 0, "!totals"),
    "a total of a year": (lines("x,y", lambda i: f"N{i % 3},{i % 9}", "TOTAL 2023,7"), 0, "totals or remarks: 1"),
    "a title above": (lines("Report 2024;;;\na;b;c;d", lambda i: f"{i % 3};1,5;x;y"), 2, "names 1 of 4 columns"),
    "a separator at the end": (lines("a,b,c,", lambda i: f"{i % 3},{i % 7},x{i % 2},"), 0, "!problem"),
    "an index": (lines(",a,b", lambda i: f"{i},{i % 7},x{i % 2}"), 0, "!problem"),
    "units below the header": (lines("t,p\ns,hPa", lambda i: f"{i % 7},{i % 9}.5"), 2, "two header lines"),
    "cells with the separator": (lines("a,b", lambda i: f"{i},said, that"), 2, "quote cells that hold the separator"),
    "-99": (lines("age,x", lambda i: f"{-99 if i % 9 == 0 else 20 + i % 50},{i % 3}"), 0, "missing = [-99]"),
    "days as numbers": (lines("d,x", lambda i: f"{DAYS[i]:%Y%m%d},{i % 3}"), 0, "kind = 'date' makes it a day"),
    "Excel's truth": (lines("w,x", lambda i: f"{('WAHR', 'FALSCH')[i % 2]},{i % 3}"), 0, "yes/no"),
    "NA for Namibia": (lines("c,x", lambda i: f"{('NA', 'DE', 'FR')[i % 3]},{i % 3}"), 0, "20 cells such as NA"),
    "nearly unique, with a unit": (lines("w,x", lambda i: f"{i}.5 kg,{i % 3}"), 0, "numbers with unit = 'kg'"),
    "minus behind": (lines("w,x", lambda i: f"{i * 7 % 41}-,{i % 3}"), 0, "!unit"),
    "whole numbers with points": (
        lines("w\tx", lambda i: f"{1 + i % 3}.0{i:02}\t{i % 3}"),
        0,
        "not as 1234; else --decimal",
    ),
    "three digits": (lines("w\tx", lambda i: f"0.{i % 9}40\t{i % 3}"), 0, "!1234"),
    "columns of blanks": (lines("w     x", lambda i: f"{i % 9}     {i % 3}"), 2, "separate cells by commas or tabs"),
    "an instrument's lines above": (
        lines("Device: 7\nw,x", lambda i: f"{i % 9},{i % 3}"),
        2,
        "delete a title or comments",
    ),
    "names of rows without a name": (lines("w,x", lambda i: f"{i},{i % 9},{i % 3}"), 2, "name a column of row names"),
    "no header": (lines("1.5,2020-01-01,x", lambda i: f"{i % 9},2020-01-0{1 + i % 9},x"), 0, "dates: 2 of 3; if they"),
    "years in the header": (lines("place,of,2020", lambda i: f"N{i % 9},{i % 3},{i % 5}"), 0, "!if they are a record"),
    "a day of the week": (
        lines("d;x", lambda i: f"Mo, {1 + i % 28:02}.01.2024;{i % 3}"),
        2,
        "in a form that is not understood",
    ),
    "percent": (lines("w,x", lambda i: f"{i % 9} %,{i % 3}"), 0, "5 % was read as 5, not as 0.05"),
    "long numbers": (lines("w,x", lambda i: f"{2**53 + i % 9},{i % 3}"), 0, "above 9007199254740992 are rounded"),
    "numbers that round to one": (
        lines("w,x", lambda i: f"{2**63 + i},{i % 3}"),
        0,
        "9007199254740992 are rounded",
    ),
    "per mille": (lines("w,x", lambda i: f"{i % 9} ‰,{i % 3}"), 0, "5 % was read as 5, not as 0.05"),
    "currencies": (lines("w,x", lambda i: f"{i} {('EUR', 'USD')[i % 2]},{i % 3}"), 0, "signs of several units"),
    "a currency": (lines("w,x", lambda i: f"{i}.50 CHF,{i % 3}"), 0, "!unit"),
    "short years": (lines("w,x", lambda i: f"{1 + i % 28:02}.03.{40 + i % 40},{i % 3}"), 0, "read as 1969 to 2068"),
    "long years": (lines("w,x", lambda i: f"{1 + i % 28:02}.03.{1940 + i},{i % 3}"), 0, "!1969"),
    "months": (lines("w,x", lambda i: f"{1 + i % 12:02}.{1990 + i % 7},{i % 3}"), 0, "read as the number 4.2021"),
    "four decimals": (lines("w,x", lambda i: f"{i % 12:02}.{1970 + 31 * i},{i % 3}"), 0, "!4.2021"),
    "numbers among words": (lines("w,x", lambda i: f"{('a', 'b', 7)[i % 3]},{i % 3}"), 0, "20 cells with a number"),
    "limits": (lines("w,x", lambda i: f"{'<5' if i % 2 else i},{i % 3}"), 0, "!unit"),
}


@pytest.mark.parametrize("name", FILES)
def test_check_names_what_is_no_record(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    text, code, said = FILES[name]
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    assert run(["check", str(path)]) == code
    told = " ".join(capsys.readouterr().out.split())
    assert (said.lstrip("!") in told) == (not said.startswith("!")), told


def test_a_column_with_another_mark_than_the_file_is_named(tmp_path):
    """Declared for all, the comma made texts of the amounts, which were "nearly unique and identify people"."""
    path = tmp_path / "t.csv"
    path.write_text(lines("town;amount;share", lambda i: f"Aa 1;{i * 37 % 59}.{i % 9}5;{i % 7},5"))
    amount, share = understand(path, schema=dn.Schema(decimal=",")).columns[1:]
    assert "60 cells would be numbers with decimal = '.', declared for this column" in "; ".join(amount.notes)
    assert (amount.written, share.written, share.notes) == ("", "decimal comma", ())


SHEETS = {
    "a title": ([["Report 2023"], [], ["name", "age", "pay"], *ROWS], "rows with cells beside the columns"),
    "a title of merged cells": ([["Report", None, ""], ["name", "age", "pay"], *ROWS], "rows with cells beside"),
    "a header of merged cells": ([["Person", None, None, "Pay"], *([*row, 7] for row in ROWS)], "!beside"),
    "a remark beside": ([["name", "age", "pay"], [*ROWS[0], "see note"], *ROWS[1:]], "!problem"),
    "a total": ([["name", "age", "pay"], *ROWS, ["Total", None, 9]], "totals or remarks: 1"),
}


@pytest.mark.parametrize("name", SHEETS)
def test_sheets_whose_first_row_is_no_header(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    pytest.importorskip("python_calamine")
    rows, said = SHEETS[name]
    path = tmp_path / "t.xlsx"
    path.write_bytes(xlsx({"Data": rows}))
    code = run(["check", str(path)])
    told = " ".join(capsys.readouterr().out.split())
    assert (said.lstrip("!") in told) == (not said.startswith("!")), told
    assert code == 2 * ("problem" in told)


def test_a_title_stops_training_by_the_header_alone(tmp_path):
    """Rows say nothing there: the first line names most columns, or the file is refused."""
    for rows in (["1,2,3,4"], ["1,2,3,4", ",,,", "x,y,z,w"]):
        path = tmp_path / "t.csv"
        path.write_text("\n".join(["Report,,,", *rows]) + "\n")
        with pytest.raises(dn.InputError, match="names 1 of 4 columns"):
            dn.release_statistics(path, "count()", advantage=0.1)
    assert understand({"a": [1, 2, 3], "": [4, 5, 7]}).problems == ()


def test_labels_of_values_and_broken_workbooks_are_named(tmp_path):
    frame = pd.DataFrame({"town": pd.Categorical(["A", "B"] * 30), "x": range(60)})
    frame.to_stata(tmp_path / "t.dta", write_index=False)
    assert understand(tmp_path / "t.dta").notes[0] == (
        "labels of values were not read (town): kind = 'code' makes groups of their numbers"
    )
    pytest.importorskip("python_calamine")
    (tmp_path / "t.xls").write_text("<html><table><tr><td>w</td></tr></table></html>")
    with pytest.raises(dn.InputError, match=r"t\.xls' could not be read: .*; save it anew as \.csv"):
        understand(tmp_path / "t.xls")


def test_every_command_says_which_sheet_it_read(tmp_path, capsys):
    """A cover sheet was "a table whose attack failed", or had no column of that name, and no word of the others."""
    pytest.importorskip("python_calamine")
    path = tmp_path / "t.xlsx"
    path.write_bytes(xlsx({"Cover": [["Report"], ["2024"]], "Data": [["name", "age", "pay"], *ROWS]}))
    for command in (
        ["publish", str(path), "--statistic", "mean(age)"],
        ["train", str(path), "--target", "age"],
        ["profile", str(path), "--target", "age", "--epsilon", "1"],
        ["audit", str(path), "--members", str(path), "--nonmembers", str(path)],
        ["attack", str(path), "--target", "age", "--model", "linear"],
    ):
        assert run(command) > 0
        assert "sheet 'Cover' was read; others are 'Data' (--sheet)" in " ".join(capsys.readouterr().err.split())


def test_columns_that_are_empty_and_have_no_name_are_in_nobodys_way(tmp_path, capsys):
    """A model asked for "(column 6)", which separators at the end of a header made, and for a spacer."""
    head, rows = "a,,b,y", [f"{i % 9},,{(7 * i) % 50},{('no', 'yes')[(i % 9) > 4]}" for i in range(2000)]
    plain, ended = tmp_path / "plain.csv", tmp_path / "ended.csv"
    plain.write_text("\n".join([head, *rows, ""]))
    ended.write_text("\n".join([head + ",,", *(row + ",," for row in rows), ""]))
    made = []
    for path in (plain, ended):
        found = understand(path, "y")
        assert [column.name for column in found.columns] == ["a", "(column 2)", "b"]
        assert (len(found.frame), found.odd, found.problems) == (2000, (), ())
        with insecure_noise(np.random.default_rng(0)), pytest.warns(TrainingWarning, match="'.column 2.': nothing"):
            model = dn.PrivateClassifier(advantage=0.9, classes=["no", "yes"]).fit(path, target="y")
        assert [column.name for column in model.columns_] == ["a", "b"]
        made.append(model.predict_proba(pd.DataFrame({"a": range(9), "b": range(9)})))
    np.testing.assert_array_equal(*made)


def test_a_made_up_table_keeps_the_columns_that_are_empty():
    frame = pd.DataFrame({"a": np.arange(2000) % 9, "b": None})
    with insecure_noise(np.random.default_rng(0)), pytest.warns(SynthesisWarning, match="'b': nothing"):
        made = dn.PrivateSynthesizer(advantage=0.9).fit(frame).sample(20, rng=0)
    assert list(made) == ["a", "b"]
    assert made["b"].isna().all()


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_an_audit_names_a_title_above_the_header(tmp_path, ending, capsys):
    """Tables with a title in each were compared by one column called after it."""
    rows = [[i % 9, f"N{i % 7}", i] for i in range(90)]
    for name, part in (("made", rows), ("in", rows[:45]), ("out", rows[45:])):
        table = [["Sales 2024", "", ""], ["a", "b", "c"], *part]
        text = "\n".join(",".join(map(str, row)) for row in table).encode()
        (tmp_path / f"{name}{ending}").write_bytes(text if ending == ".csv" else xlsx({"S": table}))
    made, inside, outside = (str(tmp_path / f"{name}{ending}") for name in ("made", "in", "out"))
    assert run(["audit", made, "--members", inside, "--nonmembers", outside]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "delete" in told
    assert "title" in told
