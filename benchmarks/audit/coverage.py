"""Coverage of every interval of ``audit_scores`` over 2,000 seeded simulations.

python benchmarks/audit/coverage.py [simulations] [whole]

With "whole", only what is said about whole curves: the advantage, ε, μ, and the verdict on the law's own curve, which
it attains (the share of simulations in which it is *not* called violated).
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

import deniable as dn
from deniable.audit import ReversedScoresWarning
from deniable.mechanisms import Mechanism

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
    promise: Mechanism | None = None


def gaussian(mu: float) -> Law:
    return Law(
        f"Gaussian, mu {mu:g}",
        lambda rng, n: (rng.normal(mu, 1, n), rng.normal(0, 1, n)),
        lambda a: float(ndtr(ndtri(a) + mu)),
        advantage=float(2 * ndtr(mu / 2) - 1),
        auc=float(ndtr(mu / np.sqrt(2))),
        epsilon_at_delta=max(0.0, dn.tradeoff(dn.GaussianDP(mu)).epsilon(DELTA)),
        mu=mu,
        promise=dn.GaussianDP(mu),
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
        promise=dn.PureDP(epsilon),
    )


def approximate(epsilon: float, delta: float) -> Law:
    """The worst pair of (ε, δ)-DP: a few recognised with certainty, randomised response for the others."""
    p = 1 / (1 + np.exp(-epsilon))

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        seen = rng.random((2, n)) < delta
        inside, outside = (rng.random(n) < p).astype(float), (rng.random(n) < 1 - p).astype(float)
        return np.where(seen[0], np.inf, inside), np.where(seen[1], -np.inf, outside)

    promise = dn.ApproximateDP(epsilon, delta)
    curve = dn.tradeoff(promise)
    win = delta + (1 - delta) * (delta + (1 - delta) * p)
    return Law(
        f"worst pair of ({epsilon:g}, {delta:g})-DP", sample, lambda a: float(curve.tpr(a)), curve.advantage(), win,
        epsilon_at_delta=curve.epsilon(DELTA), promise=promise,
    )  # fmt: skip


def few_exposed(share: float) -> Law:
    """Nothing leaks about most members; a few are recognised with certainty."""

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(0, 1, n) + 100 * (rng.random(n) < share), rng.normal(0, 1, n)

    return Law(f"{share:g} of members exposed", sample, lambda a: share + (1 - share) * a, share, 0.5 + share / 2)


LAWS = [
    gaussian(0.0), gaussian(1.0), gaussian(2.0), randomised_response(1.0), approximate(1.0, 0.05), few_exposed(0.03)
]  # fmt: skip


def coverage(law: Law, n: int, fprs: list[float], simulations: int, confidence: float = 0.95) -> dict[str, float]:
    """Return the share of simulations in which each interval holds the truth."""
    held: dict[str, list[bool]] = {}
    curve = None if law.promise is None else dn.tradeoff(law.promise)
    for seed in range(simulations):
        member, nonmember = law.sample(np.random.default_rng([seed, n]), n)
        audit = dn.audit_scores(member, nonmember, confidence, rng=seed)
        truths = [(f"TPR@{a:g}", audit.tpr(a), law.roc(a)) for a in fprs if a * n >= 1]
        truths += [("advantage", audit.advantage(), law.advantage)]
        truths += [("AUC", audit.auc(), law.auc)] if fprs else []
        truths += [("epsilon", audit.epsilon(), law.epsilon), ("mu", audit.mu(), law.mu)]
        truths += [("epsilon@delta", audit.epsilon(DELTA), law.epsilon_at_delta)]
        for name, interval, truth in truths:
            if not np.isnan(truth):
                held.setdefault(name, []).append(truth in interval)
        if curve is not None:
            held.setdefault("verdict", []).append(not audit.compare(curve).violated)
    return {name: float(np.mean(values)) for name, values in held.items()}


def main() -> None:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    warnings.simplefilter("ignore", ReversedScoresWarning)
    fprs = [] if "whole" in sys.argv else [0.1, 0.01, 0.001]
    columns = [*(f"TPR@{a:g}" for a in fprs), "advantage", *(["AUC"] if fprs else [])]
    columns += ["epsilon", "epsilon@delta", "mu", "verdict"]
    print("| scores | n | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns), flush=True)
    for law in LAWS:
        for n in (50, 200, 1000, 5000):
            found = coverage(law, n, fprs, simulations)
            cells = [f"{found[c]:.4f}" if c in found else "" for c in columns]
            print(f"| {law.name} | {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
