"""Izzo Figure 2 at η = 0.1 (n = 500,000, d = 3): mean relative error of ours, of the published noise and of DP-SGD.

The scale of each release is fixed once (it does not depend on the training half); then halves and noise are drawn.

    python benchmarks/noise/covariance_ratio.py
"""

from __future__ import annotations

import numpy as np
from release_table import dp_sgd_full_batch
from sklearn.datasets import make_spd_matrix

import deniable as dn
from deniable.noise import GaussianNoise, PublishedNoise, SecondMoment

N, ETA, MOMENT, DRAWS = 500_000, 0.1, 6.0, 40
UPPER = np.triu_indices(3)


def symmetric(upper):
    matrix = np.zeros((3, 3))
    matrix[UPPER] = upper
    return matrix + matrix.T - np.diag(np.diag(matrix))


def main():
    rng = np.random.default_rng(0)
    sigma = make_spd_matrix(3, random_state=0)
    X = rng.multivariate_normal(np.zeros(3), sigma, size=N)

    def error(value):
        return np.linalg.norm(value - sigma) / np.linalg.norm(sigma)

    ours = dn.release(SecondMoment(), X, eta=ETA, bound="swap")
    printed = dn.release(
        SecondMoment(), X, eta=ETA, noise="published", moment=MOMENT, reproduce=True, n_resamples=48, rng=0
    )
    unit = PublishedNoise(1.0, np.ones(6), MOMENT, reproduce=True).standard_deviation
    laws = {
        "ours": GaussianNoise(1.0, ours.noise_scale[UPPER]),
        "published": PublishedNoise(1.0, printed.noise_scale[UPPER] / unit, MOMENT, reproduce=True),
    }
    halves = [SecondMoment()(X[rng.random(N) < 0.5]) for _ in range(DRAWS)]
    means = {
        name: np.mean([error(half + symmetric(law.sample(1, rng)[0])) for half in halves]) for name, law in laws.items()
    }
    means["no noise"] = np.mean([error(half) for half in halves])
    means["DP-SGD"] = np.mean([error(dp_sgd_full_batch(X, ETA, rng)) for _ in range(2)])
    for name, value in means.items():
        print(f"{name:10s} relative error {value:.5f}, {value / means['ours']:.1f} times ours")


if __name__ == "__main__":
    main()
