"""ARCHITECTURE.md says what the imports say."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_imports_say():
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "tools" / "architecture.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.page() == tool.PAGE.read_text(), "run: make architecture"
    below = {room: k for k, floor in enumerate(tool.floors()) for room in floor}
    upwards = {(a, b) for a, others in tool.arrows().items() for b in others if below[a] > below[b]}
    assert upwards == set()
