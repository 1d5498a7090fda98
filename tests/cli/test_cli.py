"""The command line: exit codes, one-line errors, JSON, help with examples."""

import json
import re
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

import deniable as dn
from deniable.cli import app
from deniable.cli._app import run


def commands():
    return [command.name or command.callback.__name__ for command in app.registered_commands]


RUN = ["assess", "dpsgd,1,0.01,100"]


def test_output_path_is_checked_before_the_work_starts(monkeypatch):
    monkeypatch.setattr(dn, "assess", lambda *_, **__: pytest.fail("the work was started"), raising=False)
    assert run([*RUN, "--report", "nowhere/report.html"]) == 2


def test_debug_shows_the_traceback(capsys):
    assert run(["assess", "dpsgd,1,0.01,0", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_commands_and_their_parameters_are_few():
    parser = get_command(app)
    assert len(parser.commands) <= 19
    assert sum(len(command.params) for command in parser.commands.values()) <= 190


@pytest.mark.parametrize("command", commands())
def test_help_is_one_screen_with_examples_and_the_rest_is_shown_on_request(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert run([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 48, len(text.splitlines())
    assert "Examples:" in text
    assert f"deniable {command}" in text
    options = get_command(app).commands[command].params
    assert [option.name for option in options if not option.help] == []
    assert run([command, "--help-all"]) == 0
    whole = capsys.readouterr().out
    taken = {option.name for option in options} & {"run", "runs", "promise"}
    assert ("  dpsgd,NOISE_MULTIPLIER,SAMPLE_RATE,STEPS,[RECORDS_PER_PERSON]" in whole) == bool(taken)
    assert [
        option.name for option in options if not any(name in whole for name in (*option.opts, option.metavar))
    ] == []
    for asked in ("--help", "-h"):
        assert run([command, asked]) == 0
        assert capsys.readouterr().out == text


@pytest.mark.parametrize("command", commands())
def test_examples_in_the_help_are_valid_lines(command):
    parser = get_command(app).commands[command]
    lines = re.findall(r"^  (?:.+ \| )?deniable (.+)$", parser.epilog, re.MULTILINE)
    assert len(lines) >= 2
    for line in lines:
        name, *words = shlex.split(line)
        assert name == command
        parser.make_context(name, words)  # parses without running; raises if a word is not known


def test_the_first_screen_names_each_command_by_its_task(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    tasks = " ".join(lines[4:15])
    known = set(get_command(app).commands)
    assert {name for name in known if not re.search(rf"\b{name}\b", tasks)} == {"app", "doctor", "examples"}
    assert "..." not in " ".join(line for line in lines if "Usage" not in line)  # no sentence is cut


def test_help_needs_no_other_library():
    """So that any --help comes in a moment."""
    heavy = "{'pandas', 'sklearn', 'torch', 'matplotlib', 'opendp', 'scipy', 'joblib', 'jinja2', 'rich'}"
    script = f"import sys; from deniable.cli._app import run; import deniable.cli\nrun(['bound', '--help'])\n\
print(sorted({heavy} & {{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_compare_runs_and_files(tmp_path, capsys):
    saved = tmp_path / "a.json"
    made = dn.assess(dn.SubsampledGaussian(5.0, 1.0, 500))
    made.to_json(saved)
    assert dn.Assessment.from_json(saved) == made
    assert run(["compare", str(saved), "dpsgd,5,1,5", "--plot", str(tmp_path / "roc.svg")]) == 0
    assert "5 steps" in capsys.readouterr().out
    assert "</svg>" in (tmp_path / "roc.svg").read_text()
    assert run(["compare", str(saved), "dpsgd,5,1,5", "--json"]) == 0
    rows = {row["key"]: row["numbers"] for row in json.loads(capsys.readouterr().out)["rows"]}
    expected = [made.numbers["bound.advantage"].value, dn.tradeoff(dn.SubsampledGaussian(5.0, 1.0, 5)).advantage()]
    assert [number["value"] for number in rows["bound.advantage"]] == expected


def test_calibrate_takes_every_limit(capsys):
    run_ = ["calibrate", "dpsgd,?,1,1", "--json"]
    assert run([*run_, "--limit", "attribute=0.75, prior=[[0.9, 0.1], [0.5, 0.5]]"]) == 0
    found = json.loads(capsys.readouterr().out)
    curve = dn.tradeoff(dn.SubsampledGaussian(found["noise_multiplier"], 1.0, 1))
    assert found["reached"]["attribute"] == curve.attribute([[0.9, 0.1], [0.5, 0.5]]) <= 0.75
    assert run([*run_, "--limit", "singling_out=0.1,n=1000,weight=1e-6,group_size=2"]) == 0
    found = json.loads(capsys.readouterr().out)
    curve = dn.tradeoff(dn.SubsampledGaussian(found["noise_multiplier"], 1.0, 1)).group(2)
    assert found["reached"]["singling_out"] == curve.singling_out(1000, 1e-6) <= 0.1
    assert found["advantage"] == curve.advantage()
    assert found["limit"]["group_size"] == 2


def test_a_command_keeps_nothing_of_the_one_before_it(capsys):
    """The parser is built once in a process: its options must be back at their defaults."""

    def told(line):
        code = run(line.split())
        return code, capsys.readouterr().out

    plain = told("bound epsilon,1 --json")
    assert told("bound epsilon,1 --prior 0.1 --json") != plain
    assert told("bound epsilon,1 --nothing")[0] == 2
    assert told("bound epsilon,1") != plain
    assert told("bound epsilon,1 --json") == plain
