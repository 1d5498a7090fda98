"""Notebooks to download are the tutorials: every cell of code, in order, and nothing else."""

import ast
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "_static" / "notebooks"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("script_notebooks", ROOT / "tools" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_those_of_the_pages(tool):
    assert {path.name: path.read_text() for path in FOLDER.glob("*.ipynb")} == tool.pages()
    index = (ROOT / "docs" / "tutorials" / "index.md").read_text()
    assert all(f"_static/notebooks/{name}" in index for name in tool.pages())


def test_cells_are_python_and_texts_are_kept(tool):
    text = "---\na: b\n---\n# T\n\nwords [x](y.md)\n\n```{code-cell} ipython3\n:tags: [hide]\nx = 1\n```\nmore\n"
    cells = json.loads(tool.notebook(text))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert "".join(cells[1]["source"]) == "x = 1"
    assert "https://" in cells[0]["source"][-1]
    for content in tool.pages().values():
        code = ["".join(cell["source"]) for cell in json.loads(content)["cells"] if cell["cell_type"] == "code"]
        assert code
        for source in code:
            ast.parse("\n".join(line for line in source.splitlines() if not line.startswith(("!", "%"))))
