"""A line of a text file is a record: what is wrong with one changes no other."""

import csv
import io
import json

import pandas as pd
import pytest

from deniable.cli._app import run
from deniable.statistics.releasing import read_columns
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

FILLED = {
    "an open quote": ["Anna,5,Aix", "", ""],
    "text behind a quote": ["Annas", "5", "Aix"],
    "a short line": ["Anna", "5", ""],
    "a long line": ["Anna", "5", "Aix"],
    "another separator": ["Anna;5;Aix", "", ""],
    '"""': ['"', "", ""],
}


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
    pd.testing.assert_frame_equal(found.frame.drop(index=17), kept.drop(index=17))
    assert [bad, found.frame.loc[17].tolist(), found.odd] == [
        bad,
        FILLED.get(bad, found.frame.loc[17].tolist()),
        (18,) * (bad in FILLED),
    ]


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
    assert "row 7: other than" in said
    run(["check", str(tmp_path / "t.csv"), "--json"])
    assert json.loads(capsys.readouterr().out)["odd"] == [7]


def test_a_stray_quote_shows_in_no_count(tmp_path):
    """The attack of a reader that swallows rows: the number of them told with certainty whether hers was there."""
    size = []
    for word in ('"Anna', "Anna"):
        lines = [*LINES]
        lines[5] = f"{word},5,Aix"
        opened(tmp_path, lines)
        size.append(read_columns(tmp_path / "t.csv", ["age"], Schema())[0])
    assert size == [N, N]
