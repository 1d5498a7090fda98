"""Cells of made-up rows in the type that released counts tell, and labels that are drawn by a private model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from deniable._check import FloatArray, IntArray
from deniable.synthesis.columns import MadeColumn
from deniable.tables import DATE, NUMBER, Schema, spelled
from deniable.training import PrivateClassifier, labels_of

_MOST_CLASSES, _SURE = 20, 3.0  # of a target of whole numbers; standard deviations by which each stands out


def classes_of(column: MadeColumn, schema: Schema) -> dict[Any, int]:
    """Return the cell of each class of a target: its words, or the few whole numbers that stand out, if it has any."""
    if len(column.words) > 1:
        words = labels_of(column.words[:-1], schema.column(column.name))
        return {word: column.numbers + i for i, word in enumerate(words)}
    if not column.single or column.numbers > _MOST_CLASSES or column.dates:
        return {}
    return {int(column.bounds[i]): i for i in range(column.numbers) if column.mass[i] > _SURE * column.sds[i]}


def cells_made(column: MadeColumn, cells: IntArray, schema: Schema, rng: np.random.Generator) -> Any:
    """Return made-up cells of a column in the type that released counts tell."""
    number, words = column.values(cells, rng)
    if column.words:
        on = ~np.isnan(number)
        words[on] = [spelled(DATE if column.dates else NUMBER, float(value)) for value in number[on]]
        told = list(column.words[:-1])
        labels = {"true": True, "false": False} if {*told} <= {"true", "false"} else {}
        labels = labels or dict(zip(told, labels_of(told, schema.column(column.name)), strict=True))
        words[~on] = [labels.get(word, word) for word in words[~on]]
        return pd.Series(words).infer_objects()
    if column.dates:
        return pd.to_datetime(np.rint(number * 86_400), unit="s")
    if not column.holds.whole:
        return number
    return pd.Series(number).astype("Int64" if np.isnan(number).any() else "int64")


def relabel(
    cells: IntArray,
    frame: pd.DataFrame,
    model: PrivateClassifier,
    column: MadeColumn,
    schema: Schema,
    rng: np.random.Generator,
) -> IntArray:
    """Return the cells of a target drawn again by its model, whose intercepts are moved to the noisy shares."""
    place = classes_of(column, schema)
    own = np.array([place[label] for label in model.classes_.tolist()])
    rows = np.flatnonzero(np.isin(cells, own))  # blanks and other words stay
    chance = _with_shares(np.clip(model.predict_proba(frame)[rows], 1e-9, 1.0), column.mass[own])
    drawn = (np.cumsum(chance, axis=1) < rng.random(len(rows))[:, None]).sum(axis=1)
    out = cells.copy()
    out[rows] = own[np.minimum(drawn, len(own) - 1)]
    return out


def _with_shares(chance: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the probabilities with one factor a class that makes their means the ``shares``."""
    moved, out = np.zeros(len(shares)), chance
    shares = shares / shares.sum()
    for _ in range(100):
        out = chance * np.exp(moved)
        out = out / out.sum(axis=1, keepdims=True)
        moved += np.log(np.maximum(shares, 1e-9) / np.maximum(out.mean(axis=0), 1e-9))
    return out
