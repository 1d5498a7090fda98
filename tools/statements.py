"""Write docs/papers/statements.md from papers/statements.toml: every statement of the papers and where it is here.

``make statements``; a test compares the page with the table, and every name in it with what there is.
"""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "papers" / "statements.toml"
PAGE = ROOT / "docs" / "papers" / "statements.md"

INTRODUCTION = """# From the papers to here

Every numbered statement, game, algorithm and figure of the four papers, with the function that computes it, the tests
that could refute it, and the script that draws it. Where a cell would be empty it says why. Errata (E1 to E19) are
shown in the [gallery](../gallery.md). Names of functions stand below `deniable`.

This page is written by `make statements` from `papers/statements.toml`.
"""


def papers() -> list[dict[str, Any]]:
    """Return the table: a list of papers, each with its statements."""
    found: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["paper"]
    return found


def page() -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION]
    for paper in papers():
        parts.append(f"## {paper['title']}\n")
        parts.append("| where | what | here | tested by | shown by |\n|---|---|---|---|---|")
        parts += [_row(statement) for statement in paper["statement"]]
        parts.append("")
    return "\n".join(parts)


def _row(statement: dict[str, Any]) -> str:
    what = statement["says"] + (f" (**{statement['erratum']}**)" if "erratum" in statement else "")
    cells = [
        statement["where"],
        what,
        ", ".join(f"`{name}`" for name in statement.get("functions", [])) or _why(statement, "no_function"),
        ", ".join(_test(name) for name in statement.get("tests", [])) or _why(statement, "no_test"),
        ", ".join(_figure(name) for name in statement.get("figures", [])) or _why(statement, "no_figure"),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _why(statement: dict[str, Any], key: str) -> str:
    return f"*{statement[key]}*"


def _test(name: str) -> str:
    path, function = name.split("::")
    return f"[{function.removeprefix('test_').replace('_', ' ')}](../../tests/{path})"


def _figure(name: str) -> str:
    return f"[{name.split('/')[1]}](../../papers/{name}.py)"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
    print(f"wrote {PAGE.relative_to(ROOT)}")
