"""The report as text: in a terminal and in a notebook."""

from __future__ import annotations

import io
from collections.abc import Iterator
from string import ascii_uppercase
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from deniable._shown import shown
from deniable.report.decision import Decision
from deniable.report.meta import FIELDS
from deniable.report.model import Assessment, Grid, Section, cell_text

if TYPE_CHECKING:
    from deniable.report.comparing import Comparison

STYLE = {"good": "green", "bad": "red", "open": "yellow", "none": "cyan"}
_STATUS = {
    "bounded": "bounded, provable upper bounds and no attack",
    "consistent": "consistent, the measured attack does not contradict the provable upper bound",
    "measured": "measured, an attack and no promise: at least this much leaks",
    "inconclusive": "inconclusive",
    "violated": "violated, an attack is above the bound, beyond its stated error",
}
_MARKS = {"met": "✓", "missed": "✗", "not decided": "?", "not asked": "–"}


def renderable(assessment: Assessment, *, full: bool = True) -> RenderableType:
    """Return the report for a Rich console: every number, or the decision and what belongs to it."""
    return Group(*(_parts(assessment) if full else _summary(assessment)))


def side_by_side(found: Comparison) -> RenderableType:
    """Return assessments side by side for a Rich console, with the differences of what is known on both sides."""
    table, heads, differences = Table("number"), list[Text](), list[Text]()
    named = zip(ascii_uppercase, found.titles, found.statuses, found.decisions, found.assumptions, strict=False)
    for letter, title, status, met, stated in named:
        table.add_column(letter, justify="right")
        heads.append(Text(f"{letter}: {title} ({status}; policy: {met or 'not asked'}). Unit: {stated.line}"))
    for row in found.rows:
        cells = ["–" if number is None else f"{SIGNS[number.kind]} {number.shown}" for number in row.numbers]
        table.add_row(Text(row.label), *map(Text, cells))
        for letter, difference in zip(ascii_uppercase[1:], row.differences, strict=False):
            if difference is not None:
                unit = next(number.unit for number in row.numbers if number is not None)
                low, high = shown(difference[0], unit, "lower"), shown(difference[1], unit, "upper")
                differences.append(Text(f"{row.label}: {letter} − A lies between {low} and {high}"))
    return Group(*heads, table, *differences)


def to_text(assessment: Assessment, width: int = 100, *, full: bool = True) -> str:
    """Return the report as plain text without colours."""
    return plainly(renderable(assessment, full=full), width)


def plainly(shown_as: RenderableType, width: int = 100) -> str:
    """Return what a Rich console shows, as plain text without colours."""
    console = Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False, force_jupyter=False)
    console.print(shown_as)
    stream = console.file
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"  # type: ignore[attr-defined]


def _summary(assessment: Assessment) -> Iterator[RenderableType]:
    """The decision, the rules, what would change it."""
    yield from _alert(assessment)
    violated = assessment.status == "violated"
    yield Text(assessment.title, style="bold")
    yield Text(assessment.headline, style="bold red" if violated else "")
    notes = [note for section in assessment.sections for note in section.notes]
    yield from (Text(note) for note in notes if note.startswith(("Verdict", "Released")))
    if assessment.decision is not None:
        yield from _decision_lines(assessment.decision, STYLE[assessment.tone])
    yield Text(f"Status: {_STATUS[assessment.status]}.")
    yield Text(f"Unit: {assessment.assumptions.line}")


def _decision_lines(decision: Decision, style: str) -> Iterator[RenderableType]:
    yield Text.assemble((decision.verdict.upper(), f"bold {style}"), f" ({decision.policy.name})")
    if decision.basis:
        yield Text(decision.basis.strip())
    asked = [rule for rule in decision.rules if rule.outcome != "not asked"]
    for rule in asked:
        here = rule.key == decision.decided_by
        decides = "" if not here else " Closest to its limit." if decision.met else " This decides."
        yield _hanging(_MARKS[rule.outcome], rule.why + decides)
    left = [rule.label for rule in decision.rules if rule.outcome == "not asked"]
    if left:
        yield _hanging(_MARKS["not asked"], f"Not part of this report: {'; '.join(left)}.")
    if not asked or decision.decided_by is None or all(rule.key != decision.decided_by for rule in asked):
        yield Text(decision.reason)
    if decision.changes:
        yield Text("What would change it:", "bold")
        yield from (_hanging("•", change) for change in decision.changes)


def _hanging(mark: str, text: str) -> RenderableType:
    """A line with a mark in front; what does not fit is continued below the text."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row(Text(mark), Text(text))
    return table


def _alert(assessment: Assessment) -> Iterator[RenderableType]:
    if assessment.for_owner:
        yield Text(assessment.for_owner, style="yellow")
    if assessment.alert:
        yield Panel(Text(assessment.alert, style="bold red"), border_style="red", title="[bold]read this first[/bold]")


def _parts(assessment: Assessment) -> Iterator[RenderableType]:
    yield from _alert(assessment)
    decision, style = assessment.decision, STYLE[assessment.tone]
    yield Panel(
        Text(assessment.headline), title=f"[bold]{escape(assessment.title)}[/bold] · {assessment.status}",
        border_style=style, title_align="left",
    )  # fmt: skip
    if decision is not None:
        yield from _decision_lines(decision, style)
    for name, value in assessment.meta.items():
        yield Text(f"{FIELDS.get(name, name)}: {value}")
    for section in assessment.sections:
        yield Text(f"\n{section.title}", style="bold")
        yield Text(section.summary)
        if section.numbers:
            yield _numbers(section)
        yield from (Text(series.title) for series in section.series)
        yield from map(_grid, section.grids)
        for note in section.notes:
            yield Text(f"• {note}")
    lists = {
        "The game": [f"{name}: {value}" for name, value in assessment.threat_model],
        "Not covered": assessment.not_covered,
        "Warnings": assessment.warnings,
        "Reproduce": [f"{name}: {value}" for name, value in assessment.reproduction.items()],
    }
    for title, items in lists.items():
        if items:
            yield Text(f"\n{title}", style="bold")
            yield from (Text(f"• {item}") for item in items)


SIGNS = {
    "provable upper bound": "≤", "empirical lower bound": "≥", "measured interval": "∈", "exact": "=",
    "estimate": "≈", "parameter": "=",
}  # fmt: skip


def _numbers(section: Section) -> Table:
    kinds = dict.fromkeys(number.kind for number in section.numbers)
    legend = ", ".join(f"{SIGNS[kind]} {kind}" for kind in kinds)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, caption=legend, caption_justify="left")
    table.add_column("number", max_width=34)
    table.add_column("", no_wrap=True)
    table.add_column("value", no_wrap=True)
    table.add_column("meaning")
    for number in section.numbers:
        sign = "" if number.value is None else SIGNS[number.kind]
        table.add_row(Text(number.label), sign, Text(number.shown), Text(number.meaning))
    return table


def _grid(grid: Grid) -> Table:
    table = Table(title=grid.title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in grid.columns:
        table.add_column(escape(column))
    for row in grid.rows:
        table.add_row(*(Text(cell_text(cell)) for cell in row))
    return table
