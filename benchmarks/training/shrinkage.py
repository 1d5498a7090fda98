"""What shrinkage of the shape functions gains: scores with it less scores without it, the same noise in both fits.

    python benchmarks/training/shrinkage.py > benchmarks/training/results/shrinkage.md

Ranges are found privately (``digits``: 17 grey levels). Fits without shrinkage replace
``deniable.training.fitting.shrunk_coefficients`` by the released coefficients; the noise is seeded for the comparison.
"""

import warnings
from unittest.mock import patch

import numpy as np
from data import LOADERS, load
from harness import scores
from sklearn.model_selection import train_test_split

import deniable as dn
from deniable.testing import insecure_noise

TARGETS, SPLITS = (0.1, 0.462), 10
RELEASED = patch("deniable.training.fitting.shrunk_coefficients", lambda coefficients, *_: coefficients)


def fitted(data, train, test, advantage, split):
    """R² or macro AUC of one fit on the held-out rows."""
    kind = dn.PrivateRegressor if data.task == "regression" else dn.PrivateClassifier
    model = kind(advantage=advantage, ranges=data.declared)
    with insecure_noise(np.random.default_rng(split)):
        model.fit(data.X.iloc[train], data.y[train])
    told = (None, None) if data.task == "regression" else (model.predict_proba(data.X.iloc[test]), model.classes_)
    found = scores(data, data.y[test], model.predict(data.X.iloc[test]), *told)
    return found["r2" if data.task == "regression" else "auc"]


def gain(data, advantage, split):
    train, test = train_test_split(np.arange(len(data.y)), test_size=0.25, random_state=split)
    shrunk = fitted(data, train, test, advantage, split)
    with RELEASED:
        return shrunk - fitted(data, train, test, advantage, split)


def main() -> None:
    warnings.simplefilter("ignore")
    print("| data | score | " + " | ".join(f"advantage {a}" for a in TARGETS) + " |\n" + "|---" * 4 + "|")
    for name in LOADERS:
        data, cells = load(name), []
        for advantage in TARGETS:
            gains = [gain(data, advantage, split) for split in range(SPLITS)]
            cells.append(f"{np.mean(gains):+.4f} ± {np.std(gains, ddof=1) / np.sqrt(SPLITS):.4f}")
        print(f"| {name} | {'R²' if data.task == 'regression' else 'AUC'} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
