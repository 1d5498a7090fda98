"""The model that ``assess`` is about, released: hardened noise from fresh entropy, a file that takes raw rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable._check import FloatArray, InputError
from deniable._floats import MOST_EXPONENT
from deniable._optional import require
from deniable.noise.laws import NormLaplaceNoise
from deniable.tables import Encoded, Table
from deniable.tables.encoding import make_encoder

_ROUNDED = 2.0**-30  # of ε: more than rounding to the noise's grid and floating point can move a released value


def released_model(
    table: Table, encoded: Encoded, rows: Any, optimum: FloatArray, *, epsilon: float, regularization: float
) -> bytes:
    """Return a .skops pipeline of the encoding and the logistic regression at ``optimum`` plus noise: ε-DP, n public.

    Noise of density ∝ exp(−‖b‖/c) with c = (2/(nΛ) + 2r)/ε. The first term is how far the exact optima of two data
    sets that differ in a record lie apart at most; r = ‖∇J‖/Λ, rounded up, is how far ``optimum`` is from the exact
    one of its data (strong convexity), and could be for the other.

    Parameters
    ----------
    table, encoded, rows
        The data, their encoding and which rows trained.
    optimum
        Minimiser of mean logistic loss + Λ/2·‖f‖² over these rows.
    epsilon, regularization
        ε and Λ.
    """
    io: Any = require("skops.io", purpose="writing a .skops model")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    X, y = encoded.X[rows], encoded.y[rows]
    scale = noise_scale(X, y, optimum, epsilon=epsilon, regularization=regularization)
    released = NormLaplaceNoise(scale, np.ones(optimum.size)).perturb(optimum)
    model = LogisticRegression(C=1 / (regularization * len(y)))
    model.classes_ = np.array(encoded.classes)
    model.coef_ = released[None, :-1]
    model.intercept_ = released[-1:] * encoded.X[0, -1]
    model.n_features_in_ = released.size - 1
    content: bytes = io.dumps(make_pipeline(make_encoder(table, encoded.ranges), model))
    return content


def noise_scale(X: FloatArray, y: FloatArray, optimum: FloatArray, *, epsilon: float, regularization: float) -> float:
    """Return c of the density exp(−‖b‖/c), rounded up."""
    n, size = len(y), float(np.linalg.norm(optimum))
    weight = 1 / (1 + np.exp(np.minimum(y * (X @ optimum), MOST_EXPONENT)))
    gradient = float(np.linalg.norm(-(X.T @ (y * weight)) / n + regularization * optimum))
    rounding = (n + optimum.size + 8) * 2.0**-50 * (1 + regularization * size)  # of sums of n terms of size at most 1
    apart = 2 / (n * regularization) + 2 * (gradient + rounding) / regularization
    if not (math.isfinite(apart) and gradient <= 1e-6):
        raise InputError("the model could not be fitted closely enough to be released; use a larger regularization")
    return apart / (epsilon * (1 - _ROUNDED))
