"""Which share of an attack's CPU time is the user's own training and prediction.

PYTHONPATH=src:tests python benchmarks/audit/fit_share.py
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import deniable as dn
from oracles.credit_table import credit_table


def timed(kind: type) -> tuple[type, dict[str, float]]:
    """Return the estimator with the CPU time of its methods added up."""
    spent = {"fit": 0.0, "predict_proba": 0.0}

    class Timed(kind):  # type: ignore[misc, valid-type]
        def fit(self, X: Any, y: Any) -> Any:
            start = time.process_time()
            fitted = super().fit(X, y)
            spent["fit"] += time.process_time() - start
            return fitted

        def predict_proba(self, X: Any) -> Any:
            start = time.process_time()
            told = super().predict_proba(X)
            spent["predict_proba"] += time.process_time() - start
            return told

    Timed.__init__ = kind.__init__  # type: ignore[misc]
    return Timed, spent


def main() -> None:
    warnings.simplefilter("ignore")
    X, y = load_digits(return_X_y=True)
    credit, digits = credit_table(), (X / 16, y)
    quick = {"C": 100, "max_iter": 200, "tol": 1e-3}
    cases = {
        "credit, forest of 100, 32 shadows": (RandomForestClassifier, {"n_estimators": 100}, credit, 32),
        "credit, histogram boosting, 16": (HistGradientBoostingClassifier, {"max_iter": 50}, credit, 16),
        "credit, boosting, 16": (GradientBoostingClassifier, {}, credit, 16),
        "digits, net, 16": (MLPClassifier, {"hidden_layer_sizes": (64,), "max_iter": 60}, digits, 16),
        "digits, logistic regression, 64": (LogisticRegression, quick, digits, 64),
        "digits, logistic regression, 64, lira": (LogisticRegression, quick, digits, 64),
    }
    dn.attack_estimator(LogisticRegression(), *credit, n_shadows=8, rng=0)  # imports
    print("| attack | CPU seconds | in fit | in fit and predict_proba |\n|---|---|---|---|")
    for name, (kind, options, (rows, labels), shadows) in cases.items():
        estimator, spent = timed(kind)
        start = time.process_time()
        method = "lira" if name.endswith("lira") else "auto"
        dn.attack_estimator(estimator(**options), rows, labels, method=method, n_shadows=shadows, rng=0)
        whole = time.process_time() - start
        shares = spent["fit"] / whole, sum(spent.values()) / whole
        print(f"| {name} | {whole:.1f} | {100 * shares[0]:.0f} % | {100 * shares[1]:.0f} % |")


if __name__ == "__main__":
    main()
