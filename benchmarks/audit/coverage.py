"""Coverage of every interval of ``audit_scores`` over 2,000 seeded simulations, as the table of docs/audit.md.

python benchmarks/audit/coverage.py [simulations]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

import deniable as dn
from deniable.audit import ReversedScoresWarning

Sampler = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]
DELTA = 0.01


@dataclass(frozen=True)
class Law:
    """A pair of score laws with its true ROC; the parameters that do not exist for it are NaN."""

    name: str
    sample: Sampler
    roc: Callable[[float], float]
    advantage: float
    auc: float
    epsilon: float = float("nan")
    epsilon_at_delta: float = float("nan")
    mu: float = float("nan")


def gaussian(mu: float) -> Law:
    return Law(
        f"Gaussian, mu {mu:g}",
        lambda rng, n: (rng.normal(mu, 1, n), rng.normal(0, 1, n)),
        lambda a: float(ndtr(ndtri(a) + mu)),
        advantage=float(2 * ndtr(mu / 2) - 1),
        auc=float(ndtr(mu / np.sqrt(2))),
        epsilon_at_delta=max(0.0, dn.tradeoff(dn.GaussianDP(mu)).epsilon(DELTA)),
        mu=mu,
    )


def randomised_response(epsilon: float) -> Law:
    p = 1 / (1 + np.exp(-epsilon))
    return Law(
        f"randomised response, epsilon {epsilon:g}",
        lambda rng, n: ((rng.random(n) < p).astype(float), (rng.random(n) < 1 - p).astype(float)),
        lambda a: float(min(np.exp(epsilon) * a, 1 - np.exp(-epsilon) * (1 - a))),
        advantage=float(2 * p - 1),
        auc=float(p),
        epsilon=epsilon,
        epsilon_at_delta=float(np.log(np.exp(epsilon) - DELTA * (1 + np.exp(epsilon)))),
    )


def few_exposed(share: float) -> Law:
    """Nothing leaks about most members; a few are recognised with certainty."""

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(0, 1, n) + 100 * (rng.random(n) < share), rng.normal(0, 1, n)

    return Law(f"{share:g} of members exposed", sample, lambda a: share + (1 - share) * a, share, 0.5 + share / 2)


LAWS = [gaussian(0.0), gaussian(1.0), gaussian(2.0), randomised_response(1.0), few_exposed(0.03)]


def coverage(law: Law, n: int, fprs: list[float], simulations: int, confidence: float = 0.95) -> dict[str, float]:
    """Return the share of simulations in which each interval holds the truth."""
    held: dict[str, list[bool]] = {}
    for seed in range(simulations):
        member, nonmember = law.sample(np.random.default_rng([seed, n]), n)
        audit = dn.audit_scores(member, nonmember, confidence, rng=seed)
        truths = [(f"TPR@{a:g}", audit.tpr(a), law.roc(a)) for a in fprs if a * n >= 1]
        truths += [("advantage", audit.advantage, law.advantage), ("AUC", audit.auc, law.auc)]
        truths += [("epsilon", audit.epsilon(), law.epsilon), ("mu", audit.mu, law.mu)]
        truths += [("epsilon@delta", audit.epsilon(DELTA), law.epsilon_at_delta)]
        for name, interval, truth in truths:
            if not np.isnan(truth):
                held.setdefault(name, []).append(truth in interval)
    return {name: float(np.mean(values)) for name, values in held.items()}


def main() -> None:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    warnings.simplefilter("ignore", ReversedScoresWarning)
    columns = ["TPR@0.1", "TPR@0.01", "TPR@0.001", "advantage", "AUC", "epsilon", "epsilon@delta", "mu"]
    print("| scores | n | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns), flush=True)
    for law in LAWS:
        for n in (50, 200, 1000, 5000):
            found = coverage(law, n, [0.1, 0.01, 0.001], simulations)
            cells = [f"{found[c]:.4f}" if c in found else "" for c in columns]
            print(f"| {law.name} | {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
