"""The generated reference has every public name."""

import doctest
import importlib
import inspect
import io
import re
import warnings
from pathlib import Path

import numpy as np
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
    found, missing = pages.examples(), []
    for _, module, names in pages.sections():
        home = importlib.import_module(module)
        documented = {name for name in names if ">>>" in (inspect.getdoc(getattr(home, name)) or "")}
        missing += sorted(set(names) - documented - set(found))
    assert missing == []


@pytest.mark.usefixtures("_only_when_asked")
def test_examples_of_the_reference_run(pages):
    said = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dn.releases.ReleaseWarning)
        for example in dict.fromkeys(pages.examples().values()):
            test = doctest.DocTestParser().get_doctest(example, {"np": np, "dn": dn}, "example", "api_examples.txt", 0)
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.write)
    assert said.getvalue() == ""


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
