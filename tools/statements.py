"""Write a page for each paper below docs/papers/ from papers/statements.toml: its figures and its statements.

``make statements``; a test compares the pages with the table, and every name in it with what there is.
"""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "papers" / "statements.toml"
PAGES = ROOT / "docs" / "papers"
PICTURES = ROOT / "docs" / "gallery"


def papers() -> list[dict[str, Any]]:
    """Return the table: a list of papers, each with its figures and statements."""
    found: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["paper"]
    return found


def page(paper: dict[str, Any]) -> str:
    """Return the page of a paper as Markdown."""
    parts = [f"# {paper['title']}\n"]
    parts += [_picture(figure) for figure in paper["figure"]]
    parts.append("## Statements\n\n| where and what | here | checked by |\n|---|---|---|")
    parts += [_row(statement) for statement in paper["statement"]]
    errata = [statement for statement in paper["statement"] if "wrong" in statement]
    parts += ["\n## Errata\n"]
    parts += [f"- **{one['erratum']}**, {one['where']}. {one['wrong']}" for one in errata]
    return "\n".join(parts) + "\n"


def _picture(figure: dict[str, str]) -> str:
    file = next(PICTURES.glob(figure["name"].replace("/", "-") + ".*")).name
    return f"![{figure['title']}](../gallery/{file})\n\n{_figure(figure['name'])}: {figure['caption']}\n"


def _row(statement: dict[str, Any]) -> str:
    what = statement["says"] + (f" (**{statement['erratum']}**)" if "erratum" in statement else "")
    files = sorted({name.split("::")[0] for name in statement.get("tests", [])})
    checks = [f"[test](../../tests/{path})" for path in files] + [
        _figure(name) for name in statement.get("figures", [])
    ]
    functions = ", ".join(f"`{name}`" for name in statement.get("functions", []))
    cells = [f"**{statement['where']}**: {what}", functions or f"*{statement['no_function']}*", ", ".join(checks)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _figure(name: str) -> str:
    return f"[{name.split('/')[1]}](../../papers/{name}.py)"


if __name__ == "__main__":
    for one in papers():
        (PAGES / f"{one['key']}.md").write_text(page(one))
    print(f"wrote {len(papers())} pages to {PAGES.relative_to(ROOT)}")
