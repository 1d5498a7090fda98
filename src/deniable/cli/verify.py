"""``deniable verify``: whether the numbers of a saved report follow from the mechanism that it states."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable._files import to_json
from deniable._progress import stage
from deniable.cli import _options as options
from deniable.cli._app import FINE, MISSED, command


@command("deniable verify report.json", "deniable verify report.json --json")
def verify(
    report: Annotated[Path, typer.Argument(help="A report as .json, written with --report or --owner-report.")],
    as_json: options.JsonFlag = False,
) -> int:
    """Check a saved report: compute its numbers again.

    Exit code 1 if a number, a curve or the decision does not follow from the mechanism that the report states, or if it
    states none. What was measured on records cannot be computed again, and is named; a report holds no digest of them.
    """
    from deniable.report import Assessment
    from deniable.workflows import verify as check

    with stage("computing the numbers again"):
        found = check(Assessment.from_json(report))
    if as_json:
        print(to_json({"follows": found.follows, "found": found}))
    else:
        if found.source:
            print(f"Stated mechanism: {found.source}")
        for fault in found.faults:
            print(f"✗ {fault}")
        if found.followed:
            print(f"✓ {len(found.followed)} numbers and curves follow from it. That it is what ran, no file can show.")
        if found.left:
            print(f"– {len(found.left)} not checked, since no mechanism decides them: {', '.join(found.left)}")
    return FINE if found.follows else MISSED
