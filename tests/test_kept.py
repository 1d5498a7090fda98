"""What is computed once and kept, and that it is the only mutable state of curves, laws and steps."""

import ast
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import deniable as dn
from deniable._kept import Kept

SRC = Path(dn.__file__).parent
CONTAINERS = ("dict", "list", "set", "OrderedDict")
ROOMS = ("accounting", "curves", "laws", "mechanisms", "planning")


def test_values_are_made_once_and_the_oldest_go() -> None:
    made: list[int] = []

    def square(k: int) -> int:
        made.append(k)
        return k * k

    kept: Kept[int, int] = Kept(most=10, size=float)
    assert [kept(k, lambda k=k: square(k)) for k in (1, 2, 1, 2)] == [1, 4, 1, 4]
    assert made == [1, 2]
    assert kept(3, lambda: square(3)) == 9  # 1 + 4 + 9 > 10: the oldest two go
    assert [kept.get(k) for k in (1, 2, 3)] == [None, None, 9]
    assert kept(5, lambda: square(5)) == 25  # larger than all that may be kept, alone, and yet kept
    assert len(kept) == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))])
def test_copies_and_pickles_start_empty(copied) -> None:
    kept: Kept[str, str] = Kept(most=1, size=len)
    kept("a", lambda: "b")
    other = copied(kept)
    assert (len(other), len(kept)) == (0, 1)
    assert [other(key, str.upper(key).lower) for key in "cd"] == ["c", "d"]
    assert len(other) == 1


def test_threads_share_one_value() -> None:
    kept: Kept[int, object] = Kept(most=4)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: (k % 3, kept(k % 3, object)), range(600)))
    assert len({id(value) for _, value in found}) == 3


def test_lines_and_lattices_are_not_pickled() -> None:
    for mechanism in (dn.SubsampledGaussian(1.0, 0.01, 100), dn.Laplace(1.0, steps=3)):
        curve = dn.tradeoff(mechanism)
        curve.tpr(0.01)
        assert len(pickle.dumps(curve)) < 100_000, mechanism
        assert pickle.loads(pickle.dumps(curve)).tpr(0.01) == curve.tpr(0.01)


def _mutable_state(path: Path) -> list[str]:
    """Empty containers that live as long as an object or a module: fields, class and module variables."""
    tree = ast.parse(path.read_text())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "default_factory" and ast.unparse(node.value) in CONTAINERS:
            found.append(f"{path.name}:{node.value.lineno} default_factory")
        if isinstance(node, ast.Attribute) and node.attr == "setdefault" and "__dict__" in ast.unparse(node.value):
            found.append(f"{path.name}:{node.lineno} __dict__.setdefault")
        if isinstance(node, ast.Global):
            found.append(f"{path.name}:{node.lineno} global")
        if isinstance(node, (ast.Module, ast.ClassDef)):
            for one in node.body:
                value = one.value if isinstance(one, (ast.Assign, ast.AnnAssign)) else None
                empty = isinstance(value, ast.Dict) and not value.keys
                if empty or (isinstance(value, (ast.List, ast.Set)) and not value.elts):
                    found.append(f"{path.name}:{one.lineno} empty container")
        if isinstance(node, ast.FunctionDef) and any("cached_property" in ast.unparse(d) for d in node.decorator_list):
            ends = [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]
            if any(isinstance(end, ast.Dict) and not end.keys for end in ends):
                found.append(f"{path.name}:{node.lineno} cached_property of an empty dict")
    return found


def test_there_is_no_other_mutable_state(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("CACHE = {}\nclass A:\n    seen: list[int] = field(default_factory=list)\n")
    assert len(_mutable_state(bad)) == 2  # the check finds what it looks for
    files = [path for room in ROOMS for path in (SRC / room).rglob("*.py")]
    assert len(files) > 70
    assert [line for path in files for line in _mutable_state(path)] == []
