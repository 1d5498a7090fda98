"""Hostile inputs through the command line: one clear line and code 2; no traceback, no half-written file, no guess."""

import gzip
import json
import re

import pandas as pd
import pytest

import deniable.cli  # noqa: F401  (registers the commands)
from deniable.cli._app import _parser, run
from deniable.tables import understand

N = 40
GOOD = "age,town,y\n" + "".join(f"{20 + 7 * i % 41},{'ab'[i % 3 == 0]},{('no', 'yes')[i % 2]}\n" for i in range(N))


# file → (its content or who writes it, what the message must say)
FILES = {
    "twice-y.csv": ("age,y,y\n" + "1,0,1\n2,1,0\n" * 10, "more than once"),
    "twice-age.csv": ("age,age,y\n" + "1,2,1\n2,1,0\n" * 10, "more than once"),
    "twice-spaces.csv": ("age, age,y\n" + "1,2,1\n2,1,0\n" * 10, "more than once"),
    "ragged.csv": (GOOD + "1,2\n", "1 missing cell, first in row 40"),
    "decimal-unquoted.csv": ("age,y\n" + "1,5,yes\n2,5,no\n" * 10, "no line has as many cells"),
    "empty.csv": ("", "does not name columns"),
    "blank.csv": ("\n\n \n", "does not name columns"),
    "header-only.csv": ("age,town,y\n", "no rows"),
    "binary.csv": (bytes(range(256)) * 40, "does not name columns"),
    "utf16-cut.csv": (GOOD.encode("utf-16")[:-1], "even number of bytes"),
    "open-header.csv": (GOOD.replace("age", '"age', 1), "does not close"),
    "utf16-no-mark.csv": (GOOD.encode("utf-16-le"), "does not name columns"),
    "not-gzip.csv.gz": (GOOD.encode(), "could not be read"),
    "cut.csv.gz": (gzip.compress(GOOD.encode() * 50)[:60], "could not be read"),
    "garbage.parquet": ("not parquet", "could not be read"),
    "nothing.parquet": (b"", "could not be read"),
    "garbage.feather": ("not feather", "could not be read"),
    "garbage.xlsx": ("PK", ""),
    "people.zip": (b"PK\x03\x04", "could not be read"),
    "no-y.csv": (GOOD.replace("y\n", "yy\n", 1), "did you mean 'yy'"),
    "constant-y.csv": (GOOD.replace(",no\n", ",yes\n"), "constant"),
    "gaps-in-y.csv": (GOOD.replace(",no\n", ",\n", 3), "missing"),
    "names-as-y.csv": ("age,y\n" + "".join(f"{i % 7},Person {i}\n" for i in range(N)), "cannot be predicted"),
    "only-ids.csv": (
        "id,name,y\n" + "".join(f"{i},Person {i},{i % 2}\n" for i in range(N)),
        "no column that can be used",
    ),
    "only-constants.csv": ("a,b,y\n" + "".join(f"1,x,{i % 2}\n" for i in range(N)), "no column that can be used"),
    "only-y.csv": ("y\n" + "0\n1\n" * 20, "no column that can be used"),
    "html.csv": ("<html><body>Sorry, no such page</body></html>\n" * 20, "is not a column"),
    "folder.csv": (None, "does not exist"),
}
COMMANDS = {
    "check": [],
    "profile": ["--epsilon", "1", "--out", "made.csv"],
    "attack": ["--model", "tree", "--owner-report", "made.json", "--shadows", "4"],
    "train": ["--out", "made.skops", "--report", "made.html"],
}
# a training reads each cell alone and refuses no table for what is in it: only noisy counts of so few records say no
READ_ALONE = {
    *("1 missing cell, first in row 40", "constant", "missing", "cannot be predicted", "no column that can be used")
}
FROM_COUNTS = re.compile("cannot be |(?:lost in|out of) the noise")
# a check of a table without features is fine; an attack and a training take a target of any kind
FINE = {("check", name) for name in ("only-ids.csv", "only-constants.csv", "only-y.csv")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "scores.csv").write_text("score,member\n" + "1.5,1\n0.5,0\n" * 30)
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (tmp_path / "words.toml").write_text('[columns.age]\nrange = "old"\n')
    (tmp_path / "wrong.toml").write_text("advantage = 'x'")
    (tmp_path / "report.json").write_text('{"schema_version": "1.2"}')
    (tmp_path / "words.json").write_text('{"age": "old"}')
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "history.json").write_text("[[1, 2]]")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "reversed.toml").write_text("[columns]\nage = {range = [90, 18]}\n")
    (tmp_path / "unknown.toml").write_text("[columns]\naeg = {range = [18, 90]}\n")
    (tmp_path / "one.csv").write_text("score,member\n1,1\n")
    (tmp_path / "nan.csv").write_text("score,member\n" + "nan,1\n0.5,0\n" * 30)
    (tmp_path / "words.csv").write_text("score,member\n" + "high,1\n0.5,0\n" * 30)
    (tmp_path / "perhaps.csv").write_text("score,member\n1,perhaps\n")
    (tmp_path / "narrow.csv").write_text("score\n1\n")
    (tmp_path / "same.csv").write_text("score,member\n" + "1,1\n2,1\n" * 30)
    return tmp_path


PYTHON = re.compile(r"\bdn\.|\bdeniable\.[a-z]|\bLimit\(|\bnp\.")
OPTIONS = {option for command in _parser().commands.values() for one in command.params for option in one.opts}
OPTIONS |= {"--help", "--debug"}


def refusal(words, folder, capsys, says=""):
    """What is wrong with how ``words`` are refused: code 2, one line with what ``says``, no cell of a file written."""
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    code = run(words)
    told = capsys.readouterr()
    if before != {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}:
        return "wrote a file"
    errors = [line for line in told.err.splitlines() if line.startswith("error:")]
    if words[0] == "check" and not errors:
        good = "problem:" in told.out
    else:
        good = len(errors) == 1 and len(errors[0]) > 15 and not told.out.strip()
    good = good and code == 2 and "Traceback" not in told.err
    if PYTHON.search(told.err) or set(re.findall(r"--[a-z][a-z-]+", told.err)) - {*words, *OPTIONS}:
        return f"speaks of Python, or of an option that does not exist: {told.err}"
    said = " ".join((told.out + told.err).split())
    fits = says.search(said) if isinstance(says, re.Pattern) else says in said
    return "" if good and fits else f"code {code}: {told.out} {told.err}"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hostile_tables(folder, capsys):
    wrong = {}
    for name, (content, says) in FILES.items():
        path = folder / name
        if content is None:
            path.mkdir()
        elif callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        for command, more in COMMANDS.items():
            if (command, name) not in FINE:
                told = FROM_COUNTS if command == "train" and says in READ_ALONE else says
                wrong[command, name] = refusal([command, name, "--target", "y", *more], folder, capsys, told)
    assert len(wrong) > 100
    assert {case: said for case, said in wrong.items() if said} == {}


DATA = "good.csv --target y"
LINES = [  # what is typed, and a word of what is said
    "assess -> RUN",
    "assess dpsgd,1,.1 -> dpsgd,NOISE_MULTIPLIER,SAMPLE_RATE,STEPS",
    "assess dpsgd,nan,.1,10",
    "assess dpsgd,1,.1,1.5 -> whole number",
    "assess laplace,2 + laplace,3 -> a run is one argument: deniable assess 'laplace,2 + laplace,3'",
    "assess dpsgd,1,.1,10 --report nowhere/report.html -> does not exist",
    "assess dpsgd,1,.1,10 --report report.pdf -> .html",
    "assess dpsgd,1,.1,10 --prior 1 -> prior",
    "assess dpsgd,1,.1,10 --colour red -> --colour",
    "assess dpsgd,1,.1,inf",
    "assess nowhere.json",
    "assess deep.json",
    "assess history.json",
    "assess words.json",
    "assess bytes.json",
    "assess good.csv",
    "assess nowhere.pt",
    f"profile {DATA} --epsilon 1 --by nothing -> --by 'nothing' is not a column",
    f"profile {DATA} --epsilon 1 --top 0",
    f"profile {DATA} --epsilon 1 --out made.png -> --out",
    f"profile {DATA}",
    "publish good.csv -> --statistic",
    "publish good.csv --statistic mean(age) --out good.csv -> --out and data name the same file, 'good.csv'",
    "predict good.csv good.csv --out good.csv -> name the same file",
    "train good.csv --target y --report made.html --owner-report ./made.html -> name the same file, 'made.html'",
    "assess dpsgd,1,.1,10 --junit history.xml --report made.html --meta made.html -> --report and meta name the same",
    "train good.csv --target y --sheet first -> it has no sheets",
    "train good.csv --target yy -> is not a column",
    "synthesize good.csv --rows -1 -> --rows",
    "examples --out good.csv -> 'good.csv': File exists",
    "assess report.json -> is a saved report: give it to deniable verify",
    "assess dpsgd,1,.1,10 --policy wrong.toml -> policy 'wrong.toml': advantage must be a number",
    "publish good.csv --statistic maen(age) -> did you mean 'mean'",
    "publish good.csv --statistic mean(age) --target y -> --target",
    "publish good.csv --statistic mean(nothing)",
    "publish good.csv --statistic mean(age) --out made.txt -> .csv or .json",
    "publish good.csv --statistic mean(age) --out nowhere/made.csv",
    "publish good.csv --statistic mean(age) --certificate cert.txt",
    "publish good.csv --statistic mean(age) --limit tpr=nan,fpr=0",
    f"attack {DATA} --model LogisticRegression -> must be one of linear, tree",
    f"attack {DATA} --model nowhere.skops -> could not be read",
    "attack nowhere.csv --target y --model linear -> does not exist",
    f"attack {DATA} --model scores.csv",
    f"attack {DATA} --model tree --shadows 3",
    f"attack {DATA} --model tree --method magic",
    f"attack {DATA} --model tree --jobs 0",
    f"attack {DATA} --model tree --out scores.txt",
    f"attack {DATA} --model tree --seed -1",
    f"attack {DATA}",
    "audit nowhere.csv -> does not exist",
    "audit nowhere.csv --stream gaussian,1",
    "audit scores.csv --members x.csv -> --members and --nonmembers go together",
    "audit scores.csv epsilon,1 --plot x.svg -> --plot is for a stream",
    "audit scores.csv epsilon,1 --stream --sheet a -> --sheet is for scores and a table",
    "audit scores.csv epsilon,1 --stream --schema a.toml -> --schema is for a table",
    "audit scores.csv --schema a.toml -> --schema is for a table",
    "audit scores.csv --method nearest -> --method is for a table",
    "audit one.csv",
    "audit nan.csv",
    "audit words.csv",
    "audit same.csv",
    "audit good.csv",
    "audit words.csv gaussian,1 --stream -> must hold numbers",
    "audit perhaps.csv gaussian,1 --stream -> must say member or not",
    "audit narrow.csv gaussian,1 --stream -> no member column",
    "audit scores.csv --score nothing",
    "audit scores.csv --member nothing",
    "audit scores.csv epsilon,1 gaussian,1 -> unexpected extra argument",
    "audit scores.csv --stream -> RUN is missing",
    "audit scores.csv --owner-report made.pdf",
    "bound epsilon,x",
    "bound epsilon,1,2 -> delta",
    "bound epsilon,1 --plot picture.gif -> --plot",
    "bound epsilon,1 --plot nowhere/picture.svg",
    "bound",
    "calibrate dpsgd,?,.1,10 -> --advantage 0.1",
    "calibrate dpsgd,?,.1,10 --advantage nan",
    "calibrate dpsgd,?,.1,10 --advantage .1 --limit accuracy=.6",
    "compare dpsgd,1,0.1,10 x",
    "compare dpsgd,1,0.1,10 dpsgd,1,0.1",
    "compare",
    "compare 1,2",
    "plan dpsgd,?,1,10 --records 1000 --precision .3 --fpr 1e-3 --rate .9 -> guessing",
    "plan dpsgd,?,.1,10 --records nan --precision .3 --fpr .1",
    "plan dpsgd,?,.1,10 --advantage .1",
    f"train {DATA} --advantage 1 --out made.skops -> promises nothing",
    f"train {DATA} --limit tprr=0.6 -> did you mean 'tpr'",
    "train good.csv --out made.skops -> target is missing",
    "train good.csv --target ages --out made.skops -> did you mean 'age'",
    f"train {DATA} --schema reversed.toml --out made.skops -> must be finite with low < high",
    f"train {DATA} --schema unknown.toml --out made.skops -> did you mean 'age'",
    f"train {DATA} --out made.txt -> --out must end in",
    f"train {DATA} --report made.pdf -> --report must end in",
    f"train {DATA} --out nowhere/made.skops",
    f"train {DATA} --model forest --out made.skops",
    f"train {DATA} --model linear --interactions 1 -> interactions are for",
    f"train {DATA} --limit laplace,2",
    "calibrate epsilon,?,0.5 --advantage 0.1 -> but the best from",
    "compare epsilon,1 -> runs must be between 2",
    "publish good.csv",
    "predict model.skops",
    "predict good.csv good.csv -> must be the .skops file",
    f"train {DATA} --task sorting --out made.skops",
    f"train {DATA} --group nothing --out made.skops -> group 'nothing' is not a column",
    f"train {DATA} --drop nothing --out made.skops",
    f"train {DATA} --holdout 1 --out made.skops -> holdout must be",
    f"check {DATA} --drop nothing",
    "check good.csv --target nothing",
    f"check {DATA} --schema list.json",
    f"profile {DATA} --epsilon 1 --schema unknown.toml -> 'aeg' is not a column",
    f"attack {DATA} --model linear --schema words.toml -> range of 'age'",
    f"check {DATA} --schema deep.json",
    "app --port 0",
    "app --port 70000",
    f"train {DATA} --report nowhere/demo.html",
    "nothing -> nothing",
    "--nothing",
]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hostile_lines(folder, capsys):
    assert len(set(LINES)) == len(LINES) > 90
    wrong = {}
    for text in LINES:
        line, _, says = text.partition(" -> ")
        wrong[line] = refusal(line.split(), folder, capsys, says)
    assert {line: said for line, said in wrong.items() if said} == {}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_not_hostile_works(folder, capsys):
    """The control: the same lines without the fault."""
    for line in (
        f"check {DATA}",
        f"profile {DATA} --epsilon 1 --out made.csv",
        f"attack {DATA} --model tree --shadows 8 --owner-report made.json",
        "publish good.csv --statistic mean(age) --advantage 0.4",
        "audit scores.csv",
        "assess dpsgd,1,1e-300,10",
    ):
        assert run(line.split()) == 0, (line, capsys.readouterr().err)


# a misreading is worse than a refusal: what the cells hold, the kind that is right, and a word of what has to be said
MISREADINGS = {
    "either": ([f"{i + 1},{200 + i}" for i in range(N)], "number", "1,234 was read as 1234"),
    "points": ([f"1.{200 + i}" if i % 2 else f"{i},5" for i in range(N)], "number", "1.234 was read as 1.234"),
    "American dates": ([f"2/{1 + i % 28}/2024" for i in range(N)], "date", "5 April"),
    "doubtful dates": ([f"{1 + i % 9}/{1 + i % 11}/2024" for i in range(N)], "date", "5 April"),
    "no such day": ([f"2024-02-{3 + i % 28:02d}" for i in range(N)], "date", "something else than a date"),
    "postal codes": ([f"0{1 + i % 5}000" for i in range(N)], "number", "code"),
    "a number and a name": ([f"P{i}" if i % 5 == 0 else str(1.5 * i) for i in range(N)], "number", "something else"),
    "mixed units": ([f"{i}.5 {'€$'[i % 2]}" for i in range(N)], "number", "several units"),
    "hexadecimal": ([f"0x{i % 7:02x}" for i in range(N)], "category", ""),
    "underscores": ([f"{i % 7}_000" for i in range(N)], "category", ""),
    "infinity": (["inf" if i % 9 == 0 else str(1.5 * i) for i in range(N)], "number", "missing"),
    "-999": (["-999" if i % 9 == 0 else str(1.5 * i) for i in range(N)], "number", "-999"),
}  # fmt: skip


def test_nothing_is_misread_in_silence(tmp_path):
    wrong = {}
    for what, (cells, kind, said) in MISREADINGS.items():
        pd.DataFrame({"x": cells, "y": [0, 1] * (N // 2)}).to_csv(tmp_path / "t.csv", index=False)
        (column,) = understand(tmp_path / "t.csv", "y").columns
        if column.kind != kind or said not in column.line:
            wrong[what] = column.line
    assert wrong == {}


def test_what_nobody_foresaw_is_a_defect_and_no_verdict(monkeypatch, capsys):
    def broken(*_, **__):
        raise ZeroDivisionError("division by the cell 'see Mueller file 4711'")

    monkeypatch.setattr("deniable.tradeoff", broken)
    assert run(["bound", "epsilon,1"]) == 70
    told = capsys.readouterr().err
    assert "defect of deniable" in told
    assert "--debug" in told
    assert "Mueller" not in told
    assert "Traceback" not in told
    assert json.dumps(told).count("\\n") == 1
