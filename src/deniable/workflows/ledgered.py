"""From a ledger to an assessment: the curve of everything that was entered, release by release."""

from __future__ import annotations

import math
from dataclasses import replace

from deniable._shown import shown
from deniable.ledger import Ledger
from deniable.report import Asked, Assessment, Grid, Section, Series
from deniable.workflows.run import assess_mechanism, python_text
from deniable.workflows.settings import gaussian_of


def assess_ledger(source: Ledger, asked: Asked) -> Assessment:
    """Return the bounds on every attack against everything together, with a row an entry."""
    title = f"Everything that was released{'' if source.limit is None else ', and all that the limit still admits'}"
    curve = source.tradeoff()
    delta = max(asked.delta, float(f"{2 * curve.delta(math.inf):.2g}"))  # below what may fail there is no ε
    made = assess_mechanism(curve, replace(asked, title=asked.title or title, delta=delta))
    said, entries = source.lines(), source.to_dict()["entries"]
    key, words = ("together", "together, at most") if source.limit is None else ("remaining_mu", "μ that remains")
    heads = ["entry", "time (UTC)", "name", "purpose", "source", "advantage alone, at most", words, "head of the chain"]
    rows = []
    for entry in entries:
        alone = "another game: not added" if entry["apart"] else shown(entry["advantage"], "rate", "upper")
        after = shown(entry[key], *(("rate", "upper") if source.limit is None else ("number", "lower")))
        named = (entry[name] for name in ("number", "time", "name", "purpose", "source"))
        rows.append([*named, alone, after, entry["head"][:12]])
    places, values = ([float(entry[one]) for entry in entries] for one in ("number", key))
    picture = Series("so-far", f"Release by release: {words}", "entry", words, places, {words: values})
    section = Section(
        "ledger",
        "Release by release",
        " ".join(dict.fromkeys((said[0], said[-1]))),
        series=(picture,) * bool(entries),
        grids=(Grid("entries", "Every entry", heads, rows),),
    )
    stated = source.mechanism() if source.limit is None else gaussian_of(curve)  # a limit's curve is of what may come
    return replace(
        made, sections=(made.sections[0], section, *made.sections[1:]),
        reproduction={} if stated is None else {"source": python_text(stated)},
    )  # fmt: skip
