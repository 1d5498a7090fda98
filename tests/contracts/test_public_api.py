"""Every public name is listed, documented, typed, in the docs, and tells about itself in plain words."""

import importlib
import inspect
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
    assert set(dn.__all__) <= set(dir(dn))
    for name in dn.__all__:
        assert getattr(dn, name) is not None


def test_completion_offers_names_and_rooms_and_nothing_else():
    offered = {name for name in dir(dn) if not name.startswith("_")}
    assert offered == {*dn.__all__, *dn._ROOMS}
    assert all(inspect.ismodule(dn.__getattr__(room)) for room in dn._ROOMS)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tradeof'"):
        _ = dn.tradeof


@pytest.mark.parametrize("name", dn.__all__)
def test_is_in_the_docs(name):
    assert f"dn.{name}" in PAGES or f"deniable.{name}" in PAGES or f"`{name}" in PAGES


@pytest.mark.parametrize("name", CALLABLES)
def test_is_documented(name):
    value = getattr(dn, name)
    text = inspect.getdoc(value)
    assert text, name
    assert text.splitlines()[0].rstrip().endswith((".", "?", ":")), f"the first line of {name} is no sentence"
    if inspect.isclass(value):
        for method, function in members(value):
            assert inspect.getdoc(getattr(value, method)) or inspect.getdoc(function), f"{name}.{method}"


@pytest.mark.parametrize("name", CALLABLES)
def test_is_typed(name):
    value = getattr(dn, name)
    functions = [value] if inspect.isfunction(value) else [function for _, function in members(value)]
    for function in functions:
        hints = function.__annotations__
        untyped = [
            parameter
            for parameter in inspect.signature(function).parameters
            if parameter not in hints and parameter not in ("self", "cls")
        ]
        assert "return" in hints, function.__qualname__
        assert not untyped, (function.__qualname__, untyped)


@pytest.mark.parametrize("name", [n for n in CALLABLES if inspect.isfunction(getattr(dn, n))])
def test_parameters_are_named_in_the_docstring(name):
    """A function with more than two parameters says what each of them is."""
    function = getattr(dn, name)
    parameters = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    text = inspect.getdoc(function) or ""
    if len(parameters) > 2:
        assert [p for p in parameters if p not in text] == []


@pytest.mark.parametrize("room", ["", *sorted(path.parent.name for path in HOUSE.glob("[a-z]*/__init__.py"))])
def test_no_module_has_the_name_of_a_public_function(room):
    """``import deniable.tradeoff`` must not shadow the function of that name."""
    package = importlib.import_module(f"deniable.{room}".rstrip("."))
    modules = {path.stem for path in (HOUSE / room).iterdir() if not path.name.startswith("_")}
    functions = {name for name in getattr(package, "__all__", ()) if not inspect.ismodule(getattr(package, name))}
    assert modules & functions == set()


def test_type_hints_resolve():
    for name in ("Tradeoff", "Assumptions", "SubsampledGaussian", "PureDP"):
        assert typing.get_type_hints(getattr(dn, name)) is not None
