"""Several records that leave or join at once: the ball that holds the new optimum (LeBlond et al., eqs. 14–16)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from spheres import Sphere

from deniable._check import FloatArray, InputError, numbers
from deniable.records.fit import Optimum, fit
from deniable.records.losses import Loss, as_loss
from deniable.records.problem import UNIT, make_problem


def changed_sphere(
    X: ArrayLike,
    y: ArrayLike,
    *,
    regularization: float,
    removed: ArrayLike = (),
    added: tuple[ArrayLike, ArrayLike] | None = None,
    loss: str | Loss = "logistic",
) -> Sphere:
    """Bound the optimum after some records left and others joined by a ball, without solving for it.

    With n₀ records before and n₁ after, n_S of them ``removed``, n_A ``added``, and Δs = (Σ_A ∇l − Σ_S ∇l)/(n_A + n_S)
    at the base optimum A(x), the new optimum lies within r of R:

        R = (n₀ + n₁)/(2n₁)·A(x) − (n_A + n_S)/(2Λn₁)·Δs,   r = |(n_A − n_S)/(2n₁)·A(x) + (n_A + n_S)/(2Λn₁)·Δs|.

    A(x) lies on its surface, and the worst case 2R − A(x) is opposite. For one removed record it is
    :func:`worst_case_sphere`, without the half-space. Rounding errors are bounded and added to the radius.

    Parameters
    ----------
    X, y, regularization, loss
        As in :func:`deniable.privacy_profile`: rows (n, d), labels or responses (n,), Λ above 0.
    removed
        Numbers of the rows that leave, each once.
    added
        Rows (m, d) and labels (m,) of the records that join.

    Returns
    -------
    Sphere
        With one entry: ``centre`` (1, parameters), ``radius`` (1,) and ``reach`` 1.

    Raises
    ------
    InputError
        If nothing changes, nothing is left, a row is named twice or does not exist, or Λ is 0.

    Source: LeBlond et al., eqs. 14–16 (Okumura et al. 2015): J after the change is strongly convex with Λn₁.
    """
    kind = as_loss(loss)
    base = fit(make_problem(X, y, regularization, kind, "none", None, "mean"))
    problem, n, rows = base.problem, base.problem.count, base.problem.rows
    leaving = _rows(removed, n)
    joining = (rows.X[:0], rows.y[:0]) if added is None else _joining(base, y, added)
    n_left = n - len(leaving) + len(joining[1])
    if len(leaving) + len(joining[1]) == 0 or n_left < 1:
        raise InputError(
            f"removed and added must change the {n} records and leave at least one, got {len(leaving)} removed and "
            f"{len(joining[1])} added"
        )
    ridge = float(problem.penalty.min()) / n * n_left
    if not ridge > 0:
        raise InputError("regularization must be above 0, got 0; the ball rests on strong convexity")
    lost, error = _gradient(base, rows.X[leaving], rows.y[leaving])
    gained, more = _gradient(base, *joining)
    shrunk = problem.relief * (len(leaving) - len(joining[1]))
    pull = lost - gained + shrunk * base.centre - base.gradient  # minus the gradient after the change
    error += more + base.gradient_error + 8 * UNIT * float(np.linalg.norm(shrunk * base.centre))
    step = pull / ridge
    radius = (float(np.linalg.norm(step)) / 2 + error / ridge) * (1 + 1e-12)
    worst = base.centre + step
    return Sphere((base.centre + step / 2)[None], np.array([radius]), worst[None], np.ones(1))


def _rows(removed: ArrayLike, n: int) -> np.ndarray:
    rows = np.atleast_1d(numbers("removed", removed))
    if rows.ndim != 1 or not np.all((rows == np.round(rows)) & (rows >= 0) & (rows < n)):
        raise InputError(f"removed must be row numbers from 0 to {n - 1}, got {removed!r}")
    if len(np.unique(rows)) != len(rows):
        raise InputError(f"removed must name each row once, got {removed!r}")
    return rows.astype(np.intp)


def _joining(base: Optimum, y: ArrayLike, added: tuple[ArrayLike, ArrayLike]) -> tuple[FloatArray, FloatArray]:
    rows, known = numbers("added", added[0]), np.asarray(y)
    columns = base.problem.columns
    if rows.ndim != 2 or rows.shape[1] != columns or not np.isfinite(rows).all():
        raise InputError(f"added must hold finite rows of {columns} columns, got shape {rows.shape}")
    new = np.asarray(added[1])
    if new.shape != (len(rows),):
        raise InputError(f"added must have one label per row, got {new.shape} for {len(rows)} rows")
    if base.problem.loss.name in ("logistic", "squared_hinge", "softmax") and not np.isin(new, known).all():
        raise InputError(f"added must have labels that y has, got {new[~np.isin(new, known)][0]!r}")
    return rows, np.asarray(base.problem.loss.targets(np.concatenate([known, new]))[0][len(known) :])


def _gradient(base: Optimum, rows: FloatArray, targets: FloatArray) -> tuple[FloatArray, float]:
    """Return Σ ∇l at the base optimum over these records, and a bound of its rounding error."""
    loss, centre = base.problem.loss, base.centre.reshape(-1, base.problem.classes)
    margins = rows @ centre
    slopes = loss.slope(margins, targets)
    length = np.linalg.norm(rows, axis=1)
    off = length * float(np.linalg.norm(centre)) * (rows.shape[1] + 2) * UNIT  # rounding error of each margin
    curved = loss.largest_curvature(margins + np.sign(margins) * off[:, None]) if len(rows) else off
    each = curved * off + (len(rows) + 8) * UNIT * np.linalg.norm(slopes, axis=1)
    return np.asarray((rows.T @ slopes).ravel()), float(2 * each @ length)
