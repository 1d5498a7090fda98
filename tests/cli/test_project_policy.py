"""A policy that is set once for a project decides every command, and one that cannot be read is never left out."""

import json
from xml.etree import ElementTree

import pytest

from deniable.cli._app import run

RUN = "dpsgd,1,0.01,5000"


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "strict.toml").write_text("advantage = 0.1")
    (tmp_path / "loose.toml").write_text("advantage = 0.9")
    monkeypatch.chdir(tmp_path / "deep" / "er")
    monkeypatch.delenv("DENIABLE_POLICY", raising=False)

    def write(text):
        (tmp_path / "pyproject.toml").write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('[tool.deniable]\npolicy = "strict.toml"', 1),
        ('[tool.deniable]\npolicy = "loose.toml"', 0),
        ('[tool.deniable]\npolicy = "default"', 1),
        ("[tool.deniable.policy]\nadvantage = 0.3", 1),
        ("[tool.deniable.policy]\nadvantage = 0.4", 0),
        ("[tool.deniable]", 0),
        ("[tool.other]", 0),
        ('[tool.deniable]\npolicy = "gone.toml"', 2),
        ("[tool.deniable]\npolicies = 1", 2),
        ("[tool.deniable]\npolicy = 3", 2),
        ("[tool]\ndeniable = 3", 2),
        ("[tool.deniable", 2),
    ],
)
def test_the_nearest_project_decides(project, text, code):
    project(text)
    assert run(["assess", RUN]) == code
    assert run(["assess", RUN, "--policy", "none"]) == 0


def test_the_variable_goes_before_the_project_and_the_option_before_both(project, monkeypatch, capsys):
    folder = project('[tool.deniable]\npolicy = "loose.toml"')
    monkeypatch.setenv("DENIABLE_POLICY", str(folder / "strict.toml"))
    assert run(["assess", RUN]) == 1
    assert run(["compare", RUN, "gaussian,0.01"]) == 1
    assert run(["assess", RUN, "--policy", str(folder / "loose.toml")]) == 0
    monkeypatch.setenv("DENIABLE_POLICY", "none")
    assert run(["assess", "gaussian,5"]) == 0
    monkeypatch.setenv("DENIABLE_POLICY", str(folder / "gone.toml"))
    assert run(["assess", RUN]) == 2
    assert "gone.toml" in capsys.readouterr().err


def test_files_for_ci_name_the_policy_and_are_said_to_be_written(project, tmp_path, capsys):
    project('[tool.deniable]\npolicy = "strict.toml"')
    junit, sarif = tmp_path / "a.xml", tmp_path / "a.sarif"
    assert run(["assess", RUN, "--junit", str(junit), "--sarif", str(sarif), "--json"]) == 1
    assert len(ElementTree.parse(junit).findall(".//failure")) == 1
    found = json.loads(sarif.read_text())["runs"][0]["results"][0]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "../../strict.toml"
    assert {f"written: {junit}", f"written: {sarif}"} <= set(capsys.readouterr().err.splitlines())
    assert run(["assess", RUN, "--junit", str(tmp_path / "a.html")]) == 2
