"""The pages of the papers: complete, up to date, and every name and link in them leads somewhere."""

import ast
import functools
import importlib
import re
from pathlib import Path

from oracles.scripts import loaded

ROOT = Path(__file__).resolve().parents[2]
tool = loaded("tools/statements.py")
ROWS = [(paper["key"], row) for paper in tool.papers() for row in paper["statement"]]

NUMBERED = {  # what the papers number
    "thudi2022": ["Definition 1", "Definition 2", "Lemma 1", "Theorem 1", "Corollary 1", "Table 1"]
    + [f"Figure {k}" for k in (1, 2, 5, 7)]
    + [f"Eq {k}" for k in range(1, 7)],
    "izzo2022": ["Definition 1", "Eq 1", "Algorithm 1", "Figure 1", "Figure 2"]
    + [f"Theorem {k}" for k in (3, 4, 5, 7, 8, 9)]
    + [f"Proposition {k}" for k in (2, 6, 11)]
    + ["Corollary 10", "Corollary 14", "Lemma 12", "Lemma 13"],
    "mahloujifar2022": [f"Remark {k}" for k in (1, 2, 12, 13, 14, 19)]
    + [f"Theorem {k}" for k in (3, 6, 21)]
    + [f"Definition {k}" for k in (4, 18, 20)]
    + [f"Proposition {k}" for k in (8, 9, 10, 15, 16)]
    + ["Lemma 5", "Lemma 7", "Corollary 11", "Corollary 17", "Algorithm 1", "Algorithm 2", "Appendix G", "Appendix H"]
    + [f"Figure {k}" for k in (1, 2, 3)]
    + [f"Eq {k}" for k in range(1, 27)],
    "leblond2023": [f"Figure {k}" for k in range(1, 9)] + [f"Eq {k}" for k in range(1, 23)],
}


def named(where):
    """Every statement that a cell like 'Eqs. 2–4, 13, Figures 5 to 7' names."""
    found = set()
    kinds = "Definition|Lemma|Theorem|Corollary|Proposition|Remark|Table|Figure|Algorithm|Appendix|[Ee]q"
    token = r"(?:\d+|[A-Z])(?!\w)"
    for kind, numbers in re.findall(rf"({kinds})s?\.? ({token}(?:(?:–| to |, | and ){token})*)", where):
        for part in re.split(r", | and ", numbers.strip(", ")):
            ends = re.split(r"–| to ", part)
            if ends[-1].isdigit():
                found |= {f"{kind.title()} {k}" for k in range(int(ends[0]), int(ends[-1]) + 1)}
            else:
                found.add(f"{kind} {part.strip()}")
    return found


def test_the_pages_are_what_the_table_says():
    pages = {f"{paper['key']}.md": tool.page(paper) for paper in tool.papers()}
    assert {name: (tool.PAGES / name).read_text() for name in pages} == pages, "run: make statements"


def test_every_numbered_statement_has_a_row():
    for paper, statements in NUMBERED.items():
        there = set().union(*(named(row["where"]) for key, row in ROWS if key == paper))
        assert set(statements) - there == set(), paper


def test_no_cell_is_empty_without_a_reason():
    for _, row in ROWS:
        for cell in ("function", "test", "figure"):
            assert bool(row.get(f"{cell}s")) != bool(row.get(f"no_{cell}")), (row["where"], cell)
        cells = {"functions", "tests", "figures", "no_function", "no_test", "no_figure", "wrong"}
        assert set(row) <= {"where", "says", "erratum"} | cells, row["where"]


def test_every_function_exists():
    for name in sorted({name for _, row in ROWS for name in row.get("functions", [])}):
        parts = name.removeprefix("papers.").split(".")
        found = importlib.import_module("deniable" if parts == name.split(".") else parts.pop(0))
        for part in parts:
            if not hasattr(found, part):
                found = importlib.import_module(f"{found.__name__}.{part}")
            else:
                found = getattr(found, part)
        assert callable(found), name


@functools.cache
def defined(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "name")}


def test_every_test_exists():
    for name in sorted({name for _, row in ROWS for name in row.get("tests", [])}):
        path, function = name.split("::")
        assert function in defined(ROOT / "tests" / path), name


def test_every_figure_exists_and_every_script_is_named():
    named_ones = {name for _, row in ROWS for name in row.get("figures", [])}
    drawn = [figure["name"] for paper in tool.papers() for figure in paper["figure"]]
    scripts = {f"{p.parent.name}/{p.stem}" for p in (ROOT / "papers").glob("*/*.py") if "def make(" in p.read_text()}
    assert named_ones == scripts == set(drawn)
    assert len(drawn) == len(scripts)
    for name in named_ones:
        pictures = list((ROOT / "docs" / "gallery").glob(name.replace("/", "-") + ".*"))
        assert len(pictures) == 1, name


def test_every_erratum_is_named_and_says_what_is_wrong():
    told = {erratum for _, row in ROWS for erratum in [row.get("erratum")] if erratum}
    assert told == {f"E{k}" for k in range(1, 20)}
    assert {row["erratum"] for _, row in ROWS if row.get("wrong")} == told
