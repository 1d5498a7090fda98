"""What the closed forms of the swap bound save, as ratios of processor time within one run.

python benchmarks/noise/swap_speed.py
"""

from __future__ import annotations

import time

import numpy as np

from deniable.noise import LogisticRegression, Mean
from deniable.noise.evidence import _least
from deniable.noise.laws import GaussianNoise
from deniable.noise.resampling import Population
from deniable.noise.statistics import swap_partners

LEVEL = 0.2


def seconds(task, repeats=3):
    times = []
    for _ in range(repeats):
        started = time.process_time()
        task()
        times.append(time.process_time() - started)
    return min(times)


def logistic_swaps(n, separable):
    """One resample of all swap distances against fitting again after each swap."""
    rng = np.random.default_rng(0)
    X = 5 * rng.normal(size=(n, 3))
    y = (X[:, 0] + (0 if separable else rng.logistic(size=n) * 5) > 0) * 1.0
    population, law = Population.of((X, y), 0.5), GaussianNoise(1.0, np.ones(4))
    inside, algorithm = population.single_set(rng)[0], LogisticRegression()

    def by_refitting():
        member = np.isin(np.arange(n), inside)
        leave, enter = swap_partners(member, 1, np.random.default_rng(1))
        base = algorithm(population.take(inside))
        for a, b in zip(leave[:, 0], enter[:, 0], strict=True):
            law.distance(algorithm(population.take(np.append(inside[inside != a], b))), base)

    fast = seconds(lambda: algorithm.swap_distances(population, inside, law, np.arange(4), 1, np.random.default_rng(1)))
    return seconds(by_refitting, 1) / fast


def least_scale(n):
    """The scale of a mean from the few records that matter against all records at every bisection step."""
    X = np.random.default_rng(0).standard_t(4, size=(n, 3))
    law = GaussianNoise(1.0, np.ones(3))
    rows = Mean().swap_rows(Population.of(X, 0.5), law, np.arange(3))
    fast = seconds(lambda: rows.least_scale(law, LEVEL, 0.0))
    start = float(rows.distances.max())
    slow = seconds(lambda: _least(lambda s: rows.worst(law.with_scale(s), 0.0) <= LEVEL, start), 1)
    return slow / fast


def main():
    for n in (200, 1000):
        for separable in (False, True):
            kind = "separable" if separable else "noisy"
            ratio = logistic_swaps(n, separable)
            print(f"swaps of logistic regression, {kind}, n = {n}: refitting takes {ratio:.0f} times")
    print(f"scale of a mean, n = 4000: bisection over all records takes {least_scale(4000):.0f} times")


if __name__ == "__main__":
    main()
