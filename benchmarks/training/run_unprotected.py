"""What is possible without protection: logistic regression, gradient boosting, and guessing the majority."""

import numpy as np
from data import Dataset
from harness import encode, run
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge


def estimator(data: Dataset, kind: str):
    if data.task == "regression":
        return {
            "linear": Ridge(),
            "boosting": HistGradientBoostingRegressor(random_state=0),
            "guess": DummyRegressor(),
        }[kind]
    return {
        "linear": LogisticRegression(max_iter=2000),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "guess": DummyClassifier(),
    }[kind]


def fit(data, train, test, advantage, kind, seed):
    X = encode(data, train, "standard")
    model = estimator(data, kind).fit(X[train], data.y[train])
    classes = getattr(model, "classes_", np.array([]))
    return model.predict(X[test]), model.predict_proba(X[test]) if len(classes) else None, classes


if __name__ == "__main__":
    for kind in ("guess", "linear", "boosting"):
        run(f"unprotected_{kind}", lambda data, k=kind: {k: k}, fit, takes_advantage=False)
