"""What the accountant gained over another build: CPU time and width of what people ask, asked for beside measured.

    OMP_NUM_THREADS=1 python benchmarks/accounting/reach.py PATH [--rounds 3]

PATH is the ``src`` of a checkout of the other build. Both take turns, each in processes of its own; a row says the
median of the ratios of the rounds, and our own median time and largest width. Sums are over all runs of a row.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import deniable as dn

S, P = dn.SubsampledGaussian, dn.mechanisms
RUNS = [
    S(1.0, 0.01, 5000), S(0.5, 0.001, 10_000), S(0.8, 0.02, 2500), S(2.0, 0.05, 1000), S(0.6, 1e-4, 1_000_000),
    S(1.0, 0.1, 300),
]  # fmt: skip
ORDINARY = [(1.0, 0.01, 5000), (0.7, 0.002, 3000), (1.5, 0.02, 1000)]
SAMPLED = [(0.01, 5000), (0.001, 10_000), (0.1, 300)]
EPSILON = dn.Limit(epsilon=1.0, delta=1e-5)
Answers = list[tuple[float, float]]


def both(runs: Iterable[dn.Mechanism], **worlds: str) -> Answers:
    """Seven questions to each curve, both sides."""
    return [pair for run in runs for pair in seven(dn.tradeoff(run, **worlds))]


def seven(curve: object) -> Answers:
    ask = [lambda s: curve.advantage(side=s), *(lambda s, e=e: curve.delta(e, side=s) for e in (0.5, 1.0, 4.0))]
    ask += [lambda s, f=f: curve.tpr(f, side=s) for f in (1e-5, 1e-3)] + [lambda s: curve.epsilon(1e-5, side=s)]
    return [(float(f("lower")), float(f("upper"))) for f in ask]


def beside_atoms() -> list[dn.Mechanism]:
    """Sixteen random runs of DP-SGD beside laws with atoms."""
    rng = np.random.default_rng(3)

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    found = []
    for k in range(16):
        run, n = S(between(0.6, 4), between(1e-3, 0.1), int(between(30, 1e4))), int(between(1, 40))
        match k % 5:
            case 0:
                other = P.Laplace(scale=1 / between(0.05, 1.5), steps=n)
            case 1:
                other = P.DiscreteGaussian(between(2, 12), 1, steps=n)
            case 2:
                other = P.RandomizedResponse(between(0.05, 1.2), 4, n)
            case 3:
                other = P.FinitePair((0.5, 0.3, 0.2), (0.3, 0.3, 0.4))
            case _:
                other = P.Laplace(scale=1 / between(0.1, 1.0), sample_rate=0.2, steps=n)
        found.append(run + other)
    return found


def four(curve: object) -> Answers:
    ask = [(curve.delta, e) for e in (0.0, 1.0)] + [(curve.tpr, f) for f in (1e-5, 1e-2)]
    return [(float(f(x, side="lower")), float(f(x))) for f, x in ask]


def asked(question: Callable[[object], float], runs: Iterable[dn.Mechanism]) -> Callable[[], Answers]:
    """One question to fresh curves, from above."""

    def ask() -> Answers:
        for run in runs:
            question(dn.tradeoff(run))
        return []

    return ask


def calibrated(bracket: tuple[float, float], **limit: object) -> Callable[[], Answers]:
    def search() -> Answers:
        for rate, steps in SAMPLED:
            dn.calibrate(lambda s: S(s, rate, steps), bracket, **limit)  # noqa: B023
        return []

    return search


def swept() -> Answers:
    runs = [S(float(s), 0.01, 5000) for s in np.geomspace(0.7, 6, 60)]
    together = getattr(dn.accounting, "tradeoffs", None)
    found = together(runs).advantage() if together else [dn.tradeoff(run).advantage() for run in runs]
    return [(0.0, 0.0)] * len(found)


# row: what is asked of the ratio, and of the width; how often it is repeated; what is timed
ROWS: dict[str, tuple[str, int, Callable[[], Answers]]] = {
    "advantage, 6 runs": ("≥ 4", 5, asked(lambda t: t.advantage(), RUNS)),
    "ε(1e-5), 6 runs": ("≥ 2", 5, asked(lambda t: t.epsilon(1e-5), RUNS)),
    "calibrate to ε on (.5, 50), 3 runs": ("≥ 8, ≤ 180 ms", 3, calibrated((0.5, 50.0), limit=EPSILON)),
    "calibrate to ε on (.3, 100), 3 runs": ("≥ 2, ≤ 180 ms", 3, calibrated((0.3, 100.0), limit=EPSILON)),
    "calibrate to ε on (.3, 10), 3 runs": ("≤ 180 ms", 3, calibrated((0.3, 10.0), limit=EPSILON)),
    "calibrate to advantage on (.5, 50), 3 runs": ("≥ 2", 3, calibrated((0.5, 50.0), advantage=0.1)),
    "persons, 3 runs × 14 answers": (
        "≥ 12, width 1e-8", 1, lambda: both(S(*run, records_per_person=5) for run in ORDINARY),
    ),
    "replaced, 3 runs × 14 answers": (
        "≥ 12, width 1e-8", 1, lambda: both((S(*run) for run in ORDINARY), adjacency="replace"),
    ),
    "truncated batches, ε(1e-5) from above": (
        "≥ 12", 1, asked(lambda t: t.epsilon(1e-5), [dn.TruncatedPoisson(1.0, 0.01, 1000, 700, 60_000)]),
    ),
    "DP-SGD + atoms, 16 runs × 8 answers": (
        "≥ 15, width 1e-8", 1, lambda: [pair for run in beside_atoms() for pair in four(dn.tradeoff(run))],
    ),
    "a sweep of 60 noises, advantage": ("≥ 7", 3, swept),
}  # fmt: skip
FIRST = """import time; import numpy; t = time.process_time(); import deniable as dn
dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 5000)).advantage(); print(time.process_time() - t)"""


def measured() -> dict[str, tuple[float, float]]:
    """Median CPU seconds and largest width of every row, in this process."""
    dn.tradeoff(S(1.1, 0.01, 100)).epsilon(1e-5)
    dn.tradeoff(S(1.1, 0.01, 100) + P.Laplace(3.0)).tpr(1e-3)
    found = {}
    for name, (_, rounds, work) in ROWS.items():
        seconds = []
        for _ in range(rounds):
            start = time.process_time()
            answers = work()
            seconds.append(time.process_time() - start)
        found[name] = statistics.median(seconds), max((high - low for low, high in answers), default=0.0)
    return found


def process(src: Path, *command: str) -> str:
    place = {**os.environ, "PYTHONPATH": str(src), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *command], env=place, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", help="src of the other build")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.other is None:  # a process of one build
        print(json.dumps(measured()))
        return
    trees = {"ours": Path(dn.__file__).parents[1], "other": options.other}
    found: dict[str, list[dict[str, tuple[float, float]]]] = {name: [] for name in trees}
    first: dict[str, list[float]] = {name: [] for name in trees}
    for turn in range(options.rounds):
        for name in sorted(trees, reverse=turn % 2 == 1):
            found[name].append(json.loads(process(trees[name], __file__)))
            first[name] += [float(process(trees[name], "-c", FIRST)) for _ in range(4)]
    wanted = {name: row[0] for name, row in ROWS.items()} | {"first call, numpy loaded": "≥ 2"}
    print("| row | asked | times faster | ours, CPU ms | width, ours | width, other |\n|---|---|---|---|---|---|")
    for name, goal in wanted.items():
        if name in ROWS:
            ours, other = ([one[name] for one in found[tree]] for tree in ("ours", "other"))
            ratios, times = [b[0] / a[0] for a, b in zip(ours, other, strict=True)], [a[0] for a in ours]
            widths = f"{ours[0][1]:.0e} | {other[0][1]:.0e}" if ours[0][1] else "– | –"
        else:
            times, widths = first["ours"], "– | –"
            ratios = [b / a for a, b in zip(times, first["other"], strict=True)]
        ms = 1e3 * statistics.median(times)
        print(f"| {name} | {goal} | {statistics.median(ratios):.1f} | {ms:.1f} | {widths} |")
    found_noise = dn.calibrate(lambda s: S(s, 0.001, 10_000), (0.3, 10.0), limit=EPSILON)
    print(f"calibrate to ε 1 on (.3, 10), q .001, 10,000 steps: {found_noise:.5f} (asked .74065)")


if __name__ == "__main__":
    main()
