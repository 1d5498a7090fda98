"""How long, and how narrow, the six questions are of 200 different releases, of one more, and a page of all.

Releases are what a registry of an agency's or a company's models holds: DP-SGD with its own noise, rate and length,
counts with Laplace, discrete Laplace and discrete Gaussian noise, Gaussian sums, randomised responses and parts that
are only known to be (ε, δ)-DP. All are drawn from a seed, all differ.

Run with ``OMP_NUM_THREADS=1 python benchmarks/accounting/ledger.py [releases]``; CPU seconds are the process's own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

import deniable as dn
from deniable.mechanisms import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianDP,
    Laplace,
    Mechanism,
    RandomizedResponse,
    SubsampledGaussian,
)


def releases(count: int, seed: int = 54) -> list[Mechanism]:
    """Draw releases of all kinds in turn, in all of which nearly as much is given away."""
    rng, found = np.random.default_rng(seed), list[Mechanism]()
    for k in range(count):
        match k % 8:
            case 0 | 3 | 6:
                sigma, rate = float(rng.uniform(0.8, 3)), float(10 ** rng.uniform(-4, -2))
                found.append(SubsampledGaussian(sigma, rate, int(1 + 0.02 * rng.uniform() / rate**2 * sigma**2)))
            case 1:
                found.append(Laplace(float(rng.uniform(8, 60))))
            case 2:
                found.append(DiscreteGaussian(float(rng.uniform(8, 60))))
            case 4:
                found.append(GaussianDP(float(rng.uniform(0.02, 0.1))))
            case 5:
                found.append(DiscreteLaplace(float(rng.uniform(8, 60))))
            case 7 if k % 16 == 7:
                found.append(RandomizedResponse(float(rng.uniform(0.01, 0.1))))
            case _:
                found.append(ApproximateDP(float(rng.uniform(0.01, 0.1)), float(10 ** rng.uniform(-9, -7))))
    return found


QUESTIONS: dict[str, Callable[[dn.Tradeoff, str], float]] = {
    "advantage": lambda curve, side: curve.advantage(side=side),
    "accuracy at prior .2": lambda curve, side: curve.accuracy(0.2, side=side),
    "tpr at fpr .01": lambda curve, side: curve.tpr(0.01, side=side),
    "epsilon at delta 1e-5": lambda curve, side: curve.epsilon(1e-5, side=side),
    "delta at epsilon 1": lambda curve, side: curve.delta(1.0, side=side),
    "reconstruction at prior .01": lambda curve, side: curve.reconstruction(0.01, side=side),
}


def ask(parts: list[Mechanism]) -> float:
    """Print every bracket and its CPU seconds, and return the seconds of all."""
    begin = time.process_time()
    curve = dn.tradeoff(Composition(parts))
    for name, question in QUESTIONS.items():
        start = time.process_time()
        low, high = (question(curve, side) for side in ("lower", "upper"))
        print(f"{name:28} [{low:.9g}, {high:.9g}] {high - low:.1e} wide, {time.process_time() - start:.2f} s")
    total = time.process_time() - begin
    print(f"{len(parts)} releases: {total:.2f} CPU s\n", flush=True)
    return total


def page(parts: list[Mechanism]) -> None:
    """Print the CPU seconds of a ledger's page, and of the entry and the advantage of one release more."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = dn.Ledger(f"{folder}/ledger")
        for part in parts[:-1]:
            ledger.add(part)
        start = time.process_time()
        dn.assess(ledger).to_html()
        print(f"page of {len(parts) - 1} releases: {time.process_time() - start:.2f} CPU s")
        start = time.process_time()
        ledger.add(parts[-1])
        ledger.tradeoff().advantage()
        print(f"one more: {time.process_time() - start:.2f} CPU s")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    drawn = releases(count + 1)
    ask(drawn[:-1])
    ask(drawn)
    page(drawn)
