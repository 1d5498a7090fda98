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
