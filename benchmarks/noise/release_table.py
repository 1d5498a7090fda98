"""Noise and utility against the advantage: this library, Laplace DP and Gaussian DP.

Each release is made once per method and advantage, which fixes the noise; as the scale does not depend on the half,
halves and noise are then drawn many times, with numpy's generator. Every figure is a mean ± its standard error.

DP is matched by Izzo Theorem 4: the advantage a is 2δ + 2(1−δ)/(1+e^{−ε}) − 1, so ε = log((1+a)/(1−a)) for pure DP;
for Gaussian DP the matched μ has TV = 2Φ(μ/2) − 1 = a (no worse than any (ε, δ) on its curve). A DP release needs a
sensitivity for *all* data sets, so its data are clipped to a box that is taken as given: the true range of each
column, which favours DP (a real release would have to guess or pay for it). DP trains on all records, ours on half.

    python benchmarks/noise/release_table.py [breast adult paper] [--advantages 0.1 0.2 0.4] [--repeats 200]
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import ndtri
from sklearn.datasets import load_breast_cancer, make_spd_matrix

import deniable as dn
from deniable.noise import GaussianNoise
from deniable.releases import Mean, SecondMoment

OURS = (
    ("ours, swap", {"bound": "swap", "n_resamples": 1024, "rng": 0}),
    ("ours, centre", {"bound": "centre", "rng": 0}),
)


def epsilon(advantage):
    return float(np.log((1 + advantage) / (1 - advantage)))


def mu(advantage):
    return float(2 * ndtri(0.5 + advantage / 2))


def rows_of(data, rows):
    return tuple(part[rows] for part in data) if isinstance(data, tuple) else data[rows]


def released(algorithm, data, advantage, options, repeats, measure, rng):
    """Release once, then draw halves and noise again and again: (noise, measures, kind of the guarantee)."""
    r = dn.release(algorithm, data, advantage=advantage, **options)
    # coordinates that share a draw of noise come out equal, as those of a symmetric matrix do
    _, free, place = np.unique(r.value, return_index=True, return_inverse=True)
    std = r.noise_scale.ravel()[free]
    law = GaussianNoise(1.0, std)
    n, k = r.certificate.n_records, r.certificate.n_train
    found = [
        measure(algorithm(rows_of(data, rng.permutation(n)[:k])) + law.sample(1, rng)[0][place].reshape(r.value.shape))
        for _ in range(repeats)
    ]
    return float(np.sqrt(np.mean(r.noise_scale**2))), found, r.certificate.kind


def additive_dp(value, l1, l2, advantage, repeats, measure, rng):
    """Laplace and Gaussian mechanisms at the matching privacy: [(name, noise, measures, guarantee)]."""
    rows = []
    for name, scale, draw in (
        ("Laplace DP", l1 / epsilon(advantage), rng.laplace),
        ("Gaussian DP", l2 / mu(advantage), rng.normal),
    ):
        found = [measure(value + draw(scale=scale, size=np.shape(value))) for _ in range(repeats)]
        rows.append((name, scale * (np.sqrt(2) if "Laplace" in name else 1.0), found, "proof"))
    return rows


def report(title, measure, advantages, rows_at):
    print(f"\n**{title}**\n\n| advantage | method | noise (rms) | {measure} | guarantee |\n|---|---|---|---|---|")
    for advantage in advantages:
        for name, noise, found, kind in rows_at(advantage):
            mean, error = np.mean(found), np.std(found) / np.sqrt(len(found))
            shown = "–" if noise is None else f"{noise:.3g}"
            print(f"| {advantage:g} | {name} | {shown} | {mean:.3g} ± {error:.1g} | {kind} |", flush=True)


def dp_sgd_full_batch(X, advantage, rng, steps=30, rate=0.2):
    """Full-batch DP-SGD of Izzo §5.2 on min ‖A − XᵀX/n‖²_F: clip at the median gradient norm, compose μ over steps."""
    n, d = X.shape
    outer = (X[:, :, None] * X[:, None, :]).reshape(n, d * d)
    a, clip = np.zeros(d * d), float(np.median(np.linalg.norm(2 * outer, axis=1)))
    noise = clip * np.sqrt(steps) / mu(advantage)
    for _ in range(steps):
        gradient = 2 * (a - outer)
        gradient *= np.minimum(1, clip / np.linalg.norm(gradient, axis=1))[:, None]
        a = a - rate * (gradient.sum(axis=0) + rng.normal(scale=noise, size=d * d)) / n
    return a.reshape(d, d)


def paper_example(advantages, repeats, n, rng):
    """Izzo Figure 2: second moments of a centred Gaussian, d = 3, relative Frobenius error against Σ."""
    sigma = make_spd_matrix(3, random_state=0)
    X = rng.multivariate_normal(np.zeros(3), sigma, size=n)
    repeats = max(repeats // 5, 2)
    box = np.abs(X).max(axis=0)
    ranges = np.outer(box, box) + np.outer(box, box) * ~np.eye(3, dtype=bool)  # width of each product's range

    def error(value):
        return np.linalg.norm(value - sigma) / np.linalg.norm(sigma)

    def rows_at(advantage):
        ours = [(name, *released(SecondMoment(), X, advantage, options, repeats, error, rng)) for name, options in OURS]
        yield from ours
        l1, l2 = ranges.sum() / n, float(np.sqrt((ranges**2).sum())) / n
        yield from additive_dp(X.T @ X / n, l1, l2, advantage, repeats, error, rng)
        sgd = [error(dp_sgd_full_batch(X, advantage, rng)) for _ in range(3)]
        yield "full-batch DP-SGD, median clipping", None, sgd, "proof"
        halves = [error(SecondMoment()(X[rng.permutation(n)[: n // 2]])) for _ in range(repeats)]
        yield "a half without noise", 0.0, halves, "none"
        best = np.mean(ours[0][2])
        ratios.append(f"advantage {advantage:g}: DP-SGD {np.mean(sgd) / best:.0f}")

    ratios: list[str] = []
    report(f"The paper's example: second moments, n = {n:,}, d = 3", "relative error", advantages, rows_at)
    print("\nTimes the error of ours, swap: " + "; ".join(ratios) + ".")


def column_means(name, X, advantages, repeats, rng):
    """Means of the columns, in units of each column's standard deviation."""
    n = len(X)
    X = X / X.std(axis=0)
    truth, ranges = X.mean(axis=0), np.ptp(X, axis=0)

    def error(value):
        return np.sqrt(np.mean((value - truth) ** 2))

    def rows_at(advantage):
        for method, options in OURS:
            yield method, *released(Mean(), X, advantage, options, repeats, error, rng)
        l1, l2 = ranges.sum() / n, float(np.sqrt((ranges**2).sum())) / n
        yield from additive_dp(truth, l1, l2, advantage, repeats, error, rng)

    title = f"{name}: means of {X.shape[1]} columns, n = {n:,} (in standard deviations)"
    report(title, "rms error", advantages, rows_at)


def adult():
    import pandas as pd

    folder = Path(os.environ.get("DENIABLE_DATA", Path(__file__).parents[2].parent / "shared" / "datasets"))
    return pd.read_parquet(folder / "adult.parquet").select_dtypes("number").to_numpy(dtype=float)


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=["breast", "adult", "paper"])
    parser.add_argument("--n", type=int, default=500_000, help="records in the paper's example")
    parser.add_argument("--repeats", type=int, default=200, help="draws of half and noise (a fifth in the example)")
    parser.add_argument("--advantages", type=float, nargs="+", default=[0.1, 0.2, 0.4])
    given = parser.parse_args()
    settings = given.advantages, given.repeats
    make = {
        "breast": lambda rng: column_means("breast cancer", load_breast_cancer().data, *settings, rng),
        "adult": lambda rng: column_means("adult", adult(), *settings, rng),
        "paper": lambda rng: paper_example(*settings, given.n, rng),
    }
    for name in given.tables:
        started = time.process_time()
        make[name](np.random.default_rng(0))
        print(f"\n({time.process_time() - started:.0f} s of one core)", flush=True)


if __name__ == "__main__":
    main()
