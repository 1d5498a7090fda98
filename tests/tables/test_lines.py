"""A line of a text file is a record: what is wrong with one changes no other."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
import skops.io

import deniable as dn
from deniable.cli._app import run
from deniable.statistics.releasing import read_columns
from deniable.tables import TableWarning, understand
from deniable.tables.files import open_file
from deniable.tables.schema import Schema

N = 40
HEADER = "name,age,town"
LINES = [f"P{i},{20 + i},Köln {i % 3}" for i in range(N)]
BAD = {
    "an open quote": b'"Anna,5,Aix',
    "a quote within": b'An"na,5,Aix',
    "text behind a quote": b'"Anna"s,5,Aix',
    "a Latin-1 byte": b"J\xfcrgen,5,Aix",
    "bytes of no encoding": b"\x81\xff\xfe\x00,5,\xc3",
    "a short line": b"Anna,5",
    "a long line": b"Anna,5,Aix,Bonn",
    "another separator": b"Anna;5;Aix",
    '"""': b'"""',
    "a cut character": b"Anna,5,Aix\xc3",
    "a cell of two megabytes": b"A\xc3\xa4" * 700_000 + b",5,Aix",
}

NO_RECORD = {"an open quote", "text behind a quote", "a long line", "another separator", '"""'}


def opened(folder, lines, header=HEADER, name="t.csv"):
    path = folder / name
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in (header, *lines)))
    return open_file(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_line_changes_its_own_record_only(tmp_path, bad, end):
    kept = opened(tmp_path, LINES).frame
    path = tmp_path / "bad.csv"
    lines = [line.encode() for line in (HEADER, *LINES)]
    lines[18] = BAD[bad]
    path.write_bytes(end.encode().join(lines))
    found = open_file(path)
    weighs = bad not in NO_RECORD
    assert (bad, found.odd) == (bad, () if weighs else (18,))
    others = found.frame.drop(index=[17] * weighs).reset_index(drop=True)
    pd.testing.assert_frame_equal(others, kept.drop(index=17).reset_index(drop=True))
    if bad == "a short line":
        assert found.frame.loc[17].tolist() == ["Anna", "5", ""]


def test_a_reader_of_the_whole_text_loses_the_records_behind_an_open_quote():
    """What the rule prevents: the usual reader swallows every later record."""
    lines = [HEADER, *LINES]
    lines[18] = BAD["an open quote"].decode()
    assert len(list(csv.reader(io.StringIO("\n".join(lines))))) == 19


def test_bytes_are_read_one_by_one(tmp_path):
    frame = opened(tmp_path, [b"J\xfcrgen,5,K\xc3\xb6ln \x80", *LINES[1:]]).frame
    assert list(frame.loc[0]) == ["Jürgen", "5", "Köln €"]


def test_quotes_that_close_are_quotes(tmp_path):
    frame = opened(tmp_path, ['"Doe, ""J""",5,"x"', '"","",""', "", ",,"]).frame
    assert frame.to_numpy().tolist() == [['Doe, "J"', "5", "x"], ["", "", ""], ["", "", ""]]
    one = opened(tmp_path, ["a", '""', "b"], header="name")
    assert (one.frame["name"].tolist(), one.odd) == (["a", "", "b"], ())


@pytest.mark.parametrize(
    ("name", "header", "columns"),
    [
        ("t.csv", "a,b;c", ["a", "b;c"]),
        ("t.csv", "a;b;c", ["a", "b", "c"]),
        ("t.tsv", "a,b\tc", ["a,b", "c"]),
        ("t.tsv", "a,b", ["a", "b"]),
        ("t.csv", '"a;b",c', ["a;b", "c"]),
    ],
)
@pytest.mark.parametrize("line", ["1,2", "1;2;3", "1\t2", "1|2|3|4"])
def test_the_separator_is_that_of_the_header_line(tmp_path, name, header, columns, line):
    assert list(opened(tmp_path, [header, *[line] * 5], header, name).frame.columns) == columns


def test_the_owner_is_told_which_rows_could_not_be_read(tmp_path, capsys):
    lines = [*LINES]
    lines[6] = BAD["an open quote"].decode()
    opened(tmp_path, lines)
    run(["check", str(tmp_path / "t.csv")])
    said = " ".join(capsys.readouterr().out.split())
    assert "an open quote): 1, row 7" in said
    with pytest.warns(TableWarning, match="lines that are no records and were left out: 1"):
        understand(tmp_path / "t.csv", "town").supervised()
    run(["check", str(tmp_path / "t.csv"), "--json"])
    assert json.loads(capsys.readouterr().out)["odd"] == [7]


def test_a_stray_quote_shows_in_no_count(tmp_path):
    """The attack of a reader that swallows rows: the number of them told with certainty whether hers was there."""
    size = []
    for word in ([], ['"Anna,5,Aix']):
        opened(tmp_path, [*LINES[:5], *word, *LINES[5:]])
        size.append(read_columns(tmp_path / "t.csv", ["age"], Schema())[0])
    assert size == [N, N]


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_line_is_a_record_iff_it_is_one_by_itself(tmp_path, width):
    """A hundred odd lines: the table of all is that of each alone, as a strict reader of one line reads it."""
    rng = np.random.default_rng(width)
    letters = ['"', ",", "a", ";", " ", "\\", "'", "\x85", "\u2028", "\t", "\0", '""', '"a"']
    lines = ["".join(letters[i] for i in rng.integers(len(letters), size=rng.integers(1, 9))) for _ in range(400)]
    header = ",".join("abc"[:width])
    expected, odd = [], []
    for i, line in enumerate(lines, 1):
        try:
            cells = next(csv.reader([line], strict=True))
        except csv.Error:
            cells = []
        if len(cells) == width + 1 and not cells[-1]:
            cells.pop()
        if cells and len(cells) == width - 1:
            cells.append("")
        expected += [cells] if len(cells) == width else []
        odd += [] if len(cells) == width else [i]
    found = opened(tmp_path, lines, header)
    assert (found.frame.to_numpy().tolist(), list(found.odd)) == (expected, odd)
    assert len(expected) > 20 < len(odd)
    alone = [row for line in lines[:100] for row in opened(tmp_path, [line], header).frame.to_numpy().tolist()]
    assert alone == expected[: len(alone)]


def test_a_prediction_a_line(tmp_path, capsys):
    """Lines that are no records keep their place: the rows of the answer are those of the file."""
    frame = pd.DataFrame({"age": range(200), "y": [i // 100 for i in range(200)]})
    model = dn.PrivateClassifier(advantage=0.9, classes=[0, 1]).fit(frame[["age"]], frame["y"])
    (tmp_path / "m.skops").write_bytes(skops.io.dumps(model))
    opened(tmp_path, ["20", "180", '"20', "20,30", "190", "20,", "1,2,3"], "age")
    words = ["predict", str(tmp_path / "m.skops"), str(tmp_path / "t.csv")]
    assert run(words) == 0
    told = capsys.readouterr()
    assert [line.split(",")[0] for line in told.out.splitlines()] == ["prediction", "0", "1", "", "", "1", "0", ""]
    assert "no prediction for lines that are no records: 3" in told.err
    assert run([*words, "--json"]) == 0
    assert [row["prediction"] for row in json.loads(capsys.readouterr().out)] == [0, 1, None, None, 1, 0, None]
