"""ARCHITECTURE.md says what the imports say, and what calls do."""

import ast
import inspect
import sys
from pathlib import Path

import pytest

import deniable as dn
from oracles.scripts import loaded

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    return loaded("tools/architecture.py")


def test_the_page_is_what_the_imports_say(tool):
    assert tool.page() == tool.PAGE.read_text(), "run: make architecture"
    below = {room: k for k, floor in enumerate(tool.floors()) for room in floor}
    upwards = {(a, b) for a, others in tool.arrows().items() for b in others if below[a] > below[b]}
    assert upwards == set()


def module_imports():
    """All that each module below ``deniable`` imports from it, also inside functions, but not for types alone."""
    house = ROOT / "src" / "deniable"
    paths = {".".join(p.with_suffix("").relative_to(house.parent).parts): p for p in house.rglob("*.py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    found = {}
    for name, path in paths.items():
        for_types, others = set(), set()
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                for_types |= set(ast.walk(node))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node not in for_types:
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                others |= {one if one in paths else node.module for one in whole} & set(paths)
        found[name] = others - {name}
    return found


def test_modules_import_in_circles_only_where_a_noun_has_methods_made_elsewhere():
    """Two nouns, the curve and the report, have methods that other modules compute or write, imported when called."""
    arrows = module_imports()
    circles = []
    for name in arrows:
        seen, edge = set(), {name}
        while edge:
            edge = {b for a in edge for b in arrows[a]} - seen
            seen |= edge
        circles += [name] if name in seen else []
    nouns = {"deniable.curves.base", "deniable.report.model"}
    for name in circles:  # no circle without one of the two in it
        seen, edge = set(), {name} - nouns
        while edge:
            edge = {b for a in edge for b in arrows[a]} - seen - nouns
            seen |= edge
        assert name not in seen
    assert nouns < set(circles)
    assert {name.split(".")[1] for name in circles} == {"curves", "report"}


def calls_between_modules(work):
    """Pairs of modules below ``deniable`` of which one calls the other, constructors of dataclasses left out."""
    found = set()

    def ours(frame):
        return frame.f_globals.get("__name__", "").startswith("deniable.")

    def note(frame, event, arg):
        if event != "call" or not ours(frame) or frame.f_code.co_name.startswith("__"):
            return
        if frame.f_code.co_flags & inspect.CO_GENERATOR:  # resumed or closed wherever, by the garbage collector, too
            return
        caller = frame.f_back
        while caller is not None and not ours(caller):
            caller = caller.f_back
        if caller is not None:
            found.add(tuple(f.f_globals["__name__"].removeprefix("deniable.") for f in (caller, frame)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(
    "mechanism", [dn.SubsampledGaussian(1.0, 0.01, 100), dn.SubsampledGaussian(0.05, 0.01, 5), dn.Laplace(1.5, steps=3)]
)
def test_a_question_goes_down_the_rooms_and_never_up(tool, mechanism):
    assert len(tool.WALK) <= 8
    for names, _ in tool.WALK:
        for name in names:
            path = tool.HOUSE / Path(*name.split("."))
            assert path.is_dir() or path.with_suffix(".py").is_file()

    def work():
        t = dn.tradeoff(mechanism)
        t.tpr(1e-3), t.delta(1.0)

    work()  # what is imported or made once is no part of the walk
    edges = {
        edge for edge in calls_between_modules(work) if not any(tool.room_of(name) == tool.FOUNDATION for name in edge)
    }
    assert {name for edge in edges for name in edge if tool.station(name) is None} == set()
    curves, engines = tool.station("curves"), tool.station("accounting.engines")
    up = {(a, b) for a, b in edges if tool.station(a) > tool.station(b)}
    # what ran, or holds it, is asked for its parts, and how records come into its batches
    up -= {("accounting.dispatch", f"mechanisms.{name}") for name in ("core", "holders")}
    up.discard(("curves.combined", "mechanisms.core"))
    up.discard(("accounting.lattices", "accounting.pld.compose"))  # a power is told where its sums' lattices lie
    # a curve that is made of others asks them as anybody does
    assert {(a, b) for a, b in up if not (tool.station(b) == curves and tool.station(a) <= engines)} == set()
    assert {tool.station(b) for _, b in edges} >= {2, 4, 6}  # it was followed: curves, engines, loss
