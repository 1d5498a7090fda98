"""deniable's own older way to a model, as a rival: output perturbation.

The optimum of a regularised logistic regression plus norm-Laplace noise (Chaudhuri, Monteleoni & Sarwate 2011,
Algorithm 1), ε = ln((1 + a)/(1 − a)). It gets what the rivals get for nothing (ranges, categories, the number of
records, the best setting by held-out score). Two classes only.
"""

import sys

import numpy as np
from data import Dataset
from harness import encode, pure, run
from sklearn.linear_model import LogisticRegression


def two_classes(data: Dataset) -> bool:
    return data.task == "classification" and len(np.unique(data.y)) == 2


def output_settings(data: Dataset):
    return {f"Λ={strength:g}": strength for strength in (0.001, 0.01, 0.1)} if two_classes(data) else {}


def perturbed(data, train, test, advantage, strength, seed):
    X = encode(data, train, "range")
    X = np.column_stack((X, np.ones(len(X))))
    X = X / np.sqrt(X.shape[1])  # norm at most 1
    classes, codes = np.unique(data.y, return_inverse=True)
    model = LogisticRegression(C=1 / (len(train) * strength), fit_intercept=False, max_iter=2000)
    model.fit(X[train], codes[train])
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=X.shape[1])
    length = rng.gamma(X.shape[1], 2 / (len(train) * strength * pure(advantage)))
    model.coef_ = model.coef_ + length * direction / np.linalg.norm(direction)
    return classes[model.predict(X[test])], model.predict_proba(X[test]), classes


if __name__ == "__main__":
    run("deniable_output_perturbation", output_settings, perturbed, sys.argv[1:])
