"""Whatever an error suggests can be run: a run that is read, a command and options that there are, a statistic."""

import ast
import re
import shlex
from pathlib import Path

import pytest

import deniable as dn
from deniable.cli._app import _parser, run
from deniable.cli._options import read_limit
from deniable.cli.run import read_run
from deniable.statistics.grammar import FUNCTIONS, parse

ROOT = Path(dn.__file__).parent
MISTAKES = {  # what was typed → what the error has to offer
    "train t.csv --lim epsilon=1,delta=1e-6": "--limit tpr=0.01,fpr=0.001",
    "train t.csv --epsilon 1": "write --limit epsilon=1,delta=1e-6",
    "calibrate dpsgd,?,0.01,5000 --epsilon 3": "write --limit epsilon=1,delta=1e-6",
    "publish t.csv --statistics count()": "for example: deniable publish",
    "bound epsilon=3,delta=1e-5": "did you mean epsilon,3,delta=1e-5?",
    "bound 1 0.01 5000": "deniable bound dpsgd,1,0.01,5000",
    "bound dpsgd(1,0.01,5000)": "did you mean dpsgd,1,0.01,5000?",
    "bound epsilon,1 gaussian,1": "deniable bound 'epsilon,1 + gaussian,1'",
    "bound dpsgd 1 0.01 5000 + laplace 2": "deniable bound 'dpsgd,1,0.01,5000 + laplace,2'",
    "bound 'person: dpsgd,1,0.01,5000'": "did you mean person,3: dpsgd,1,0.01,5000?",
    "bound 'persn,2: laplace,2'": "did you mean person,2: laplace,2?",
    "calibrate 1,?,5000 --advantage 0.1": "did you mean dpsgd,1,?,5000?",
    "ledger add": "for example: deniable ledger add people.ledger",
    "ledger add people.ledger": "for example: deniable ledger add people.ledger",
    "ledger add people.ledger epsilon 3": "deniable ledger add people.ledger epsilon,3",
    "assess gaussian,1 --policy 10%": "must be a TOML file",
    **{f"publish t.csv --statistic '{wrong}'": right for wrong, right in {
        "average(age)": "did you mean 'mean'?", "share() by town": "write share(x)", "count(age)": "write count()",
        "quantile(age)": "write quantile(x, 0.5)", "correlation(age)": "write correlation(x, y)",
        "regression()": "write regression(y ~ x)",
    }.items()},
}  # fmt: skip

NO_COMMANDS = ("as", "knows", "only", "mechanism")  # words behind "deniable" in sentences


def parsed(words):
    """Parse a command line as it stands, without running it."""
    assert words.pop(0) == "deniable"
    command = _parser()
    while words and hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    return command.make_context("deniable", words).params


@pytest.mark.parametrize(("typed", "offered"), MISTAKES.items(), ids=list(MISTAKES))
def test_what_an_error_offers_runs(typed, offered, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age,town\n1,a\n2,b\n")
    assert run(shlex.split(typed)) == 2
    said = capsys.readouterr().err
    assert offered in said
    for line in re.findall(r"(?:for example|argument): (deniable .*?) \(see", said):
        asked = parsed(shlex.split(line)).get("run")
        assert asked is None or read_run(asked, 1.0)
    for words in re.findall(r"did you mean ([^'?][^ ]*(?: [^?]*)?)\? names", said):
        assert read_run(words.strip(), 1.0)
    for limit in re.findall(r"write --limit (\S+)", said):
        assert read_limit(limit)
    for statistic in re.findall(r"write (\w+\(.*\))", said):
        assert parse(statistic).function in FUNCTIONS


def test_every_command_and_option_that_a_text_names_is_there():
    """Errors, notes and help name commands with options: each is looked up, wherever it stands."""
    wrong, seen = [], 0
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            for words, rest in re.findall(r"\bdeniable ((?:ledger )?[a-z][a-z-]+)([^;:()`\n|]*)", text):
                command, seen = _parser(), seen + 1
                for word in words.split() if words not in NO_COMMANDS else ():
                    command = getattr(command, "commands", {}).get(word)
                known = (
                    []
                    if command is None
                    else [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
                )
                options = {*re.findall(r"--[a-z-]+", rest)} - {"--help", "--help-all", *known}
                if words not in NO_COMMANDS and (command is None or options):
                    wrong.append((path.name, words, options))
    assert seen > 60
    assert wrong == []
