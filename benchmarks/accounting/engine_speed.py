"""What the engine costs: time and bracket width on the six reference runs, memory, and a long schedule.

    OMP_NUM_THREADS=1 python benchmarks/accounting/engine_speed.py

Times are medians of CPU time of one thread after a warm-up call; every repetition builds the trade-off anew.
"""

import resource
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import deniable as dn

RUNS = [
    (1.0, 0.01, 5000),
    (0.5, 1e-3, 10_000),
    (0.8, 0.02, 2500),
    (2.0, 0.05, 1000),
    (0.6, 1e-4, 10**6),
    (5.0, 1.0, 500),
]


def cpu_ms(call: Callable[[], object], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e3 * median(times)


def main() -> None:
    fpr = np.geomspace(1e-9, 0.5, 1000)
    print(f"{'σ, q, T':>22} {'advantage':>14} {'width':>8} {'ms':>7} {'ROC rel. width':>15} {'ms':>7}")
    for run in RUNS:
        mechanism = dn.SubsampledGaussian(*run)
        trade = dn.tradeoff(mechanism)
        width = trade.advantage() - trade.advantage(side="lower")
        relative = np.max(trade.tpr(fpr) / trade.tpr(fpr, side="lower") - 1)
        one = cpu_ms(lambda m=mechanism: dn.tradeoff(m).advantage(), 30)
        curve = cpu_ms(lambda m=mechanism: dn.tradeoff(m).tpr(fpr), 5)
        print(f"{run!s:>22} {trade.advantage():14.10f} {width:8.1e} {one:7.2f} {relative:15.1e} {curve:7.1f}")
    print("\ncost against the number of steps (σ=1, q=0.3/√T):")
    for steps in (100, 10_000, 1_000_000):
        mechanism = dn.SubsampledGaussian(1.0, 0.3 / steps**0.5, steps)
        print(f"  T = {steps:>9,}: {cpu_ms(lambda m=mechanism: dn.tradeoff(m).advantage(), 10):6.2f} ms")
    schedule = dn.Composition([dn.SubsampledGaussian(1 + 1e-3 * k, 0.01 + 1e-5 * k, 3) for k in range(1000)])
    print(f"1,000 different phases: {cpu_ms(lambda: dn.tradeoff(schedule).advantage(), 1):.0f} ms")
    print(f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
