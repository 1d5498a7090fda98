"""The generated reference has every public name."""

import importlib.util
from pathlib import Path

import deniable as dn

ROOT = Path(__file__).resolve().parents[2]


def test_no_public_name_is_missing():
    spec = importlib.util.spec_from_file_location("api_pages", ROOT / "docs" / "api_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    listed = {f"{module}.{name}" for _, module, names in pages.sections() for name in names}
    modules = {"bounds", "unlearning"}
    assert {f"deniable.{name}" for name in dn.__all__ if name not in modules} <= listed
    assert {f"deniable.bounds.{name}" for name in dn.bounds.__all__} <= listed
    text = pages.page()
    assert all(name.rsplit(".", 1)[1] in text for name in listed)
