"""From a model fitted to a membership target to an assessment: account, curve, other risks, usefulness, shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from deniable._check import InputError
from deniable._shown import LISTED, shown
from deniable.curves import Assumptions
from deniable.noise import AS_GIVEN, Certificate
from deniable.report import (
    CERTIFIED,
    NOISE,
    TUNING_WARNING,
    Asked,
    Assessment,
    Bars,
    Grid,
    Number,
    Section,
    Series,
    bound_headline,
    bound_section,
    risk_section,
)
from deniable.training import Encoder, Listed, Pair, PrivateModel, Thermometer
from deniable.workflows.settings import fit_again, gaussian_of
from deniable.workflows.usefulness import NOT_PROTECTED, Usefulness, measure

_MOST_SHAPES = 6  # columns drawn, those that move the score most
_MOST_PAIRS = 3  # tables of pairs, those that move the score most


def assess_private(
    model: PrivateModel, asked: Asked, *, X: Any = None, y: Any = None, usefulness: Usefulness | None = None
) -> Assessment:
    """Return the assessment of a fitted :class:`PrivateClassifier` or :class:`PrivateRegressor`.

    ``X`` and ``y``, records that the model was not fitted to, add how useful the model is; that part is not protected.
    """
    kind = "classifier" if hasattr(model, "classes_") else "regression"
    access = "the fitted model and every noisy sum that it was made from"
    made = assess_fit(model, asked, f"A private {kind}", access, _shapes)
    if usefulness is None and X is not None and y is not None:
        usefulness = measure(model, X, y)
    if usefulness is None:
        return made
    return replace(
        made,
        headline=f"{made.headline} {usefulness.sentence}",
        sections=(usefulness.section(), *made.sections),
        warnings=(NOT_PROTECTED, *made.warnings),
        alert=usefulness.alert,
    )


def assess_fit(fit: Any, asked: Asked, title: str, access: str, section: Callable[[Any], Section]) -> Assessment:
    """Return the page of what was fitted under a certificate: bounds, account, and a section of its own.

    ``access`` says what an attacker sees.
    """
    if not hasattr(fit, "tradeoff_"):
        raise InputError(f"source must be fitted first: call fit on this {type(fit).__name__}")
    curve, certificate = fit.tradeoff_, fit.certificate_
    return Assessment(
        title=asked.title or title,
        status="bounded",
        headline=bound_headline(curve),
        sections=(
            bound_section(curve, asked),
            risk_section(curve, asked.baselines, replacing=fit.replacement_tradeoff_),
            account_section(certificate),
            section(fit),
        ),
        assumptions=seen(certificate, access),
        not_covered=CERTIFIED,
        warnings=(TUNING_WARNING,),
        reproduction=proof_of(certificate),
        remedies=partial(fit_again, certificate.mu, certificate.delta),
    )  # fmt: skip


def seen(certificate: Certificate, access: str) -> Assumptions:
    """Return the game of a certificate, whose attacker has ``access``, and what it takes as public."""
    own = certificate.tradeoff.assumptions
    public = (f"Public: {line}." for line in certificate.public)
    return replace(own, access=access, notes=(*own.notes, f"Covered: {AS_GIVEN}.", *public))


def proof_of(certificate: Certificate) -> dict[str, str]:
    """Return what ``verify`` needs of private queries: their mechanism, and that of replacing a record."""
    replacing = gaussian_of(certificate.replacement)
    return {"source": repr(certificate.mechanism)} | ({} if replacing is None else {"replacing": repr(replacing)})


def account_section(certificate: Certificate) -> Section:
    """Every query of the data, those with one purpose in one row."""
    rows: list[list[Any]] = []
    for purpose, names, mu, share in certificate.purposes():
        what = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        rows.append([what, purpose, shown(share, "rate", "nearest", 3), mu])
    lines = [f"Target: {certificate.target}."]
    if certificate.delta > 0:
        delta = shown(certificate.delta, "number", "upper")
        lines.append(f"Discovery of categories fails with probability at most {delta}; it is counted in.")
    return Section(
        "account",
        "Every query of the data",
        f"All that the fit learnt are {len(certificate.uses)} noisy sums or series of sums. Together they are Gaussian "
        f"differential privacy for one {certificate.unit}; the squares of the μ add up.",
        (
            Number("account.mu", "μ of the whole fit", certificate.mu, "Gaussian differential privacy of all queries.",
                   unit="number"),
        ),
        grids=(Grid("account", "What was asked, and its share of the budget", ["query", "for", "share", "μ"], rows),),
        notes=(*lines, NOISE, *(f"Taken as public: {line}." for line in certificate.public)),
    )  # fmt: skip


def _shapes(model: PrivateModel) -> Section:
    """What each column adds to the score: pictures of the columns that matter most, a table of all."""
    fitted = model.model_
    dates = [column.name for column in model.columns_ if column.axis == "date"]
    values = [fitted.block(j)[:, -1] for j in range(len(fitted.blocks))]
    spread = np.array([fitted.spread(j) for j in range(len(values))])
    order = [int(j) for j in np.argsort(-spread, kind="stable")]
    numeric = [j for j in order if j < len(fitted.encoders) and fitted.encoders[j].bins][:_MOST_SHAPES]
    listed = [j for j in order if j < len(fitted.encoders) and not fitted.encoders[j].bins
              and isinstance(fitted.encoders[j].word, Listed)][:_MOST_SHAPES]  # fmt: skip
    pairs = [j for j in order if j >= len(fitted.encoders)]
    beside = [block[getattr(fitted.blocks[j], "bins", 0) or -1 :] for j, block in enumerate(values)]
    farthest = np.array([rest[np.argmax(np.abs(rest))] for rest in beside])
    rows: list[list[Any]] = [
        [str(fitted.blocks[j].name), float(spread[j]), float(farthest[j])]
        for j in np.argsort(-np.maximum(spread, np.abs(farthest)), kind="stable")
    ]
    classes: Any = getattr(model, "classes_", ())
    which = f" of class {classes[-1]}" if len(classes) else ""
    return Section(
        "shapes",
        "What the model does with each column",
        f"The score{which} is a sum of one term per column and per pair that acts together; these are the terms, made "
        "from noisy sums only. Ignore differences smaller than the noise.",
        bars=tuple(_categories(fitted, j, values[j], f"category{i}") for i, j in enumerate(listed)),
        series=tuple(_shape(fitted.encoders[j], values[j], f"shape{i}", dates) for i, j in enumerate(numeric)),
        grids=(
            Grid(
                "columns",
                f"How far each column moves the score (the largest of {len(rows)} terms)",
                ["column", "from lowest to highest", "missing, or words among numbers: adds"],
                rows[:LISTED],
            ),
            *(_joint(fitted.blocks[j], values[j], f"pair{i}") for i, j in enumerate(pairs[:_MOST_PAIRS])),
        ),
    )


def _joint(pair: Pair, values: Any, key: str) -> Grid:
    """What a pair adds to the score, by eighths of both columns: numbers in order, words by what they add alone."""
    first, second = map(str, pair.names)
    cells = pair.grid(values).tolist()
    head = [f"{first}, of eight", *(f"{second} {k + 1}" for k in range(len(cells)))]
    rows: list[list[Any]] = [[str(k + 1), *row] for k, row in enumerate(cells)]
    return Grid(
        key, f"What {first} and {second} add together, from the lowest to the highest eighth of each", head, rows
    )


def _categories(fitted: Any, j: int, values: Any, key: str) -> Bars:
    """What each category adds that records are known to have, the farthest from zero first."""
    name, known = str(fitted.encoders[j].name), (*fitted.encoders[j].word.values, "(other)", "(missing)")
    cells = [int(cell) for cell in fitted.occupied(j) if cell < len(known)]
    cells.sort(key=lambda cell: -abs(float(values[cell])))
    return Bars(
        key, f"What each category of {name} adds to the score; its noise is not known.", f"{name}: adds to the score",
        [str(known[cell]) for cell in cells], [float(values[cell]) for cell in cells], [], [],
    )  # fmt: skip


def _shape(encoder: Encoder, values: Any, key: str, dates: Sequence[Any]) -> Series:
    name, number = str(encoder.name), encoder.number
    if isinstance(number, Thermometer):
        ends, levels, wide = number.drawn(values)
        x, y = np.repeat(ends, 2)[1:-1], np.repeat(levels, 2)
    else:
        low, high = (0.0, 1.0) if number is None else (number.low, number.high)
        x, y, wide = np.linspace(low, high, encoder.bins), values[: encoder.bins], False
    return Series(
        key, f"What {name} adds to the score.", name, "adds to the score", x.tolist(), {name: y.tolist()}, log_x=wide,
        dates=encoder.name in dates, alt=f"Shape function of {name}: between {np.min(y):.3g} and {np.max(y):.3g} for "
        f"values from {x[0]:.4g} to {x[-1]:.4g}.",
    )  # fmt: skip
