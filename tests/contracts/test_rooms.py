"""Rooms import from each other's ``__init__`` alone, and no object uses another's privates."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import deniable as dn

HOUSE = Path(dn.__file__).parent
ROOMS = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
NOT_YET = {"_doctor", "app", "cli", "integrations", "noise", "records", "statistics", "training", "workflows"}
PRIVATE_YET = {"audit", "integrations", "noise", "records", "releases", "training", "workflows"}


def below_init(path):
    """(line, module) of imports that reach below the ``__init__`` of another room."""
    own = path.relative_to(HOUSE).parts[0]
    for node in ast.walk(ast.parse(path.read_text())):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        for parts in (name.split(".") for name in names):
            if parts[0] == "deniable" and len(parts) > 2 and parts[1] in ROOMS - {own}:
                yield node.lineno, ".".join(parts)


def test_rooms_import_from_an_init():
    found = [(path.relative_to(HOUSE), *one) for path in HOUSE.rglob("*.py") for one in below_init(path)]
    assert [one for one in found if one[0].parts[0].removesuffix(".py") not in NOT_YET] == []


def test_the_check_finds_an_import_below_an_init(tmp_path, monkeypatch):
    path = tmp_path / "tables" / "bad.py"
    path.parent.mkdir()
    path.write_text(
        "from deniable.curves.safe import TINY\nfrom deniable.tables.cells import read\nimport deniable.curves\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "HOUSE", tmp_path)
    assert list(below_init(path)) == [(1, "deniable.curves.safe")]


def test_no_object_uses_the_privates_of_another():
    pytest.importorskip("ruff", reason="ruff is in the extra 'dev'")
    done = sorted(str(path) for path in HOUSE.iterdir() if path.stem not in PRIVATE_YET and path.name != "__pycache__")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "SLF001", "--output-format", "concise"]
    ran = subprocess.run([*command, *done], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
