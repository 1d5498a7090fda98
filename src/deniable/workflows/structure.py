"""What a fitted model gives away by its structure, without any attack: the questions of output checkers."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable._check import FloatArray
from deniable.report.model import Grid, Number, Section

_FEW = 10  # records in a leaf below which output checkers ask questions
_MOST_ROWS = 10  # rows that are named


def structure_section(model: Any, X: Any, y: Any) -> Section:
    """Residual degrees of freedom, small leaves, stored training rows, certain predictions, of a model fitted to X, y.

    Signs that a model holds its records, not proofs of anything: a model may pass them all and leak.
    """
    last, seen = _last(model, X)
    n = len(y)
    numbers: list[Number] = []
    grids: list[Grid] = []
    if (count := _parameters(last)) is not None:
        numbers.append(
            Number(
                "structure.freedom", "Residual degrees of freedom", float(n - count),
                f"Training records minus {count:,} fitted parameters; few or none: the model can memorise records.",
                "exact", "number",
            )
        )  # fmt: skip
    if (leaves := _leaves(last, seen)) is not None:
        smallest, alone, small = leaves
        numbers += [
            Number("structure.leaf", "Smallest leaf", float(smallest), "Training records in it.", "exact", "count"),
            Number("structure.alone", "Leaves with a single record", alone,
                   "Share of all leaves; what such a leaf predicts is one person's data.", "exact"),
            Number("structure.small", f"Leaves with fewer than {_FEW} records", small, "Share of all leaves.", "exact"),
        ]  # fmt: skip
    stored = _stored_rows(last, seen)
    numbers.append(
        Number(
            "structure.stored", "Training rows stored in the model", float(stored.size),
            "Rows that stand in the fitted model as they are: whoever has it has these records.", "exact", "count",
        )
    )  # fmt: skip
    if stored.size:
        rows = [[str(int(i))] for i in stored[:_MOST_ROWS]]
        title = f"Stored rows ({len(rows)} of {stored.size:,}; the first row is 0)"
        grids.append(Grid("stored", title, ["row"], rows))
    if (certain := _certain(model, X, y)) is not None:
        numbers.append(
            Number(
                "structure.certain", "Records whose class is disclosed", certain,
                "Share of training records to whose true class the model gives probability 1.", "exact",
            )
        )  # fmt: skip
    return Section(
        "structure",
        "What the model's structure gives away",
        "Read off the fitted model and its training data; signs, not proofs: a model may pass them all and leak.",
        tuple(numbers),
        grids=tuple(grids),
        notes=("The training rows are numbered from 0.",),
        protected=False,
    )


def _last(model: Any, X: Any) -> tuple[Any, Any]:
    """The estimator at the end of a pipeline, and the records as it sees them."""
    if hasattr(model, "steps"):
        return model.steps[-1][1], (model[:-1].transform(X) if len(model.steps) > 1 else X)
    return model, X


def _parameters(model: Any) -> int | None:
    """Number of fitted numbers of a linear model, a network or a tree ensemble; None where it has no such count."""
    if hasattr(model, "coefs_"):
        return int(sum(np.size(part) for part in (*model.coefs_, *model.intercepts_)))
    if hasattr(model, "coef_"):
        coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
        return int(np.size(coef)) + int(np.size(getattr(model, "intercept_", ())))
    trees = _trees(model)
    return int(sum(tree.n_leaves for tree in trees)) if trees else None


def _trees(model: Any) -> list[Any]:
    """The fitted trees of a model of scikit-learn."""
    if hasattr(model, "tree_"):
        return [model.tree_]
    found = np.ravel(np.asarray(getattr(model, "estimators_", []), dtype=object))
    return [one.tree_ for one in found if hasattr(one, "tree_")]


def _leaves(model: Any, X: Any) -> tuple[int, float, float] | None:
    """The smallest leaf, the share of leaves with one training record, and of those with few."""
    trees = _trees(model)
    if not trees:
        return None
    rows = np.ascontiguousarray(_dense(X), dtype=np.float32)
    sizes = np.concatenate([_occupied(tree, rows) for tree in trees])
    return int(sizes.min()), float(np.mean(sizes == 1)), float(np.mean(sizes < _FEW))


def _occupied(tree: Any, rows: Any) -> Any:
    """How many records fall into each leaf that any falls into."""
    return np.unique(tree.apply(rows), return_counts=True)[1]


def _stored_rows(model: Any, X: Any) -> Any:
    """Indices of training rows that stand in an array of the model as they are."""
    rows = _dense(X)
    if rows.ndim != 2 or rows.shape[1] < 2:  # a single number may stand anywhere by chance
        return np.empty(0, dtype=np.intp)
    found = np.zeros(len(rows), dtype=bool)
    for value in vars(model).values():
        held = value.toarray() if hasattr(value, "toarray") else value
        if not (isinstance(held, np.ndarray) and held.ndim == 2 and held.dtype.kind in "fiu"):
            continue
        if held.shape[1] == rows.shape[1] and len(held) > 1:
            known = {row.tobytes() for row in np.ascontiguousarray(held, dtype=np.float64)}
            found |= np.array([row.tobytes() in known for row in rows])
    return np.flatnonzero(found)


def _dense(X: Any) -> FloatArray:
    if hasattr(X, "toarray"):
        X = X.toarray()
    try:
        return np.ascontiguousarray(np.asarray(X), dtype=np.float64)
    except (TypeError, ValueError):  # texts: nothing numeric to compare
        return np.empty((len(X), 0))


def _certain(model: Any, X: Any, y: Any) -> float | None:
    """Share of records to whose true class the model gives probability 1."""
    if not hasattr(model, "predict_proba"):
        return None
    chances = np.asarray(model.predict_proba(X))
    if chances.ndim != 2 or not hasattr(model, "classes_"):
        return None
    place = {label: i for i, label in enumerate(np.asarray(model.classes_).tolist())}
    own = np.array([place.get(label, -1) for label in np.asarray(y).tolist()])
    return float(np.mean([row[i] == 1.0 if i >= 0 else False for row, i in zip(chances, own, strict=True)]))
