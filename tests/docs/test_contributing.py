"""What the guide for contributors names is there: files, folders, tests, targets of make."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def test_files_and_folders_exist():
    named = re.findall(r"`((?:src|tests|docs|papers|benchmarks|\.ci)/?[\w./]*)`(?! \(a new file\))", TEXT)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_targets_of_make_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`?make ([a-z]+)`", TEXT)) <= set(targets)


def test_selections_of_tests_find_some():
    found = [
        (ROOT / path, word)
        for path, words in re.findall(r"pytest (tests/[\w./]+) -k \"([\w ]+)\"", TEXT)
        for word in words.split(" or ")
    ]
    assert found
    assert [word for path, word in found if f"test_{word}" not in path.read_text()] == []
