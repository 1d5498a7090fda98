"""Rooms import from each other's ``__init__`` alone; that no object uses another's privates is ruff's SLF001."""

import ast
import sys
from pathlib import Path

import deniable as dn

HOUSE = Path(dn.__file__).parent
ROOMS = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
NOT_YET = {"cli"}  # whose commands import their workflow when they run


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
