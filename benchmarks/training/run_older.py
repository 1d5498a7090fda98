"""deniable's own older ways to a model, as rivals: output perturbation and a released estimator.

``--output``: what ``deniable assess data.csv --epsilon`` releases, the optimum of a regularised logistic regression
plus norm-Laplace noise (Chaudhuri, Monteleoni & Sarwate 2011, Algorithm 1), ε = ln((1 + a)/(1 − a)).
``--release``: ``MembershipPrivate`` around a logistic or ridge regression, eta = a: a secret half of the records
trains, noise comes from resampling. Both get what the rivals get for nothing (ranges, categories, the number of
records, the best setting by held-out score). Two classes; the second also regression, and only small tables: it fits
256 times, which takes 5 to 10 s of CPU for 10,000 records.
"""

import sys

import numpy as np
from data import Dataset
from harness import encode, pure, run
from sklearn.linear_model import LogisticRegression, Ridge

import deniable as dn

SMALL = ("breast_cancer", "small", "diabetes")
OUTPUT = "--output" in sys.argv


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


def release_settings(data: Dataset):
    if data.name not in SMALL:
        return {}
    return {f"swap, C={C:g}": C for C in (0.001, 0.1, 10.0)}


def released(data, train, test, advantage, C, seed):
    X = encode(data, train, "standard") / 4  # standardised, clipped at ±4
    X = X / np.sqrt(X.shape[1])
    if data.task == "regression":
        centre, spread = data.y[train].mean(), data.y[train].std()
        model = dn.MembershipPrivate(Ridge(alpha=1 / C), eta=advantage, bound="swap", progress=False)
        model.fit(X[train], (data.y[train] - centre) / spread)
        return model.predict(X[test]) * spread + centre, None, None
    model = dn.MembershipPrivate(LogisticRegression(C=C), eta=advantage, bound="swap", progress=False)
    model.fit(X[train], data.y[train])
    return model.predict(X[test]), model.predict_proba(X[test]), model.classes_


if __name__ == "__main__":
    rest = [a for a in sys.argv[1:] if a not in ("--output", "--release")]
    if OUTPUT:
        run("deniable_output_perturbation", output_settings, perturbed, rest)
    else:
        run("deniable_release", release_settings, released, rest, draws={})  # a fit is 256 models already
