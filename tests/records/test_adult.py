"""The target on Adult: one pass, certified to 1 % on every row, and to 1e-8 where asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deniable.records.fit import fit
from deniable.records.losses import Logistic
from deniable.records.neighbours import leave_one_out
from deniable.records.problem import Problem
from deniable.records.refine import refine


@pytest.mark.datasets
def test_one_pass_is_certified_on_every_row(dataset):
    frame = pd.read_parquet(dataset("adult.parquet")).drop(columns="split", errors="ignore")
    y = np.where(frame.pop("income").astype(str).str.contains(">50K"), 1.0, -1.0)
    numeric = frame.select_dtypes("number")
    X = np.hstack(
        [
            ((numeric - numeric.mean()) / numeric.std()).to_numpy(float),
            pd.get_dummies(frame.drop(columns=numeric.columns).astype(str)).to_numpy(float),
        ]
    )
    X /= np.linalg.norm(X, axis=1).max()

    def problem(keep: np.ndarray) -> Problem:
        n, d = X[keep].shape
        return Problem(Logistic(), X[keep], y[keep], np.ones(n), np.full(d, n * 1e-3), np.full(d, 1e-3))

    everyone = np.ones(len(y), dtype=bool)
    base = fit(problem(everyone))
    pivot, changes, found = leave_one_out(base)
    assert np.all(found.radius <= 0.01 * found.distance)
    rows = np.concatenate([np.argsort(-found.distance)[:2], [12_345]])
    refined = refine(pivot, changes, found, 1e-8, rows)
    assert np.all(refined.radius[rows] <= 1e-8 * refined.distance[rows])
    for i in rows:
        keep = everyone.copy()
        keep[i] = False
        refit = fit(problem(keep), base.centre).centre
        assert np.linalg.norm(found.optima[i] - refit) <= 1e-3 * found.distance[i]
        assert np.linalg.norm(refined.optima[i] - refit) <= 1e-8 * found.distance[i]
