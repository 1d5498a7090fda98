"""Write ARCHITECTURE.md: the rooms of the house and the arrows between them, read off the imports.

Run it after a change of imports (``make architecture``); a test compares what it says with what is committed.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ROOT / "src" / "deniable"
PAGE = ROOT / "ARCHITECTURE.md"
FOUNDATION = "foundation"  # modules whose names begin with an underscore: everybody may use them
ELSEWHERE = {"_doctor": "cli", "testing": FOUNDATION}  # but for those that only one room needs

INTRODUCTION = """# The house in one picture

Everything that is known about leakage is a `Tradeoff` (the ROC of the best attack, bounded from above and below), and
everything a person reads is made from it:

    data + target ──► training / noise ──► what ran ──► Tradeoff ──► every risk ──► what a person reads
                      a private model,     mechanism      ▲    ▲     membership,     report: text, JSON,
                      a noisy statistic                   │    │     reconstruction, HTML, local page
                      Opacus, DpEvent, … ─────────►  per-record  measured  groups
                                                     profile     attack

Imports go downwards only; CI checks that (`lint-imports`).

This page is written by `make architecture` from the imports themselves.
"""

# the way of a question inside the accountant: calls go down this list and never up it (tests/docs/test_architecture.py)
WALK: list[tuple[tuple[str, ...], str]] = [
    (("mechanisms",), "what ran: a frozen dataclass, validated"),
    (
        ("accounting.dispatch", "accounting.reductions", "accounting.guarantees"),
        "`dn.tradeoff`: checks, adjacency, equivalent mechanisms, the choice of engines",
    ),
    (("curves",), "the question: `tpr`, `delta`, `explain`, …; every bound made safe on its way out"),
    (("accounting.curve",), "engines asked cheapest first, their brackets intersected; who answered"),
    (
        ("accounting.engines", "accounting.pld", "accounting.renyi"),
        "one computation each: closed forms, inversion, lattices of many scales, Rényi divergences, …",
    ),
    (("accounting.trapezoid",), "a sum on a line of the transform: value ± (aliasing, truncation, rounding)"),
    (("accounting.transform",), "the composed loss, and its transform: nodes, lines, how it decays"),
    (
        ("accounting.steps", "accounting.lattices"),
        "the law of one step: all formulas of a mechanism, in one file; lattices on which losses, or terms, add up",
    ),
]


WALKED = (
    "A question to `dn.tradeoff(mechanism)` goes down these rooms and never back up, but that curves made of other",
    "curves ask these as anybody does; a test follows the calls. `t.explain(fpr=…)` says which engine answered and",
    "what each error cost.",
)
WHAT_NEXT = (
    "A new mechanism is one file in `accounting/steps/` and one line in its `registry.py`: `docs/own_mechanism.md`.",
    "After changing an engine, run `benchmarks/accounting/gate.py`: it fails where a bracket is wider.",
)


def station(module: str) -> int | None:
    """Return the place of a module below ``deniable`` on the walk; None if it is not on it."""
    for k, (names, _) in enumerate(WALK):
        if any(module == name or module.startswith(f"{name}.") for name in names):
            return k
    return None


def room_of(module: str) -> str:
    """Return the room of a module below ``deniable``: its first part."""
    first = module.split(".", maxsplit=1)[0]
    if first in ELSEWHERE:
        return ELSEWHERE[first]
    return FOUNDATION if first.startswith("_") else first


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the name below ``deniable`` and the path of every module."""
    for path in sorted(HOUSE.rglob("*.py")):
        parts = path.relative_to(HOUSE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name and name != "__main__":
            yield name, path


def imports(path: Path) -> Iterator[str]:
    """Yield the modules of ours that a file imports, at its head or inside a function, but not for types alone."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("deniable."):
            yield node.module.removeprefix("deniable.")
        elif isinstance(node, ast.ImportFrom) and node.module == "deniable":
            yield from (alias.name for alias in node.names)


def arrows() -> dict[str, set[str]]:
    """Return for each room the rooms that it imports."""
    rooms = {room_of(name) for name, _ in modules()}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for name, path in modules():
        here = room_of(name)
        found[here] |= {room_of(other) for other in imports(path)} & rooms - {here, FOUNDATION}
    return found


def purpose(room: str) -> str:
    """Return the first line of a room's docstring."""
    if room == FOUNDATION:
        return "Checks, files, searches, progress: what every room may use."
    path = HOUSE / room / "__init__.py"
    text = ast.get_docstring(ast.parse((path if path.exists() else HOUSE / f"{room}.py").read_text()))
    if not text:
        raise SystemExit(f"room {room} has no docstring")
    return text.split("\n\n")[0].replace("\n", " ")


def floors() -> list[list[str]]:
    """Return the rooms from the top floor down, as the import contract in pyproject.toml orders them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c for c in contracts if c["type"] == "layers")["layers"]
    found: list[list[str]] = []
    for layer in layers:
        names = layer.replace("(", "").replace(")", "").replace(":", "|").split("|")
        rooms = {room_of(name.strip().removeprefix("deniable.")) for name in names} - {FOUNDATION}
        rooms -= {room for floor in found for room in floor}
        if rooms:
            found.append(sorted(rooms))
    return [*found, [FOUNDATION]]


def page() -> str:
    """Return the whole page."""
    found, order = arrows(), floors()
    missing = set(found) - {room for floor in order for room in floor}
    if missing:
        raise SystemExit(f"rooms without a floor in the import contract: {sorted(missing)}")
    lines = [INTRODUCTION, "```mermaid", "flowchart TD"]
    for k, floor in enumerate(order[:-1]):
        lines += [f"  subgraph floor{k}[ ]", *(f"    {room}" for room in floor), "  end"]
    lines += [f"  {room} --> {other}" for floor in order for room in floor for other in sorted(found[room])]
    lines += ["```", "", "From the top floor down; a room may import what lies below it.", ""]
    lines += ["| room | what it is for | imports |", "|---|---|---|"]
    for floor in order:
        for room in floor:
            lines.append(f"| `{room}` | {purpose(room)} | {', '.join(sorted(found[room])) or '–'} |")
    lines += ["", "## From a mechanism to a number", "", *WALKED, ""]
    for k, (names, what) in enumerate(WALK, start=1):
        lines.append(f"{k}. {', '.join(f'`{name}`' for name in names)}: {what}")
    lines += ["", *WHAT_NEXT]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
