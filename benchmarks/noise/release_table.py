"""Noise and utility against the target η: this library, the published sampler, Laplace DP and Gaussian DP.

DP is matched by Izzo Theorem 4: η = δ + (1−δ)/(1+e^{−ε}) − ½, so ε = log((½+η)/(½−η)) for pure DP; for Gaussian DP
the matched μ has TV = 2Φ(μ/2) − 1 = 2η (no worse than any (ε, δ) on its curve). A DP release needs a sensitivity for
*all* data sets, so its data are clipped to a box that is taken as given: the true range of each column, which favours
DP (a real release would have to guess or pay for it). DP trains on all records, ours and the published on half.

    python benchmarks/noise/release_table.py [breast adult classifier paper] [--etas 0.1] [--repeats 5]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import ndtri
from sklearn.datasets import load_breast_cancer, make_spd_matrix
from sklearn.linear_model import LogisticRegression as Logistic
from sklearn.preprocessing import StandardScaler

import deniable as dn
from deniable.noise import LogisticRegression, Mean, SecondMoment

ETAS: list[float] = []
RNG = np.random.default_rng(0)


def epsilon(eta):
    return float(np.log((0.5 + eta) / (0.5 - eta)))


def mu(eta):
    return float(2 * ndtri(0.5 + eta))


def adult():
    import pandas as pd

    folder = Path(os.environ.get("DENIABLE_DATA", Path(__file__).parents[2].parent / "shared" / "datasets"))
    frame = pd.read_parquet(folder / "adult.parquet").select_dtypes("number")
    return frame.to_numpy(dtype=float)


def dp_sgd_full_batch(X, eta, rng, steps=30, rate=0.2):
    """Full-batch DP-SGD of Izzo §5.2 on min ‖A − XᵀX/n‖²_F: clip at the median gradient norm, compose μ over steps."""
    n, d = X.shape
    outer = (X[:, :, None] * X[:, None, :]).reshape(n, d * d)
    a, clip = np.zeros(d * d), float(np.median(np.linalg.norm(2 * outer, axis=1)))
    noise = clip * np.sqrt(steps) / mu(eta)
    for _ in range(steps):
        gradient = 2 * (a - outer)
        gradient *= np.minimum(1, clip / np.linalg.norm(gradient, axis=1))[:, None]
        a = a - rate * (gradient.sum(axis=0) + rng.normal(scale=noise, size=d * d)) / n
    return a.reshape(d, d)


def released(algorithm, data, eta, repeats, error, **options):
    """Mean error and mean root mean square noise of a release."""
    found = [dn.release(algorithm, data, eta=eta, **options) for _ in range(repeats)]
    noise = np.mean([np.sqrt(np.mean(np.square(r.noise_scale))) for r in found])
    return float(noise), float(np.mean([error(r.value) for r in found])), found[0].certificate.kind


def additive_dp(value, l1, l2, eta, repeats, error):
    """Laplace and Gaussian mechanisms at the matching privacy: [(name, noise, error)]."""
    rows = []
    for name, scale, draw in (
        ("Laplace DP", l1 / epsilon(eta), RNG.laplace),
        ("Gaussian DP", l2 / mu(eta), RNG.normal),
    ):
        errors = [error(value + draw(scale=scale, size=np.shape(value))) for _ in range(repeats)]
        noise = scale * (np.sqrt(2) if "Laplace" in name else 1.0)
        rows.append((name, noise, float(np.mean(errors)), "proof"))
    return rows


def report(title, measure, rows):
    print(f"\n### {title}\n\n| η | method | noise (rms) | {measure} | guarantee |\n|---|---|---|---|---|")
    for eta, name, noise, error, kind in rows:
        print(f"| {eta:g} | {name} | {noise:.3g} | {error:.3g} | {kind} |", flush=True)


def paper_example(n, repeats):
    """Izzo Figure 2: second moments of a centred Gaussian, d = 3, relative Frobenius error against Σ."""
    sigma = make_spd_matrix(3, random_state=0)
    X = RNG.multivariate_normal(np.zeros(3), sigma, size=n)

    def error(value):
        return np.linalg.norm(value - sigma) / np.linalg.norm(sigma)

    rows = []
    for eta in ETAS:
        for name, options in (
            ("ours, swap", {"bound": "swap"}),
            ("ours, centre", {"bound": "centre", "n_resamples": 64, "rng": 0}),
            ("published, M=6", {"noise": "published", "moment": 6, "reproduce": True, "n_resamples": 48, "rng": 0}),
        ):
            rows.append((eta, name, *released(SecondMoment(), X, eta, repeats, error, **options)))
        box = np.abs(X).max(axis=0)
        ranges = np.outer(box, box) + np.outer(box, box) * ~np.eye(3, dtype=bool)  # width of each product's range
        value = X.T @ X / n
        for row in additive_dp(value, ranges.sum() / n, np.sqrt((ranges**2).sum()) / n, eta, repeats, error):
            rows.append((eta, *row))
        sgd = [error(dp_sgd_full_batch(X, eta, RNG))]
        rows.append((eta, "full-batch DP-SGD, median clipping", float("nan"), float(np.mean(sgd)), "proof"))
    report(f"The paper's example: second moments, n = {n:,}, d = 3", "relative error", rows)


def column_means(name, X, repeats):
    """Means of the columns, in units of each column's standard deviation."""
    n, scale = len(X), X.std(axis=0)
    X = X / scale
    truth = X.mean(axis=0)

    def error(value):
        return np.sqrt(np.mean((value - truth) ** 2))

    rows = []
    for eta in ETAS:
        for label, options in (
            ("ours, swap", {"bound": "swap"}),
            ("ours, centre", {"rng": 0}),
            ("published, M=6", {"noise": "published", "moment": 6, "reproduce": True, "n_resamples": 48, "rng": 0}),
        ):
            rows.append((eta, label, *released(Mean(), X, eta, repeats, error, **options)))
        ranges = np.ptp(X, axis=0)
        for row in additive_dp(truth, ranges.sum() / n, np.sqrt((ranges**2).sum()) / n, eta, repeats, error):
            rows.append((eta, *row))
    report(f"{name}: means of {X.shape[1]} columns, n = {n:,} (in standard deviations)", "rms error", rows)


def breast_cancer_classifier(repeats):
    """Logistic regression (C = 0.1, ten columns): accuracy of the released model on all records."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:, :10]), y.astype(float)
    X = X / np.linalg.norm(X, axis=1).max()
    C = 10.0

    def accuracy(value):
        return float(np.mean((X @ value[:-1] + value[-1] > 0) == y))

    rows = []
    for eta in ETAS:
        for label, options in (
            ("ours, swap", {"bound": "swap", "n_resamples": 512, "rng": 0}),
            ("ours, centre", {"rng": 0}),
            ("published, M=6", {"noise": "published", "moment": 6, "reproduce": True, "n_resamples": 48, "rng": 0}),
        ):
            rows.append((eta, label, *released(LogisticRegression(C=C), (X, y), eta, repeats, accuracy, **options)))
        # output perturbation: rows of norm ≤ √2 with the intercept, penalty 1/C on every coefficient, swap ≤ 2√2·C
        augmented = np.column_stack([X, np.ones(len(X))])
        fit = Logistic(C=C, fit_intercept=False, tol=1e-8).fit(augmented, y).coef_[0]
        l2 = 2 * np.sqrt(2) * C
        for row in additive_dp(fit, np.sqrt(11) * l2, l2, eta, repeats, accuracy):
            rows.append((eta, *row))
    plain = Logistic(C=C).fit(X, y).score(X, y)
    report(f"breast cancer: logistic regression, 10 columns, n = 569 (not private: {plain:.3f})", "accuracy", rows)


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=["breast", "adult", "classifier", "paper"])
    parser.add_argument("--n", type=int, default=500_000, help="records in the paper's example")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--etas", type=float, nargs="+", default=[0.05, 0.1, 0.2])
    given = parser.parse_args()
    ETAS[:] = given.etas
    make = {
        "breast": lambda: column_means("breast cancer", load_breast_cancer().data, given.repeats),
        "adult": lambda: column_means("adult", adult(), given.repeats),
        "classifier": lambda: breast_cancer_classifier(given.repeats),
        "paper": lambda: paper_example(given.n, given.repeats),
    }
    for name in given.tables:
        started = time.perf_counter()
        make[name]()
        print(f"\n({time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
