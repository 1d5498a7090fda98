"""Mean lower limits of ``audit_scores`` and how often a broken promise is found, over seeded simulations.

python benchmarks/audit/power.py [simulations]
"""

import sys
import warnings
from collections.abc import Callable

import numpy as np

import deniable as dn
from deniable.audit import ReversedScoresWarning

Sampler = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def gaussian(mu: float) -> Sampler:
    return lambda rng, n: (rng.normal(mu, 1, n), rng.normal(0, 1, n))


def randomised_response(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    p = 1 / (1 + np.exp(-1))
    return (rng.random(n) < p).astype(float), (rng.random(n) < 1 - p).astype(float)


def few_exposed(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(0, 1, n) + 100 * (rng.random(n) < 0.03), rng.normal(0, 1, n)


def votes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares of 50 trees that vote for the true class: members near 1, many ties."""
    return rng.binomial(50, rng.beta(8, 1, n)) / 50, rng.binomial(50, rng.beta(3, 1, n)) / 50


CASES: dict[str, tuple[Sampler, dict[str, object]]] = {
    "Gaussian, mu 0.5": (gaussian(0.5), {"GDP 0.25": dn.GaussianDP(0.25), "eps 0.5": dn.PureDP(0.5)}),
    "Gaussian, mu 1": (gaussian(1), {"GDP 0.75": dn.GaussianDP(0.75), "eps 1": dn.PureDP(1.0)}),
    "Gaussian, mu 2": (gaussian(2), {"GDP 1.7": dn.GaussianDP(1.7), "eps 2": dn.PureDP(2.0)}),
    "randomised response, epsilon 1": (
        randomised_response,
        {"GDP 0.9": dn.GaussianDP(0.9), "eps 0.8": dn.PureDP(0.8)},
    ),
    "0.03 of members exposed": (few_exposed, {"GDP 0.2": dn.GaussianDP(0.2), "eps 0.5": dn.PureDP(0.5)}),
    "votes of 50 trees": (votes, {"GDP 0.5": dn.GaussianDP(0.5), "eps 0.8": dn.PureDP(0.8)}),
}


def main() -> None:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    warnings.simplefilter("ignore", ReversedScoresWarning)
    print("| scores | n | advantage | mu | epsilon | epsilon at 1e-2 | found violated |\n" + "|---|" * 1 + "---|" * 6)
    for name, (sample, promises) in CASES.items():
        for n in (200, 1000, 5000):
            limits, found = [], []
            for seed in range(simulations):
                audit = dn.audit_scores(*sample(np.random.default_rng([seed, n]), n))
                limits.append([audit.advantage().low, audit.mu().low, audit.epsilon().low, audit.epsilon(0.01).low])
                found.append([audit.compare(dn.tradeoff(m)).violated for m in promises.values()])
            cells = [f"{value:.3f}" for value in np.mean(limits, axis=0)]
            told = ", ".join(f"{p}: {s:.2f}" for p, s in zip(promises, np.mean(found, axis=0), strict=True))
            print(f"| {name} | {n} | " + " | ".join(cells) + f" | {told} |", flush=True)


if __name__ == "__main__":
    main()
