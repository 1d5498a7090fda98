"""Regression targets that are mostly 0: R² of the private regressor beside ordinary least squares.

Claims (70 % are 0, the others log-normal; six columns, six splits) and Adult's ``capital_gain`` (one split).
"""

import warnings

import numpy as np
import pandas as pd
from data import DATA
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from deniable import PrivateRegressor
from deniable.testing import insecure_noise


def claims(n: int = 2_000) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns and claims, of which about 30 % are not 0."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 6))
    score = X @ np.array([0.6, -0.4, 0.3, 0, 0, 0])
    some = rng.random(n) < 1 / (1 + np.exp(0.9 - score))
    return pd.DataFrame(X).add_prefix("x"), np.where(some, np.exp(6 + 0.5 * score + 0.8 * rng.normal(size=n)), 0.0)


def gains() -> tuple[pd.DataFrame, np.ndarray]:
    """Return Adult without and with its capital gains."""
    X = pd.read_parquet(DATA / "adult.parquet")
    name = next(c for c in X.columns if c.replace("_", "-") == "capital-gain")
    return X.drop(columns=name), X[name].to_numpy(dtype=float)


def main() -> None:
    """Print R² at two targets and without protection."""
    warnings.simplefilter("ignore")
    for name, (X, y), splits in (("claims", claims(), 6), ("capital gain", gains(), 1)):
        dense = pd.get_dummies(X).astype(float).fillna(0.0)
        found: dict[str, list[float]] = {}
        for split in range(splits):
            train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=split)
            plain = LinearRegression().fit(dense.iloc[train], y[train])
            found.setdefault("unprotected", []).append(plain.score(dense.iloc[test], y[test]))
            for advantage in (0.1, 0.462):
                with insecure_noise(np.random.default_rng(split)):
                    model = PrivateRegressor(advantage=advantage).fit(X.iloc[train], y[train])
                found.setdefault(str(advantage), []).append(model.score(X.iloc[test], y[test]))
        print(name, {key: f"{np.mean(scores):.3f}, least {min(scores):.3f}" for key, scores in found.items()})


if __name__ == "__main__":
    main()
