"""What stands in several places is the same everywhere: version, dependencies, references of the paper."""

import datetime
import os
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from oracles.scripts import loaded

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def test_the_version_is_the_same_everywhere():
    """Between releases pyproject.toml has a .dev version above the last released one, which the other files name."""
    version = Version(PROJECT["version"])
    released = Version(re.search(r"^## \[(\d.*?)\] - \d{4}-\d\d-\d\d$", CHANGELOG, re.MULTILINE)[1])
    assert version > released if version.is_devrelease else version == released
    assert re.search(rf"^version: {re.escape(str(released))}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)


def test_links_lead_to_one_repository_and_the_release_knows_their_files():
    release = loaded("tools/release.py")
    linking = {path: re.findall(r"https://github\.com/[\w-]+/deniable\b", path.read_text()) for path in release.LINKING}
    assert {url for found in linking.values() for url in found} == {release.repository()}
    others = {*ROOT.glob("*.md"), *ROOT.glob("docs/*.*"), *ROOT.glob("docs/*/*.md"), *ROOT.glob(".github/**/*.yml")}
    others -= {*linking, ROOT / "docs" / "security.md"}  # a copy, made for the site
    assert [path for path in others if release.repository() in path.read_text()] == []


def test_actions_are_pinned_by_hash():
    files = [*ROOT.glob(".github/workflows/*.yml"), ROOT / "action.yml"]
    used = [line.strip() for path in files for line in path.read_text().splitlines() if "uses: " in line]
    assert used
    assert [line for line in used if not re.search(r"@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line)] == []


def test_a_release_dates_the_changelog():
    release = loaded("tools/release.py")
    before = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- x\n\n## [8.0.0] - 2029-01-02\n"
    after = release.dated(before, "9.0.0", datetime.date(2030, 1, 2))
    assert after == before.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [9.0.0] - 2030-01-02\n")
    with pytest.raises(SystemExit, match="nothing under Unreleased"):
        release.dated(after, "9.0.1", datetime.date(2030, 1, 2))


def test_every_reference_of_the_paper_is_known_and_every_entry_is_cited():
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(), re.MULTILINE))
    assert set(re.findall(r"@(\w+)\]?", (ROOT / "paper.md").read_text())) == known


def test_what_the_tests_need_is_pinned_by_hash():
    pinned = {}
    for name, version in re.findall(
        r"^([\w.-]+)==([^ ;\\]+)", (ROOT / ".ci" / "requirements.txt").read_text(), re.MULTILINE
    ):
        pinned.setdefault(canonicalize_name(name), []).append(Version(version))
    extras = PROJECT["optional-dependencies"]
    asked = [Requirement(line) for extra in ("dev", "app", "tables", "release", "report") for line in extras[extra]]
    for need in [one for one in asked if one.name != "deniable"]:
        found = pinned.get(canonicalize_name(need.name), [])
        assert found, need
        assert all(need.specifier.contains(version, prereleases=True) for version in found), need


def test_workflows_call_scripts_that_are_here_and_can_be_run():
    called = set()
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        lines = re.findall(r"run: (.+)", workflow.read_text())
        called |= {script for line in lines for script in re.findall(r"\.ci/\w+", line)}
        makes = {target for line in lines for target in re.findall(r"\bmake (\w+)", line)}
        assert makes <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    scripts = {f".ci/{path.name}" for path in (ROOT / ".ci").iterdir() if path.suffix == ""}
    assert called | {".ci/run"} == scripts  # make ci runs that one
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def test_an_audit_that_saw_nothing_does_not_pass():
    tool = loaded("tools/audited.py")
    own = {"name": "deniable", "skip_reason": "not on PyPI"}
    fine = {"name": "a", "version": "1", "vulns": []}
    flawed = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1"}]}
    unseen = {"name": "c", "skip_reason": "not found"}
    assert tool.judged({"dependencies": [own, fine]}) == (0, [])
    assert tool.judged({"dependencies": [own, fine, flawed, unseen]}) == (1, ["b 2: PYSEC-1"])
    assert tool.judged({"dependencies": [own, fine, unseen]})[0] == 3
