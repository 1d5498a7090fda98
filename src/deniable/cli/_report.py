"""What every command that makes a report has in common: --policy, --meta, --full, and how it is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable._files import check_writable
from deniable.cli._app import FINE, MISSED, command_line, more, suggest, write

if TYPE_CHECKING:
    from deniable.report import Assessment, Policy

PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="TOML file with the limits that decide (or: default, none); exit code 1 unless they are met "
        "[default: that of the project].",
    ),
]
MetaOption = Annotated[Path | None, more("--meta", help="TOML file with date, author, data, who signs, review date.")]
FullOption = Annotated[bool, typer.Option("--full", help="Print every number, not only the decision.")]
ReportOption = Annotated[
    Path | None,
    typer.Option("--report", help="Write a report that may be published here: .html or .json."),
]
OwnerReportOption = Annotated[
    Path | None,
    typer.Option("--owner-report", help="Write a report with what no noise protects here: it stays with the data."),
]
JunitOption = Annotated[
    Path | None, typer.Option("--junit", help="Write the rules of the policy as test cases here, for CI: .xml.")
]
SarifOption = Annotated[
    Path | None, typer.Option("--sarif", help="Write what misses the policy here, for code scanning: .sarif.")
]
_PAGES = (".html", ".htm", ".json")
_ENDINGS = {"--report": _PAGES, "--owner-report": _PAGES, "--junit": (".xml",), "--sarif": (".sarif",)}


def prepared(policy: str | None, meta: Path | None = None, **pages: Path | None) -> dict[str, Any]:
    """Refuse ``pages`` that cannot be written and read --policy and --meta, before any work; return options of assess.

    The policy is None unless one is given or set for the project. The date is that of today unless --meta names one.
    """
    for name, page in pages.items():
        if page is not None:
            option = f"--{name.replace('_', '-')}"
            check_writable(option, page, suffixes=_ENDINGS[option])
    from deniable.report import read_meta

    return {
        "command": command_line(),
        "policy": _set(policy)[0],
        "meta": {"date": date.today(), **({} if meta is None else read_meta(meta))},
    }


def _set(policy: str | None) -> tuple[Policy | None, Path]:
    """The policy that decides the exit code, and the file that holds it."""
    from deniable.report import Policy

    if policy is not None:
        return None if policy == "none" else Policy.from_toml(policy), Path(policy)
    return Policy.set_once() or (None, Path("pyproject.toml"))


def show(
    assessment: Assessment,
    out: Path | None,
    as_json: bool,
    policy: str | None,
    *,
    full: bool = False,
    following: Sequence[str] = (),
    ci: Sequence[Path | None] = (),
) -> int:
    """Print an assessment, write it to ``out`` and to the files of ``ci`` by their endings, suggest what follows.

    Return the exit code.
    """
    enforced, where = _set(policy)
    for path in (out, *ci):
        if path is not None:
            write(path, written(assessment, path, where))
    if as_json:
        print(assessment.to_json())
        return code(assessment, enforced)
    from rich.console import Console

    from deniable.report import renderable

    Console(soft_wrap=False).print(renderable(assessment, full=full))
    if not full:
        print("every number: --full", file=sys.stderr)
    suggest(*(annex_of(out) or following))
    return code(assessment, enforced)


def annex_of(out: Path | None) -> tuple[str, ...]:
    """Return the command that makes an annex of a report that was written as JSON; nothing of another."""
    return ("annex", str(out), "--kind", "edpb") if out is not None and out.suffix.lower() == ".json" else ()


def written(assessment: Assessment, out: Path, where: Path = Path("pyproject.toml")) -> str:
    """Return the content of the file ``out``, by its ending; ``where`` is the file of the policy."""
    match out.suffix.lower():
        case ".json":
            return assessment.to_json()
        case ".xml":
            return assessment.to_junit()
        case ".sarif":
            return assessment.to_sarif(Path(os.path.relpath(where)).as_posix())
    return assessment.to_html()


def code(assessment: Assessment, policy: Policy | None) -> int:
    """Return the exit code: 1 for a violated bound, or a policy that decides and is not shown to be met."""
    if assessment.status == "violated":
        return MISSED
    decision = assessment.decision
    return MISSED if policy is not None and (decision is None or not decision.met) else FINE
