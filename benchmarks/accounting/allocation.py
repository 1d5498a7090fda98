"""Random allocation: deniable, PLD_accounting 2.0 and Monte Carlo side by side.

    python benchmarks/accounting/allocation.py [--peer PYTHON]
    python benchmarks/accounting/allocation.py --widths

PYTHON is an interpreter in whose environment PLD-accounting 2.0 is installed (``pip install PLD_accounting==2.0``).
CPU seconds are of one process and one thread; the peer gets its default accuracy of ε, and its range of ε at δ = 1e-5
is [lower, upper] in the worse direction. Monte Carlo plays the best test out, with four standard errors.
"""

import argparse
import json
import math
import subprocess
import time

import numpy as np

import deniable as dn

RUNS = [(1.0, 100, 1), (1.0, 100, 5), (0.8, 50, 1), (0.5, 100, 10), (1.0, 1000, 20), (5.0, 300, 50), (2.0, 10_000, 100)]
GRID = [(s, t, e) for s in (0.5, 1.0, 2.0) for t, e in ((100, 1), (1000, 100), (10_000, 1000), (100_000, 1000))]
DELTA = 1e-5
_PEER = """
import json, sys, time
from PLD_accounting.random_allocation_api import gaussian_allocation_epsilon_range
sigma, steps, epochs = json.loads(sys.argv[1])
start = time.process_time()
high, low = gaussian_allocation_epsilon_range(delta=1e-5, sigma=sigma, num_steps=steps, num_epochs=epochs)
print(json.dumps([low, high, time.process_time() - start]))
"""


def monte_carlo(sigma: float, batches: int, epochs: int, n: int) -> tuple[float, float]:
    """Advantage of the best test among ``n`` plays in either world, and four standard errors."""
    rng, accused = np.random.default_rng(0), []
    for present in (False, True):
        loss = np.zeros(n)
        for _ in range(epochs):
            x = sigma * rng.standard_normal((n, batches))
            if present:
                x[np.arange(n), rng.integers(batches, size=n)] += 1
            loss += np.log(np.mean(np.exp((2 * x - 1) / (2 * sigma**2)), axis=1))
        accused.append(np.mean(loss > 0))
    return float(accused[1] - accused[0]), 4 / math.sqrt(2 * n)


def peer(python: str, run: tuple[float, int, int]) -> str:
    """The peer's range of ε, and its CPU seconds."""
    try:
        found = subprocess.run(
            [python, "-c", _PEER, json.dumps(run)], capture_output=True, text=True, timeout=120, check=True
        )
    except (subprocess.SubprocessError, OSError) as problem:
        return type(problem).__name__
    low, high, seconds = json.loads(found.stdout.splitlines()[-1])
    return f"[{low:.5f}, {high:.5f}] {seconds:.1f} s"


def widths() -> None:
    """Print how wide brackets are; CPU seconds of ε alone, and of the advantage, three TPRs and ε on both sides."""
    rates = "TPR at 1e-3, relative width | 1e-6 | 1e-9 | removed: 1e-9"
    print(f"| σ, t, epochs | advantage | width | {rates} | CPU s: ε | all |")
    print("|---|---|---|---|---|---|---|---|---|")
    dn.tradeoff(dn.RandomAllocation(1.0, 2)).epsilon(DELTA)  # what is imported late
    for run in GRID:
        start = time.process_time()
        dn.tradeoff(dn.RandomAllocation(*run)).epsilon(DELTA)
        alone, start = time.process_time() - start, time.process_time()
        t = dn.tradeoff(dn.RandomAllocation(*run))
        advantage = [t.advantage(side=side) for side in ("lower", "upper")]
        found = [np.asarray(t.tpr([1e-3, 1e-6, 1e-9], side)) for side in ("lower", "upper")]
        for side in ("lower", "upper"):
            t.epsilon(DELTA, side=side)
        seconds = time.process_time() - start
        low, high = (float(t.inverse().tpr(1e-9, side)) for side in ("lower", "upper"))
        wide = " | ".join(f"{x:.0e}" for x in [*((found[1] - found[0]) / found[1]), (high - low) / high])
        name = ", ".join(f"{x:,}" for x in run)
        bracket = f"{advantage[1]:.6f} | {advantage[1] - advantage[0]:.0e}"
        print(f"| {name} | {bracket} | {wide} | {alone:.1f} | {seconds:.1f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="interpreter with PLD-accounting 2.0")
    parser.add_argument("--widths", action="store_true", help="widths over a grid of parameters")
    options = parser.parse_args()
    if options.widths:
        widths()
        return
    print("| σ, t, epochs | advantage | Monte Carlo | ε(1e-5) | CPU s | PLD_accounting: ε(1e-5), CPU s |")
    print("|---|---|---|---|---|---|")
    for run in RUNS:
        start = time.process_time()
        t = dn.tradeoff(dn.RandomAllocation(*run))
        advantage = [t.advantage(side=side) for side in ("lower", "upper")]
        epsilon = [t.epsilon(DELTA, side=side) for side in ("lower", "upper")]
        seconds = time.process_time() - start
        n = max(2_000, min(50_000, 20_000_000 // (run[1] * run[2])))
        played, slack = monte_carlo(*run, n)
        theirs = peer(options.peer, run) if options.peer else ""
        print(
            f"| {', '.join(map(str, run))} | [{advantage[0]:.7f}, {advantage[1]:.7f}] | {played:.4f} ± {slack:.4f} | "
            f"[{epsilon[0]:.6f}, {epsilon[1]:.6f}] | {seconds:.2f} | {theirs} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
