"""From released statistics to an assessment: the table, what its limits mean, what was limited or withheld and why."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from deniable._shown import DRAWN, plural, shown
from deniable.noise import only_our_words
from deniable.report import Assessment, Bars, Grid, Number, Section
from deniable.statistics import Row, Statistic, StatisticsRelease
from deniable.tables import Schema, understand

_COUNTED = ("count", "share", "histogram")  # sorted by size where their categories have no order of their own


def table_sections(made: StatisticsRelease) -> tuple[Section, ...]:
    """Return a section for each statistic: every number with its limits, and a picture of the first ones."""
    parts = zip(made.statistics, made.estimands, made.rows, strict=True)
    return tuple(_section(made, i, *part) for i, part in enumerate(parts, 1))


def _section(made: StatisticsRelease, i: int, statistic: Statistic, estimand: str, rows: tuple[Row, ...]) -> Section:
    sure, several = f"{100 * made.confidence:g}\u00a0%", plural(made.certificate.unit)
    summary = (
        f"“±”: the value on these {several} lies this near, with {sure} chance over the noise alone. "
        f"“Population”: noise and sampling together, if the {several} were drawn at random from it."
    )
    columns = [*statistic.by, *(["item"] if any(row.item for row in rows) else []), "value", "population", "note"]
    cells = [
        [*row.group, *([row.item] if "item" in columns[len(statistic.by) :] else []),
         row.shown(named=False), row.population or "–", "" if math.isnan(row.value) else row.note]
        for row in rows
    ]  # fmt: skip
    withheld = sum(math.isnan(row.value) for row in rows)
    why = dict.fromkeys(row.note for row in rows if math.isnan(row.value))
    notes = [f"Released: {statistic}, the {estimand}."]
    notes += [f"Withheld: {withheld} of {len(rows)} numbers ({'; '.join(why)})."] * bool(withheld)
    for column in (*statistic.columns, *statistic.by):
        how = "found in the data, with noise" if column in made.found else "declared"
        ends = made.ranges.get(column, ())
        if ends and column in statistic.by:
            notes.append(f"Categories of {column}, {how}: {len(ends)}; all others are “(other)”.")
        elif ends:
            low, high = (end if isinstance(end, str) else f"{end:.15g}" for end in (ends[0], ends[-1]))
            notes.append(f"Values of {column} are limited to {low} to {high} ({how}): farther ones count as these.")
    return Section(
        f"table{i}", str(statistic), summary,
        grids=(Grid(f"table{i}", f"{statistic}, {len(rows):,} number{'s' * (len(rows) != 1)}", columns, cells),),
        bars=_picture(f"table{i}", statistic, rows, made.certificate.unit), notes=tuple(notes),
    )  # fmt: skip


def _picture(key: str, statistic: Statistic, rows: tuple[Row, ...], unit: str) -> tuple[Bars, ...]:
    kept = [row for row in rows if not math.isnan(row.value)]
    kept = [row for row in kept if not (row.note and {"(other)", "(missing)"} & set(row.group))]  # maybe noise alone
    if statistic.function in _COUNTED[:2]:
        kept.sort(key=lambda row: -row.value)
    drawn = kept[:DRAWN]
    if not drawn:
        return ()
    wide = [row if row.population else replace(row, population_low=row.low, population_high=row.high) for row in drawn]
    left = "" if len(kept) == len(drawn) else f" (the first {len(drawn)} of {len(kept)})"
    return (
        Bars(
            key, f"{statistic}{left}: dark lines, noise alone; light lines, the population.",
            f"{plural(unit)}" if statistic.function in ("count", "histogram") else str(statistic).partition(" by ")[0],
            [row.label or f"all {plural(unit)}" for row in drawn],
            [row.value for row in drawn], [row.low for row in drawn], [row.high for row in drawn],
            [row.population_low for row in wide], [row.population_high for row in wide], drawn[0].dated,
            f"{statistic}: {len(drawn)} values with their limits; the table below holds the same numbers.",
        ),
    )  # fmt: skip


def for_owner(assessment: Assessment, data: Any, made: StatisticsRelease, schema: Schema | None = None) -> Assessment:
    """Return the page of the table's owner: also how the file was read, in exact counts that no noise protects."""
    with only_our_words():
        found = understand(data, schema=schema, strict=False)
    asked = {name for one in made.statistics for name in (*one.columns, *one.by)}
    rows = [
        [one.name, one.kind, shown(one.missing, "rate", "nearest", 2), one.reason or "; ".join(one.notes)]
        for one in found.columns
        if one.name in asked
    ]
    section = Section(
        "reading", "How the file was read", "Exact counts, without noise.",
        (Number("reading.rows", "Rows of the file", float(len(found.frame)), "Counted exactly.", "exact", "count"),),
        grids=(Grid("reading", "Columns that were asked for", ["column", "kind", "missing", "understood"], rows),),
        notes=found.notes, protected=False,
    )  # fmt: skip
    return replace(assessment, sections=(*assessment.sections, section))
