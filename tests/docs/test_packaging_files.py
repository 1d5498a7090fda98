"""What stands in several places is the same everywhere: version, dependencies, references of the paper."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere():
    version = PROJECT["version"]
    assert f'version: "{version}"' in (ROOT / "recipe" / "recipe.yaml").read_text()
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)


def test_the_recipe_asks_for_what_the_package_needs():
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    run = re.search(r"\n  run:\n((?:    - .*\n)+)", recipe)[1]
    asked = {line.strip(" -").replace(" ", "") for line in run.splitlines()} - {"python>=${{python_min}}"}
    assert asked == set(PROJECT["dependencies"])
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in recipe
    assert all(f"- {name} = {place}" in recipe for name, place in PROJECT["scripts"].items())


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
    asked = [Requirement(line) for extra in ("dev", "app", "cli", "release", "report") for line in extras[extra]]
    for need in [one for one in asked if one.name != "deniable"]:
        found = pinned.get(canonicalize_name(need.name), [])
        assert found, need
        assert all(need.specifier.contains(version, prereleases=True) for version in found), need
