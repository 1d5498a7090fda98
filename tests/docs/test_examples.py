"""Every example in README and docs is run and its output compared.

``>>>`` examples are doctests. In a ``console`` block a line that starts with ``$ deniable`` is run and the lines below
it are what it must print; ``...`` stands for anything. Blocks that follow ``<!-- not run: reason -->`` are skipped; a
block of code that is neither run nor marked so is an error. The cells of a tutorial are run in order.
"""

import contextlib
import doctest
import io
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import deniable.cli  # noqa: F401  (registers the commands)
from deniable.cli._app import run

ROOT = Path(__file__).resolve().parents[2]
COPIES = {"architecture.md", "changelog.md", "contributing.md", "security.md"}  # made for the site
MARKDOWN = sorted(p for p in (ROOT / "docs").glob("**/*.md") if "_build" not in p.parts and p.name not in COPIES)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *MARKDOWN]
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"(?P<skip><!-- not run:[^>]*-->\s*)?^```(?P<kind>\w+)\n(?P<body>.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path, kind: str) -> list[str]:
    return [m["body"] for m in FENCE.finditer(page.read_text()) if m["kind"] == kind and not m["skip"]]


def unrun(page: Path) -> list[str]:
    """First lines of the blocks of code that nothing runs and no remark excuses."""
    runs = {"python": ">>>", "console": "$ deniable ", "text": "", "toml": ""}
    found = [m for m in FENCE.finditer(page.read_text()) if not m["skip"]]
    idle = [m["body"].splitlines()[0] for m in found if m["kind"] not in runs or runs[m["kind"]] not in m["body"]]
    return idle + re.findall(r"^ +```(?:python|console|sh).*|^~~~.*", page.read_text(), re.MULTILINE)


def wrong(page: Path) -> str:
    """What the Python examples of a page print, where it differs from what is written."""
    text = "\n\n".join(block for block in blocks(page, "python") if ">>>" in block)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report = io.StringIO()
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.write)
    return report.getvalue()


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_block_is_closed_and_run_or_says_why_not():
    assert {name(page): unrun(page) for page in PAGES if unrun(page)} == {}
    fences = {name(page): re.findall(r"^```(\S*)", page.read_text(), re.MULTILINE) for page in PAGES}
    # one that names a language opens a block
    assert [page for page, found in fences.items() if len(found) % 2 or any(found[1::2])] == []
    assert all(tomllib.loads(block) for page in PAGES for block in blocks(page, "toml"))


def test_a_block_that_nothing_runs_and_a_wrong_output_are_found(tmp_path):
    """Negative controls: what the tests of the pages are there to find."""
    page = tmp_path / "page.md"
    excused = "<!-- not run: needs torch -->\n```python\nimport torch\n```\n"
    page.write_text(excused + "```python\n>>> 1 + 1\n2\n\n```\n```console\n$ deniable --help\n...\n```\n")
    assert (unrun(page), wrong(page)) == ([], "")
    page.write_text("```python\nx = 1\n```\n```sh\nls\n```\n```console\n$ ls\n```\n  ```python\n  >>> 1\n  ```\n")
    assert unrun(page) == ["x = 1", "ls", "$ ls", "  ```python"]
    page.write_text("```python\n>>> 1 + 1\n3\n\n```\n")
    assert "Expected:\n    3\nGot:\n    2\n" in wrong(page)


@pytest.mark.usefixtures("_only_when_asked")
@pytest.mark.parametrize("page", [p for p in PAGES if any(">>>" in b for b in blocks(p, "python"))], ids=name)
def test_python_examples(page):
    assert not wrong(page)


@pytest.mark.usefixtures("_only_when_asked")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=name)
def test_console_examples(page):
    for block in blocks(page, "console"):
        for command, expected in re.findall(r"^\$ deniable (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                run(shlex.split(command, comments=True))
            same = doctest.OutputChecker().check_output(expected, printed.getvalue().replace("\u00a0", " "), FLAGS)
            assert same or not expected.strip(), f"{name(page)}: deniable {command} printed\n{printed.getvalue()}"


@pytest.mark.usefixtures("_only_when_asked")
@pytest.mark.parametrize("page", [p for p in PAGES if CELL.search(p.read_text())], ids=name)
def test_cells_of_tutorials(page):
    if "import torch" in page.read_text():
        pytest.importorskip("opacus")
    scope: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in CELL.findall(page.read_text()):
            exec(compile(cell, str(page), "exec"), scope)
