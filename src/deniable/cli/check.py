"""``deniable check``: what was understood of a table."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from deniable._files import to_json
from deniable.cli import _options as options
from deniable.cli._app import BAD_INPUT, command, of_table, suggest, write

if TYPE_CHECKING:
    from deniable.tables import Understood

_SHOWN = 60  # columns of which each has a line
_NOTHING = (
    "no column can be used: see why above; a title above the header, another sheet (--sheet) or separator give such "
    "columns; declare what they hold in a schema (--schema)"
)


@command("deniable check data.csv --target y", "deniable check data.csv --target y --schema-out schema.toml")
def check(
    data: options.DataArgument,
    target: options.TargetOption = None,
    drop: options.DropOption = None,
    *,
    reading: options.Reading,
    schema_out: Annotated[
        Path | None, options.file("--schema-out", "Draft a schema here, for you to correct", ".toml")
    ] = None,
    as_json: options.JsonFlag = False,
) -> int:
    """Say what was understood of each column of a table.

    Exit code 2 if the table cannot be used; all its problems are listed. No value of the table is printed; a drafted
    schema holds some, in comments.
    """
    from deniable.noise import only_our_words
    from deniable.tables import PUBLIC, WHICH_MARK, draft_schema, understand

    left = tuple(drop or ())
    source, told = reading.opened(data, say=False)
    with only_our_words():
        found = understand(source, target, drop=left, schema=told, strict=False)
        if schema_out is not None:  # the draft answers it
            found = replace(found, problems=tuple(one for one in found.problems if one != WHICH_MARK))
        if not found.problems and not found.kept:
            found = replace(found, problems=(_NOTHING,))
        drafted = "" if schema_out is None else draft_schema(source, target, drop=left, schema=told)
    if schema_out is not None:
        write({schema_out: drafted})
        print("read the schema, then delete its first line", file=sys.stderr)
    if as_json:
        print(to_json(_facts(found)))
    else:
        _show(found, PUBLIC)
        if not found.problems and found.target is not None:
            whole = of_table(data, target, drop, **vars(reading))
            declared = of_table(data, schema=schema_out, sheet=reading.sheet)
            suggest("train", *(whole if schema_out is None else declared), "--report", "report.html")
    return BAD_INPUT if found.problems else 0


def _facts(found: Understood) -> dict[str, Any]:
    return {
        "name": found.name,
        "rows": len(found.frame),
        "target": found.target_name,
        "target_values": None if found.target is None else int(found.target.nunique()),
        "notes": found.notes,
        "columns": [vars(column) for column in found.columns],
        "problems": found.problems,
        "odd": found.odd,
    }


def _show(found: Understood, public: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from deniable.tables import few

    console = Console(markup=False, highlight=False, emoji=False)
    console.print(f"{found.name}: {len(found.frame):,} rows, {len(found.kept)} columns to use", *found.notes, sep="\n")
    if found.odd:
        rows = f"lines that weigh nothing (other cells than the header, an open quote): {len(found.odd)}, row "
        console.print(rows + few(found.odd), style="bold red")
    if found.target is not None:
        console.print(f"target {found.target_name!r}: {int(found.target.nunique()):,} different values")
    lines = found.columns
    if len(lines) > _SHOWN:
        kinds = Counter(column.kind for column in lines)
        console.print(f"columns: {', '.join(f'{many:,} {kind}' for kind, many in kinds.most_common())}")
        lines = tuple(column for column in lines if column.reason or column.notes)[:_SHOWN]
        console.print(f"the first {len(lines)} of which there is something to say (--json shows all):")
    table = Table("column", "kind", "missing", "what was understood")
    for column in lines:
        words = "; ".join(word for word in (column.written, column.reason, *column.notes) if word)
        table.add_row(column.name, column.kind, f"{100 * column.missing:.2g} %" if column.missing else "", words)
    console.print(*[table] * bool(lines))
    if lines and not found.problems:
        gone = [column.name for column in found.columns if not column.trained]
        left = f"all but {few(gone)} (nearly unique words, or nothing)" if gone else "all of these columns"
        too = [column.name for column in found.columns if column.trained and column.kind == "dropped"]
        left += f", also {few(too)}, which profile and attack drop" * bool(too)
        console.print(f'without a schema train uses {left}; to leave one out: --drop, or kind = "dropped" in a schema')
        console.print(public)
    for problem in found.problems:
        console.print(f"problem: {problem}", style="bold red")
