"""Every public name is listed, documented, typed, in the docs, and tells about itself in plain words."""

import importlib
import inspect
import re
import typing
from pathlib import Path

import pytest

import deniable as dn

ROOT = Path(__file__).resolve().parents[2]
HOUSE = Path(dn.__file__).parent
PAGES = "\n".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
CALLABLES = [name for name in dn.__all__ if callable(getattr(dn, name))]


def members(cls):
    """Public methods and properties that a class of ours defines itself."""
    for name, member in vars(cls).items():
        target = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(target):
            yield name, target


def test_names_are_sorted_and_complete():
    assert dn.__all__ == sorted(dn.__all__)
    assert len(dn.__all__) <= 45
    assert set(dn.__all__) <= set(dir(dn))
    for name in dn.__all__:
        assert getattr(dn, name) is not None


def test_completion_offers_names_and_rooms_and_nothing_else():
    offered = {name for name in dir(dn) if not name.startswith("_")}
    assert offered == {*dn.__all__, *dn._ROOMS}
    assert all(inspect.ismodule(dn.__getattr__(room)) for room in dn._ROOMS)


def test_a_room_exports_through_its_init():
    """So do those of the names at the top that have a package for a home, and what a guide names of a room."""
    exported = {room: getattr(getattr(dn, room), "__all__", None) for room in dn._ROOMS}
    modules = {room for room in dn._ROOMS if not hasattr(getattr(dn, room), "__path__")}
    assert {room for room, names in exported.items() if names is None} <= modules
    named = set(re.findall(rf"\bdn\.({'|'.join(set(exported) - modules)})\.(\w+)", PAGES))
    inner = {path.stem for path in HOUSE.rglob("*.py")}
    missing = [(room, name) for room, name in sorted(named) if name not in {*exported[room], *inner}]
    assert (len(named) > 20, missing) == (True, [])
    absent = [
        f"{room}.{name}"
        for room in set(exported) - modules
        for name in exported[room]
        if not hasattr(getattr(dn, room), name)
    ]
    assert absent == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tradeof'"):
        _ = dn.tradeof


def test_every_name_is_in_the_docs():
    assert [n for n in dn.__all__ if not any(f"{p}{n}" in PAGES for p in ("dn.", "deniable.", "`"))] == []


def test_every_name_is_documented():
    wrong = []
    for name in CALLABLES:
        value = getattr(dn, name)
        text = inspect.getdoc(value) or "nothing"
        if not text.splitlines()[0].rstrip().endswith((".", "?", ":")):
            wrong.append(f"the first line of {name} is no sentence")
        for method, function in members(value) if inspect.isclass(value) else ():
            if not inspect.getdoc(getattr(value, method)) and not inspect.getdoc(function):
                wrong.append(f"{name}.{method}")
        if inspect.isfunction(value):
            kinds = inspect.signature(value).parameters.values()
            parameters = [p.name for p in kinds if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
            if len(parameters) > 2:  # then it says what each of them is
                wrong += [f"{name}({p})" for p in parameters if p not in text]
    assert wrong == []


def test_every_name_is_typed():
    wrong = []
    for name in CALLABLES:
        value = getattr(dn, name)
        for function in [value] if inspect.isfunction(value) else [function for _, function in members(value)]:
            named = {*inspect.signature(function).parameters, "return"} - {"self", "cls"}
            wrong += [f"{function.__qualname__}: {missing}" for missing in named - set(function.__annotations__)]
    assert wrong == []


def test_no_module_has_the_name_of_a_public_function():
    """``import deniable.tradeoff`` must not shadow the function of that name."""
    for room in ["", *sorted(path.parent.name for path in HOUSE.glob("[a-z]*/__init__.py"))]:
        package = importlib.import_module(f"deniable.{room}".rstrip("."))
        modules = {path.stem for path in (HOUSE / room).iterdir() if not path.name.startswith("_")}
        functions = {name for name in getattr(package, "__all__", ()) if not inspect.ismodule(getattr(package, name))}
        assert modules & functions == set(), room


def test_type_hints_resolve():
    for name in ("Tradeoff", "Limit", "SubsampledGaussian", "PureDP"):
        assert typing.get_type_hints(getattr(dn, name)) is not None
