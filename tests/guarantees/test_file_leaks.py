"""Promise: a line of a text file and a row of a sheet is read alone: it moves no other, and is said nowhere.

A person's line or row is added to a file, as bytes; both ways to a private result are replayed without it.
"""

import contextlib
import ctypes
import datetime as dt
import logging
import os
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import deniable as dn
from deniable.cli._app import run
from deniable.noise.silence import only_our_words, sealed
from deniable.tables import files
from deniable.tables.files import open_table
from deniable.training import fitting
from deniable.workflows import train
from deniable.workflows.train import train_table
from guarantees.replay import Recorded
from oracles.sheets import xlsx

N = 60
RNG = np.random.default_rng(0)
HEADER = "age;town;ill"
POINT = dn.Schema(decimal=".")
LINES = [f"{20 + i};{('Ulm', 'Rome')[i % 2]};{('no', 'yes')[i * 7 % 3 == 0]}" for i in range(N)]
MU = 2 * norm.ppf(0.55) * (1 + 1e-6)


def shifted(text):
    """Characters whose UTF-16 units hold the bytes of ``text``, one unit later."""
    return "".join(chr(ord(c) << 8) for c in text)


HERS = {  # one line each
    "bytes of line ends in other characters": "41;" + shifted("\n" + "99;Oslo;yes\n" * 200) + "\u0100;no",
    "the same in the other order": "41;" + "\u0a0d\u000d\u0a00".replace("\r", "") * 100 + ";no",
    "an open quote": '41;"Rome;yes',
    "a long line": "41;Rome;yes;more;more",
    "a short line": "41",
    "a cell less": "41;Rome",
    "an empty cell more": "41;Rome;yes;",
    "text behind a quote": '"41"x;Rome;yes',
    "line ends of others": "41;Ro\u2028me\x0b\x0c\x85\x1c;yes",
    "a mark within": "\ufeff41;Rome;yes",
    "a character of two units": "41;Ro\U0001f600me;yes",
    "no character": "41;Ro\0me;yes",
    "many cells": ";" * 500,
    "only a quote": '"',
}
UNITS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-8": b"", "cp1252": b""}


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr(fitting, "STEPS", 10)


def trained(path):
    made = train_table(path, target="ill", advantage=0.1, classes=["no", "yes"], holdout=0.0, schema=POINT)
    page = "\n".join([made.public.to_json(), made.public.to_text(), made.public.to_html()])
    return {"model": made.model, "remarks": made.remarks, "page": page}


def published(path):
    asked = ["count() by town", "mean(age)", "median(age)", "count()"]
    made = dn.release_statistics(path, asked, advantage=0.1, schema=POINT)
    return {"rows": made.to_csv(), "certificate": str(made.certificate), "account": made.account, "all": str(made)}


WAYS = {"train": trained, "publish": published}


def replayed_files(way, path, write, tables):
    """Record on the first table; return what its neighbours move or change, where that is more than certified."""

    def made(table):
        write(table)
        return WAYS[way](path)

    recorded = Recorded(made, tables[""])
    assert "error" not in recorded.left
    found = {name: recorded.replay(table) for name, table in tables.items()}
    return {name: one for name, one in found.items() if one.differ or not one.mu <= MU}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("code", UNITS)
def test_a_line_moves_the_sums_by_one_record_and_nothing_else(way, code, tmp_path):
    path = tmp_path / "people.csv"

    def write(lines):
        text = "".join(f"{line}\n" for line in [HEADER, *lines])
        path.write_bytes(UNITS[code] + text.encode(code, "replace"))

    tables = {name: [*LINES[:7], hers, *LINES[7:]] for name, hers in HERS.items()}
    assert replayed_files(way, path, write, {"": LINES} | tables) == {}


NO_DATE = dt.datetime(9999, 12, 31)


def sheet(path, rows):
    pytest.importorskip("python_calamine")
    path.write_bytes(xlsx({"Sheet": [[NO_DATE if cell == 99999999 else cell for cell in row] for row in rows]}))


ROWS = [[int(age), town, ill] for age, town, ill in (line.split(";") for line in LINES)]
HER_ROWS = {
    "a remark to the right": [41, "Rome", "yes", None, "see Mueller"],
    "a remark beside the header": [41, "Rome", "yes", "see Mueller"],
    "no date": [99999999, "Rome", "yes"],
    "a short row": [41],
    "an error": ["#REF!", "#N/A", "yes"],
    "an empty row": [None],
    "a text": ["see Mueller", 7.5, True],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_row_moves_the_sums_by_one_record_and_nothing_else(way, tmp_path):
    path = tmp_path / "people.xlsx"
    header = HEADER.split(";")
    tables = {name: [*ROWS[:7], hers, *ROWS[7:]] for name, hers in HER_ROWS.items()}
    tables["far below"] = [*ROWS, *[[None]] * 200, [41, "Rome", "yes"]]
    found = replayed_files(way, path, lambda rows: sheet(path, [header, *rows]), {"": ROWS} | tables)
    assert found == {}


def test_a_warning_about_a_cell_of_a_sheet_reaches_nobody(tmp_path, capfd):
    path = tmp_path / "people.xlsx"
    sheet(path, [HEADER.split(";"), [99999999, "Rome", "yes"], *ROWS])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        WAYS["train"](path)
        WAYS["publish"](path)
    assert [str(one.message) for one in heard if "serial" in str(one.message)] == []
    model = tmp_path / "m.skops"
    for words in (
        ["train", path, "--target", "ill", "--classes", "no,yes", "--out", model],
        ["publish", path, "--statistic", "mean(age)"],
        ["check", path, "--target", "ill"],
        ["predict", model, path],
        ["profile", path, "--target", "ill", "--epsilon", "1"],
    ):
        assert run([str(word) for word in words]) == 0
        said = capfd.readouterr()
        assert not [word for word in ("99999999", "serial", "A2") if word in said.out + said.err], words


TELLS = {
    "warning": lambda text: warnings.warn(text, UserWarning, stacklevel=1),
    "print": print,
    "kept stream": lambda text: print(text, file=sys.__stderr__),
    "descriptor": lambda text: os.write(2, text.encode()),
    "compiled": lambda text: ctypes.CDLL(None).puts(text.encode()),
    "log": lambda text: logging.getLogger("reader").error(text),
}


def fails(kind):
    def raising(text):
        raise kind(text)

    return raising


FAILURES = {kind.__name__: fails(kind) for kind in (ValueError, OSError, KeyError, RuntimeError, SystemExit)}


@pytest.fixture
def reader(monkeypatch):
    """A reader of files that says something of a cell."""

    def install(tell):
        inner = files.open_file

        def speaking(path, *more):
            tell("see Mueller")
            return inner(path, *more)

        monkeypatch.setattr(files, "open_file", speaking)

    return install


@pytest.mark.parametrize("tell", TELLS)
@pytest.mark.parametrize("open_room", [False, True])
def test_what_a_reader_says_stays_in(tell, open_room, reader, tmp_path, capfd, caplog, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_text("\n".join([HEADER, *LINES]))
    reader(TELLS[tell])
    if open_room:  # negative control
        opened, public = files.open_table, contextlib.nullcontext()
    else:
        opened, public = trained, only_our_words()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        opened(path)
        if not open_room:
            published(path)
            run(["check", str(path)])
            with public:
                open_table(path)
    ctypes.CDLL(None).fflush(None)
    said = "".join(capfd.readouterr()) + caplog.text + "".join(str(one.message) for one in heard)
    assert ("Mueller" in said) == open_room


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("way", WAYS)
def test_an_error_of_a_reader_leaves_as_its_kind(failure, way, reader, tmp_path, capfd):
    path = tmp_path / "people.csv"
    path.write_text("\n".join([HEADER, *LINES]))
    reader(FAILURES[failure])
    with pytest.raises(RuntimeError, match=failure) as caught:
        WAYS[way](path)
    assert "Mueller" not in str(caught.value)
    asked = ["--target", "ill"] if way == "train" else ["--statistic", "mean(age)"]
    assert run([way, str(path), *asked]) == 70
    assert "Mueller" not in "".join(capfd.readouterr())


def test_words_of_compiled_code_stay_in_and_our_own_leave(monkeypatch):
    with pytest.raises(RuntimeError, match=r"^ValueError in other code; its words are withheld$"), only_our_words():
        float("see Mueller")
    monkeypatch.setattr(train, "open_table", lambda rows, _: {}[rows])
    with pytest.raises(RuntimeError, match="KeyError"):
        train_table("people.csv")
    with pytest.raises(dn.InputError, match="holdout must be"):
        train_table("people.csv", holdout=2)
    blocks = (pd.DataFrame({"a": [float(text)], "y": [0]}) for text in ["1", "see Mueller"])
    with pytest.raises(RuntimeError, match="withheld") as caught:
        dn.PrivateClassifier(advantage=0.1).fit(blocks, target="y")
    assert "Mueller" not in str(caught.value)


def test_threads_leave_the_streams_open(capfd):
    """Rooms that overlap in time: the last one to leave opens the streams."""
    first, second = threading.Event(), threading.Event()

    def early():
        with sealed():
            first.set()
            second.wait(5)
        print("inside", end="")

    thread = threading.Thread(target=early)
    thread.start()
    first.wait(5)
    with sealed():
        second.set()
        thread.join(5)
        print("inside", end="")
    print("after")
    os.write(1, b"after\n")
    assert sorted(capfd.readouterr().out.split()) == ["after", "after"]
    assert logging.root.manager.disable == logging.NOTSET


def test_who_is_hidden_is_said_as_the_file_says_it(tmp_path, capsys):
    frame = pd.DataFrame({"age": range(N), "town": ["Ulm", "Rome"] * (N // 2), "ill": ["no", "no", "yes"] * (N // 3)})
    frame.assign(who=[f"p{i % 20}" for i in range(N)]).to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    limit = dn.Limit(advantage=0.1, group_size=2)
    for name, group, unit, several in (
        ("people.csv", None, "line of the file", "lines of the file"),
        ("people.csv", "who", "person", "persons"),
        ("people.parquet", None, "record", "records"),
    ):
        made = train_table(tmp_path / name, target="ill", limit=limit, classes=["no", "yes"], holdout=0, group=group)
        certificate = made.model[-1].certificate_
        assert certificate.unit == unit
        assert f"hides whether any one {unit} was" in str(certificate)
        assert f"for any 2 {several} in or out together" in str(certificate)
        pages = [made.public.to_text(), made.public.to_json(), made.public.to_html()]
        assert [one for one in pages if f"add or remove one {unit}" not in " ".join(one.split())] == []
        found = dn.release_statistics(tmp_path / name, "mean(age)", advantage=0.1, group=group)
        assert f"whether a {unit} is in the table" in str(found)
        assert found.certificate.unit == unit
        assert f"hides whether any one {unit} was" in str(found.certificate)
        asked = ["publish", str(tmp_path / name), "--statistic", "mean(age)"] if group is None else ["--help"]
        assert run(asked) == 0
        assert unit in capsys.readouterr().out or group


NOTE = '"fell\n' + "\n".join(f"30;Rome;yes {i}" for i in range(3)) + '\nand rose";x;no'


def test_a_cell_with_line_ends_is_some_lines_and_most_are_no_records(tmp_path):
    note = "\n".join(["41;", '"fell', *["and rose"] * 59, 'again";yes'])
    (tmp_path / "people.csv").write_text("\n".join([HEADER, *LINES, note.replace("41;\n", "41;")]))
    opened = open_table(tmp_path / "people.csv")
    assert (len(opened.frame), len(opened.odd)) == (N + 1, 60)  # the last line lacks but one cell
    (tmp_path / "people.csv").write_text("\n".join([HEADER, *LINES, NOTE]))
    opened = open_table(tmp_path / "people.csv")
    assert (len(opened.frame), opened.unit) == (N + 4, "line of the file")  # crafted lines count, and it says so
