"""How often an audit of one run shows an ε where nothing leaks: here, and by opake-auditing 0.16.1 ((ε, δ)).

Scores that say nothing about 1,000 canaries, each in by a fair coin; 5 % of the runs may show an ε.

    python benchmarks/audit/one_run_errors.py ours [runs]       # with deniable
    python benchmarks/audit/one_run_errors.py opake [runs]      # with opake-auditing, in an environment of its own
"""

import sys
from collections.abc import Iterator

import numpy as np
from scipy.stats import binomtest

CANARIES, DELTA = 1000, 1e-5


def ours(seed: int) -> dict[str, bool]:
    from deniable.audit import audit_one_run

    rng = np.random.default_rng(seed)
    run = audit_one_run(rng.normal(size=CANARIES), rng.random(CANARIES) < 0.5)
    return {"ε": run.epsilon().low > 0, f"ε at δ = {DELTA:g}": run.epsilon(DELTA).low > 0, "μ": run.mu().low > 0}


def opake(seed: int) -> dict[str, bool]:
    from opake import auditing
    from opake.random import key

    coins = auditing.coin_flip(range(CANARIES), num_canaries=CANARIES, key=key(seed))
    values = np.random.default_rng(seed).normal(size=CANARIES)
    run = auditing.one_run(auditing.canary_scores(values, canary_indices=coins.canary_indices), coin_flip=coins)
    least = 1e-3  # what its bisection leaves open
    method = run.eps_delta()  # order statistics; its default, for μ-GDP, takes 7 s a run
    return {name: method.epsilon_at(delta=d) > least for name, d in (("ε", 0.0), (f"ε at δ = {DELTA:g}", DELTA))}


def alarms(who: str, runs: int) -> Iterator[tuple[str, int]]:
    found = [{"ours": ours, "opake": opake}[who](seed) for seed in range(runs)]
    for name in found[0]:
        yield name, sum(one[name] for one in found)


def main() -> None:
    who, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    print("| shown | runs | false alarms | 95 % interval |\n|---|---|---|---|")
    for name, wrong in alarms(who, runs):
        low, high = binomtest(wrong, runs).proportion_ci(0.95)
        print(f"| {who}: {name} | {runs} | {wrong / runs:.1%} | {low:.1%} to {high:.1%} |")


if __name__ == "__main__":
    main()
