"""Data that are hard to fit privately, beside thirty lines of noisy gradient descent: results/hard.md.

    python benchmarks/training/hard.py

The thirty lines are full-batch gradient descent on a linear model, 100 steps, residuals clipped at 1, exact accounting.
They are told for nothing each column's mean and standard deviation, the number of records, and a regression's median
and spread; and they get the best of three step lengths, chosen by held-out score. deniable runs with its defaults.
Means over three draws of the data; accuracy and AUC, or R², or (counts) the share of deviance explained.
"""

import warnings

import numpy as np
import pandas as pd
from harness import RESULTS, gdp
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score, roc_auc_score

import deniable as dn

DRAWS, STEPS, LENGTHS = 3, 100, (1.0, 4.0, 16.0)
ADVANTAGES = (0.1, 0.462)


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
    "112 records, 400 columns, three factors": factors,
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
}  # fmt: skip


def thirty_lines(X, y, X_new, kind, mu, length, rng):
    mean, spread, width = X.mean(axis=0), X.std(axis=0) + 1e-12, np.sqrt(X.shape[1])

    def rows(A):
        A = np.column_stack([np.clip((A - mean) / spread, -4, 4) / width, np.ones(len(A))]) / np.sqrt(2)
        return A / np.maximum(np.linalg.norm(A, axis=1), 1)[:, None]

    centre, unit = 0.0, float(y.mean())
    if kind == "numbers":
        centre, unit = float(np.median(y)), max(float(np.quantile(y, 0.84) - np.quantile(y, 0.16)) / 2, 1e-9)
    aim = np.eye(y.max() + 1)[y] if kind == "classes" else ((y - centre) / unit)[:, None]

    def link(S):
        if kind == "classes":
            P = np.exp(S - S.max(axis=1, keepdims=True))
            return P / P.sum(axis=1, keepdims=True)
        return S if kind == "numbers" else np.exp(np.minimum(S, 10))

    A, w, total = rows(X), np.zeros((X.shape[1] + 1, aim.shape[1])), 0.0
    for step in range(STEPS):
        left = link(A @ w) - aim
        left *= np.minimum(1, 1 / np.maximum(np.linalg.norm(left, axis=1), 1e-12))[:, None]
        w = w - length / len(y) * (A.T @ left + rng.normal(0, np.sqrt(STEPS) / mu, w.shape))
        total = total + w * (step >= STEPS // 2)
    found = link(rows(X_new) @ (total / (STEPS - STEPS // 2)))
    return found if kind == "classes" else centre + unit * found[:, 0]


def ours(X, y, X_new, kind, advantage):
    if kind == "classes":
        model = dn.PrivateClassifier(advantage=advantage, classes=range(y.max() + 1)).fit(pd.DataFrame(X), y)
        return model.predict_proba(pd.DataFrame(X_new))
    loss = "squared" if kind == "numbers" else "poisson"
    return dn.PrivateRegressor(advantage=advantage, loss=loss).fit(pd.DataFrame(X), y).predict(pd.DataFrame(X_new))


def scored(kind, y, found):
    if kind == "classes":
        aucs = [roc_auc_score(y == c, found[:, c]) for c in range(found.shape[1]) if 0 < (y == c).sum() < len(y)]
        return np.array([accuracy_score(y, found.argmax(axis=1)), np.mean(aucs)])
    return np.array(
        [r2_score(y, found) if kind == "numbers" else d2_tweedie_score(y, np.maximum(found, 1e-9), power=1)]
    )


def constant(kind, y, y_new):
    if kind == "classes":
        return float(np.mean(y_new == np.bincount(y).argmax()))
    return float(scored(kind, y_new, np.full(len(y_new), y.mean()))[0])


def main() -> None:
    warnings.simplefilter("ignore")
    lines = ["| data | advantage | deniable | thirty lines | a constant |\n|---|---|---|---|---|\n"]
    for name, make in SETS.items():
        for advantage in ADVANTAGES:
            mine, theirs, base = [], [], []
            for draw in range(DRAWS):
                rng = np.random.default_rng(draw)
                X, y, n, kind = make(rng)
                order = rng.permutation(len(y))
                X, y = X[order], y[order]
                X_new, y_new, X, y = X[n:], y[n:], X[:n], y[:n]
                mine.append(scored(kind, y_new, ours(X, y, X_new, kind, advantage)))
                tried = [thirty_lines(X, y, X_new, kind, gdp(advantage), length, rng) for length in LENGTHS]
                theirs.append([scored(kind, y_new, found) for found in tried])
                base.append(constant(kind, y, y_new))
            best = max(np.mean(theirs, axis=0), key=lambda score: score.sum())
            shown = [" / ".join(f"{value:.3f}" for value in score) for score in (np.mean(mine, axis=0), best)]
            lines.append(f"| {name} | {advantage} | {shown[0]} | {shown[1]} | {np.mean(base):.3f} |\n")
            print(lines[-1], end="", flush=True)
    (RESULTS / "hard.md").write_text("".join(lines))


if __name__ == "__main__":
    main()
