"""The generated reference has every public name."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import deniable as dn
from oracles.scripts import loaded

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages():
    return loaded("docs/api_pages.py")


def test_no_public_name_is_missing(pages):
    listed = {f"{module}.{name}" for _, module, names in pages.sections() for name in names}
    modules = {"bounds", "unlearning"}
    assert {f"deniable.{name}" for name in dn.__all__ if name not in modules} <= listed
    assert {f"deniable.bounds.{name}" for name in dn.bounds.__all__} <= listed
    text = pages.page()
    assert all(name.rsplit(".", 1)[1] in text for name in listed)


def test_every_public_name_has_an_example(pages):
    """In its docstring, where `pytest --doctest-modules` runs it, or by reference to the docstring that has it."""
    assert [name for name, example in pages.examples().items() if not example] == []


SECTIONS = ("Parameters", "Returns", "Raises")


def undocumented(functions):
    """Sections that the docstrings of functions with two or more parameters lack, and parameters that they omit."""
    lacking = []
    for name, function in functions.items():
        text, parameters = inspect.getdoc(function) or "", inspect.signature(function).parameters
        if len(parameters) >= 2:
            lacking += [f"{name}: {one}" for one in SECTIONS if f"{one}\n---" not in text]
            part = text.partition("Parameters\n---")[2].partition("Returns\n---")[0]
            lacking += [f"{name}: {one}" for one in parameters if not re.search(rf"\b{one}\b", part)]
    return lacking


def test_every_public_function_documents_parameters_returns_and_errors(pages):
    homes = {module: importlib.import_module(module) for _, module, _ in pages.sections()}
    found = {f"{module}.{n}": getattr(homes[module], n) for _, module, names in pages.sections() for n in names}
    functions = {name: value for name, value in found.items() if inspect.isfunction(value)}
    assert len(functions) > 50
    assert undocumented(functions) == []


def test_an_undocumented_parameter_and_a_missing_section_are_found():
    def double(x, times=2):
        """Return a product.

        Parameters
        ----------
        x
            A number.

        Returns
        -------
        float
            The product, times one.
        """
        return x * times

    assert undocumented({"double": double}) == ["double: Raises", "double: times"]


def test_what_the_examples_import_is_in_the_reference(pages):
    listed = {f"{module}.{name}" for _, module, names in pages.sections() for name in names}
    pages_of_ours = {ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md")}
    pages_of_ours.discard(ROOT / "docs" / "contributing.md")  # a copy, made for the site
    text = "\n".join(path.read_text() for path in pages_of_ours)
    found = re.findall(r"from (deniable(?:\.[a-z]\w*)*) import ([\w, ]+)", text)
    imported = {(module, name.strip()) for module, names in found for name in names.split(",")}
    objects = {f"{m}.{n}" for m, n in imported if not inspect.ismodule(getattr(importlib.import_module(m), n, None))}
    named = {f"deniable.{room}.{name}" for room, name in re.findall(r"\bdn\.([a-z]+)\.(\w+)", text)}
    named = {one for one in named if one.split(".")[1] in dn._ROOMS}
    classes = {one for one in named if callable(getattr(getattr(dn, one.split(".")[1]), one.split(".")[2], None))}
    assert min(len(objects), len(classes)) > 5
    assert objects | classes <= listed
