"""From a ledger to an assessment: the curve of everything that was entered, release by release."""

from __future__ import annotations

from dataclasses import replace

from deniable._shown import shown
from deniable.ledger import Ledger
from deniable.report import Asked, Assessment, Grid, Section
from deniable.workflows.run import assess_mechanism


def assess_ledger(source: Ledger, asked: Asked) -> Assessment:
    """Return the bounds on every attack against everything together, with a row an entry."""
    made = assess_mechanism(source.tradeoff(), replace(asked, title=asked.title or "Everything that was released"))
    rows = []
    for entry in source.entries:
        alone = entry.advantage
        told = "another game: not added" if alone is None else shown(alone, "rate", "upper")
        rows.append([entry.number, entry.time[:10], entry.name, entry.purpose, entry.source, told, entry.head[:12]])
    heads = ["entry", "date", "name", "purpose", "source", "advantage alone, at most", "head of the chain"]
    said = source.lines()
    section = Section(
        "ledger",
        "Release by release",
        " ".join(dict.fromkeys((said[0], said[-1]))),
        grids=(Grid("entries", "Every entry", heads, rows),),
    )
    return replace(made, sections=(made.sections[0], section, *made.sections[1:]))
