"""Write the tutorials as notebooks to download: ``python tools/notebooks.py`` fills docs/_static/notebooks."""

import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
FOLDER = DOCS / "_static" / "notebooks"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.M | re.S)
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook(text: str) -> str:
    """Return a page of MyST as a notebook without outputs; links to pages become links to the site."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = re.sub(r"\]\((?!http)([\w./]+?)\.md", r"](https://deniable.readthedocs.io/en/latest/tutorials/\1.html", text)
    cells = []
    for place, part in enumerate(CELL.split(text)):
        lines = part.strip().splitlines(keepends=True)
        while place % 2 and lines and lines[0].startswith(":"):  # options of a cell
            lines.pop(0)
        if lines and place % 2:
            cells.append({"cell_type": "code", "execution_count": None, "outputs": []} | {"source": lines})
        elif lines:
            cells.append({"cell_type": "markdown", "source": lines})
    named = [cell | {"id": f"cell-{i}", "metadata": {}} for i, cell in enumerate(cells)]
    whole = {"cells": named, "metadata": {"kernelspec": KERNEL}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def pages() -> dict[str, str]:
    """Return the notebook of each tutorial that has cells of code, by file name."""
    texts = {page.stem: page.read_text() for page in sorted((DOCS / "tutorials").glob("*.md"))}
    return {f"{name}.ipynb": notebook(text) for name, text in texts.items() if CELL.search(text)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in pages().items():
        (FOLDER / name).write_text(content)
