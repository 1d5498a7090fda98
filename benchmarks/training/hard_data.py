"""Data that are hard to fit privately, one draw a number. Imports nothing of deniable, so that rivals can load it."""

import numpy as np
import pandas as pd
from data import Dataset
from sklearn.datasets import make_classification


def classified(rng, n, **options):
    X, y = make_classification(n + 3000, flip_y=0, class_sep=1.2, random_state=int(rng.integers(2**31)), **options)
    return X, y, n, "classes"


def numbers(rng, n, target, kind="numbers"):
    X = rng.normal(size=(n + 3000, 6))
    return X, target(X[:, 0] + 0.7 * X[:, 1] - 0.5 * X[:, 2]), n, kind


def counts(rng, slope, level):
    return numbers(rng, 4000, lambda z: rng.poisson(np.exp(slope * z + level)), "counts")


def few(rng, n, d, columns):
    X = rng.normal(size=(n + 1000, d))
    y = (2 * X[:, 0] + X[:, 1] + rng.logistic(size=len(X)) > 0).astype(int)
    return columns(X), y, n, "classes"


def factors(rng):
    """112 records of 400 columns that hang together."""
    latent = rng.normal(size=(3112, 3))
    X = latent @ rng.normal(size=(3, 400)) + rng.normal(size=(3112, 400))
    return X, (latent[:, 0] > 0).astype(int), 112, "classes"


SETS = {
    "2,000 records, 20 classes": lambda rng: classified(
        rng, 2000, n_features=20, n_informative=12, n_classes=20, n_clusters_per_class=1
    ),
    "1,000 records, 10 % positive": lambda rng: classified(rng, 1000, n_features=12, weights=[0.9]),
    "2,000 records, 2 % positive": lambda rng: classified(rng, 2000, n_features=12, weights=[0.98]),
    "10,000 records, 2 % positive": lambda rng: classified(rng, 10_000, n_features=12, weights=[0.98]),
    "60 records, standardised": lambda rng: few(rng, 60, 4, lambda X: X),
    "60 records: age, income, weight": lambda rng: few(
        rng, 60, 3, lambda X: np.column_stack([45 + 15 * X[:, 0], np.exp(10 + X[:, 1]), 70 + 12 * X[:, 2]])
    ),
    "400 records, Pareto columns": lambda rng: few(rng, 400, 8, lambda X: np.exp(2 * X)),
    "4,000 records, 70 % zeros": lambda rng: numbers(
        rng, 4000, lambda z: np.where(rng.random(z.size) < 0.7, 0, np.exp(z))
    ),
    "30,000 records, 70 % zeros": lambda rng: numbers(
        rng, 30_000, lambda z: np.where(rng.random(z.size) < 0.7, 0, np.exp(z))
    ),
    "4,000 records, Pareto target": lambda rng: numbers(rng, 4000, lambda z: np.exp(1.5 * z)),
    "4,000 records, t(2) noise": lambda rng: numbers(rng, 4000, lambda z: z + 0.5 * rng.standard_t(2, z.size)),
    "4,000 records, counts with mean 1.2": lambda rng: counts(rng, 0.5, 0.0),
    "4,000 records, counts with mean 0.1": lambda rng: counts(rng, 1.0, -3.0),
    "112 records, 400 columns, three factors": factors,
}  # fmt: skip


def drawn(name, draw):
    """One draw: the data set, its kind ("classes", "numbers", "counts"), the rows to train on and those held out."""
    X, y, n, kind = SETS[name](np.random.default_rng(draw))
    order = np.random.default_rng([draw, 1]).permutation(len(y))
    frame = pd.DataFrame(X[order], columns=[f"x{j}" for j in range(X.shape[1])])
    task = "classification" if kind == "classes" else "regression"
    return Dataset(name, frame, y[order], task), kind, np.arange(n), np.arange(n, len(y))
