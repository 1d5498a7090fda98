"""The sequential audit: errors under the worst rule of stopping, and trainings needed to find a broken promise.

    python benchmarks/audit/sequential.py errors 10000      # true promises, 200 pairs, looked at after every pair
    python benchmarks/audit/sequential.py power 200         # broken promises
    python benchmarks/audit/sequential.py picture 200       # both over the number of pairs: docs/images/sequential.svg

Errors: scores come from the worst law that the promise allows; whoever stops at the first "violated" is wrong in the
shown share of runs, at most 5 % by the theorem. Power: pairs of trainings until the promise is violated, next to the
smallest fixed sample (n pairs, the same for all runs) at which ``audit_scores`` finds it in at least half of them; that
n has to be known beforehand, and a sample that was too small cannot be continued.
"""

import sys
import time
from pathlib import Path

import numpy as np
from scipy.special import expit

import deniable as dn


def gaussian(mu):
    return lambda rng, n: (rng.normal(mu, 1, n), rng.normal(0, 1, n))


def response(epsilon):
    honest = expit(epsilon)
    return lambda rng, n: ((rng.random(n) < honest).astype(float), (rng.random(n) > honest).astype(float))


def laplace(epsilon):
    """Scores of the likelihood-ratio attack on the Laplace mechanism: the released value itself."""
    return lambda rng, n: (rng.laplace(1, 1 / epsilon, n), rng.laplace(0, 1 / epsilon, n))


TRUE = [
    ("Gaussian, mu 1", dn.GaussianDP(1.0), gaussian(1.0)),
    ("Gaussian, mu 0.2", dn.GaussianDP(0.2), gaussian(0.2)),
    ("randomised response, epsilon 1", dn.PureDP(1.0), response(1.0)),
    ("Laplace, epsilon 0.5", dn.PureDP(0.5), laplace(0.5)),
]

BROKEN = [
    ("Gaussian, half the noise: mu 2", dn.GaussianDP(1.0), gaussian(2.0)),
    ("Gaussian, half the noise: mu 1", dn.GaussianDP(0.5), gaussian(1.0)),
    ("Gaussian, 4/5 of the noise: mu 1.25", dn.GaussianDP(1.0), gaussian(1.25)),
    ("Laplace, half the noise: epsilon 2", dn.PureDP(1.0), laplace(2.0)),
    ("Laplace, a tenth of the noise: epsilon 10", dn.PureDP(1.0), laplace(10.0)),
    ("randomised response, epsilon 1.5", dn.PureDP(1.0), response(1.5)),
]


def errors(runs: int, pairs: int = 200) -> None:
    print("| true promise, attained | runs | ever violated | standard error |\n|---|---|---|---|")
    for name, promise, draw in TRUE:
        rng, curve = np.random.default_rng(0), dn.tradeoff(promise)
        wrong = 0
        for _ in range(runs):
            q = dn.SequentialAudit(curve)
            q.update(*draw(rng, pairs))
            wrong += q.path().max() >= 20
        print(f"| {name} | {runs} | {wrong / runs:.4f} | {np.sqrt(0.05 * 0.95 / runs):.4f} |", flush=True)


def power(runs: int) -> None:
    print("| broken promise | promised | pairs: median (90 %) | fixed sample, found half the time |\n|---|---|---|---|")
    for name, promise, draw in BROKEN:
        rng, curve = np.random.default_rng(1), dn.tradeoff(promise)
        needed = []
        for _ in range(runs):
            q = dn.SequentialAudit(curve)
            while not q.path().max() >= 20:
                q.update(*draw(rng, 50))
            needed.append(int(np.argmax(q.path() >= 20)))
        middle, most = np.quantile(needed, [0.5, 0.9])
        print(f"| {name} | {promise} | {middle:.0f} ({most:.0f}) | {fixed(curve, draw, rng)} |", flush=True)


def fixed(curve, draw, rng, runs: int = 60) -> int:
    """Smallest n, on a grid of steps of 15 %, at which a fixed sample finds the violation in half of the runs."""
    n = 10.0
    while True:
        size = round(n)
        found = [dn.audit_scores(*draw(rng, size)).compare(curve).violated for _ in range(runs)]
        if np.mean(found) >= 0.5:
            return size
        n *= 1.15


def first_violations(promise, draw, runs: int, pairs: int, seed: int) -> np.ndarray:
    """Return for each run the number of pairs at which the promise was violated; infinity if it was not."""
    rng, curve, needed = np.random.default_rng(seed), dn.tradeoff(promise), np.full(runs, np.inf)
    for run in range(runs):
        q = dn.SequentialAudit(curve)
        q.update(*draw(rng, pairs))
        if (q.path() >= 20).any():
            needed[run] = np.argmax(q.path() >= 20)
    return needed


def looked_at(promise, draw, runs: int, looks: np.ndarray, seed: int) -> np.ndarray:
    """Return whether ``audit_scores`` of the pairs so far calls the promise violated, shape (runs, looks)."""
    rng, curve, found = np.random.default_rng(seed), dn.tradeoff(promise), []
    for _ in range(runs):
        members, others = draw(rng, int(looks[-1]))
        found.append([dn.audit_scores(members[:n], others[:n]).compare(curve).violated for n in looks.tolist()])
    return np.array(found)


def picture(runs: int) -> None:
    """Draw type I error and power over the number of pairs, sequential and of samples of fixed size."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "deniable"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.8), layout="constrained")
    for name, promise, draw in (TRUE[0], TRUE[2]):
        needed = first_violations(promise, draw, 5 * runs, 300, 2)
        left.step(pairs := np.arange(301), [100 * np.mean(needed <= n) for n in pairs], label=f"sequential: {name}")
        print(f"{name}: stopped in {np.mean(np.isfinite(needed)):.4f} of {5 * runs} runs of 300 pairs")
    looks = np.arange(20, 301, 20)
    peeked = np.maximum.accumulate(looked_at(*TRUE[2][1:], runs, looks, 3), axis=1).mean(axis=0)
    left.plot(looks, 100 * peeked, "x--", label="fixed samples, looked at every 20 pairs")
    print(f"fixed samples, whoever looks every 20 pairs: {peeked[-1]:.3f} of {runs} runs")
    left.axhline(5, color="grey", lw=0.8)
    left.set(xlabel="pairs of trainings", ylabel="runs that said “violated” (%)", title="The promise is kept")
    for (name, promise, draw), color in zip((BROKEN[0], BROKEN[1], BROKEN[5]), ("C0", "C1", "C2"), strict=True):
        needed = first_violations(promise, draw, runs, 400, 4)
        right.step(pairs := np.arange(401), [100 * np.mean(needed <= n) for n in pairs], color=color, label=name)
        sizes = np.array([10, 20, 40, 60, 90, 140, 200, 300, 400])
        fixed_size = looked_at(promise, draw, max(20, runs // 3), sizes, 5).mean(axis=0)
        right.plot(sizes, 100 * fixed_size, "o", mfc="none", color=color, ms=4)
    right.set(xlabel="pairs of trainings", title="The promise is broken (circles: a fixed sample)")
    for ax in (left, right):
        ax.set_ylim(bottom=0)
        ax.legend(fontsize=7)
    figure.savefig(Path(__file__).parents[2] / "docs" / "images" / "sequential.svg", metadata={"Date": None})


if __name__ == "__main__":
    start = time.process_time()
    {"errors": errors, "power": power, "picture": picture}[sys.argv[1]](int(sys.argv[2]))
    print(f"{time.process_time() - start:.0f} s of CPU", file=sys.stderr)
