"""Synthetic data from a released Gaussian generator: error of the covariance, and what a regression on it is worth.

``python benchmarks/noise/synthetic.py`` prints the table of docs/release.md. Held-out R² of a linear regression,
trained on real records or on as many synthetic ones, mean and standard error over releases.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes, make_regression
from sklearn.linear_model import LinearRegression

from deniable.noise import release_generator

REPEATS = 10


def main() -> None:
    """Measure and print."""
    X, y = load_diabetes(return_X_y=True)
    wide = make_regression(n_samples=20_000, n_features=8, noise=60.0, random_state=0)
    print("| data | η | error of the covariance | R², synthetic | R², real |\n|---|---|---|---|---|")
    for name, (rows, target) in {"diabetes, 442 × 11": (X, y), "generated, 20,000 × 9": wide}.items():
        table = np.column_stack([rows / rows.std(axis=0), target / target.std()])
        for eta in (0.05, 0.1, 0.2):
            runs = np.array([one(table, eta, seed) for seed in range(REPEATS)])
            mean, failure = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(REPEATS)
            cells = [f"{m:.3f} ± {d:.3f}" for m, d in zip(mean, failure, strict=True)]
            print(f"| {name} | {eta} | " + " | ".join(cells) + " |")


def one(table: np.ndarray, eta: float, seed: int) -> tuple[float, float, float]:
    """Return the relative error of the covariance, and R² from synthetic and from real records."""
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = table[order[len(table) // 4 :]], table[order[: len(table) // 4]]
    made = release_generator(train, eta=eta, rng=seed)
    truth = np.cov(train.T)

    def score(rows: np.ndarray) -> float:
        return float(LinearRegression().fit(rows[:, :-1], rows[:, -1]).score(test[:, :-1], test[:, -1]))

    error = np.linalg.norm(made.covariance - truth) / np.linalg.norm(truth)
    return float(error), score(made.sample(len(train), rng=seed)), score(train)


if __name__ == "__main__":
    main()
