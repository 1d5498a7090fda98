"""The gate that every change of the accountant passes: width and CPU time of fixed mechanisms, as ratios.

``OMP_NUM_THREADS=1 python benchmarks/accounting/gate.py`` compares with the table beside it (``gate.json``): it prints
widths and times over the recorded ones, and exits with 1 if a bracket does not meet the old one, or is wider: the six
headline runs by more than 1e-9 of their value, all others by more than 1e-4; or if the headline runs take half as long
again, in the median. ``--record`` writes a new table. Times are CPU seconds of a fresh curve, the least of
``--rounds``, in units of a fixed piece of NumPy work measured beside them; single ones are shown and not judged,
because machines are noisy. Sharper: ``--beside PATH``, the ``src`` of another checkout, whose times are taken in turn
with ours, in processes of their own; it prints the ratios of the least CPU seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import deniable as dn
from deniable.curves import Side, Tradeoff

HEADLINES: dict[str, dn.Mechanism] = {
    f"headline: σ = {sigma:g}, q = {rate:g}, {steps:,} steps": dn.SubsampledGaussian(sigma, rate, steps)
    for sigma, rate, steps in (
        (1.0, 0.01, 5000),
        (0.5, 0.001, 10_000),
        (0.8, 0.02, 2500),
        (2.0, 0.05, 1000),
        (0.6, 1e-4, 1_000_000),
        (5.0, 1.0, 500),
    )
}
MECHANISMS: dict[str, dn.Mechanism] = HEADLINES | {
    "DP-SGD, σ = 1, q = 0.01, 1,000 steps": dn.SubsampledGaussian(1.0, 0.01, 1000),
    "rare: σ = 1, q = 1e-6, 10⁶ steps": dn.SubsampledGaussian(1.0, 1e-6, 1_000_000),
    "few: σ = 0.5, q = 0.01, 2 steps": dn.SubsampledGaussian(0.5, 0.01, 2),
    "two phases and a pure part": dn.SubsampledGaussian(1.1, 0.004, 2500)
    + dn.SubsampledGaussian(0.9, 0.004, 1000)
    + dn.PureDP(0.1),
    "little noise: σ = 0.05, q = 0.01, 50 steps": dn.SubsampledGaussian(0.05, 0.01, 50),
    "Laplace, b = 2, 10 steps": dn.Laplace(2.0, steps=10),
}
QUESTIONS: dict[str, Callable[[Tradeoff, Side], float]] = {
    "advantage": lambda t, side: t.advantage(side=side),
    "TPR at 1e-3": lambda t, side: t.tpr(1e-3, side),
    "TPR at 1e-6": lambda t, side: t.tpr(1e-6, side),
    "TPR at 1e-3, removed": lambda t, side: t.inverse().tpr(1e-3, side),
    "δ at ε = 1": lambda t, side: t.delta(1.0, side=side),
    "ε at δ = 1e-5": lambda t, side: t.epsilon(1e-5, side=side),
}
_SLACK = 1e-6  # relative: below, a width differs by the order of a sum, or by where a search ended
_SHARP, _FINE = 1e-9, 1e-4  # of the value, of headline runs and of others: narrower brackets are as good as each other
_SLOWER = 1.5  # median time of headline runs over the recorded one


TABLE = Path(__file__).with_name("gate.json")


def yardstick() -> float:
    """Return the CPU seconds of the fixed piece of work: transforms and exponentials, the least of five."""
    x = np.linspace(0.0, 1.0, 1 << 17)
    seconds = []
    for _ in range(5):
        start = time.process_time()
        np.fft.irfft(np.exp(1j * np.fft.rfft(np.exp(-x)).imag)).sum()
        seconds.append(time.process_time() - start)
    return min(seconds)


def measured(mechanism: dn.Mechanism, rounds: int) -> dict[str, list[float]]:
    """Return low, high and the time of every question, in yardsticks."""
    table = {}
    for question, ask in QUESTIONS.items():
        seconds = []
        unit = yardstick()
        for _ in range(rounds):
            curve = dn.tradeoff(mechanism)
            start = time.process_time()
            high = ask(curve, "upper")
            seconds.append(time.process_time() - start)
        table[question] = [ask(curve, "lower"), high, min(seconds) / min(unit, yardstick())]
    return table


def seconds(rounds: int) -> dict[str, float]:
    """Return the least CPU seconds of every question to a fresh curve."""
    least: dict[str, float] = {}
    for _ in range(rounds):
        for name, mechanism in MECHANISMS.items():
            for question, ask in QUESTIONS.items():
                curve = dn.tradeoff(mechanism)
                start = time.process_time()
                ask(curve, "upper")
                row, took = f"{name}: {question}", time.process_time() - start
                least[row] = min(took, least.get(row, took))
    return least


def beside(other: Path, rounds: int) -> None:
    """Print the times of this tree over those of another, each the least of four processes that took turns."""
    trees = {"other": other, "ours": Path(dn.__file__).parents[1]}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for turn in range(4):
        for name in sorted(trees, reverse=turn % 2 == 1):
            run = [sys.executable, __file__, "--seconds", "--rounds", str(rounds)]
            place = {**os.environ, "PYTHONPATH": str(trees[name])}
            found[name].append(json.loads(subprocess.run(run, env=place, capture_output=True, check=True).stdout))
    least = {name: {row: min(one[row] for one in runs) for row in runs[0]} for name, runs in found.items()}
    ratios = {row: took / least["other"][row] for row, took in least["ours"].items()}
    for row in sorted(ratios, key=ratios.__getitem__):
        print(f"{row:<66}{1e3 * least['ours'][row]:>8.2f} ms{ratios[row]:>7.2f}")
    print(f"median {statistics.median(ratios.values()):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the table instead of comparing with it")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path, metavar="PATH", help="time this src in turn with ours, and nothing else")
    parser.add_argument("--seconds", action="store_true", help="print the least CPU seconds as JSON, and nothing else")
    asked = parser.parse_args()
    if asked.seconds:
        print(json.dumps(seconds(asked.rounds)))
        return
    if asked.beside is not None:
        beside(asked.beside, asked.rounds)
        return
    before = {} if asked.record else json.loads(asked.table.read_text())
    after: dict[str, dict[str, list[float]]] = {}
    wrong, widths, times, headline = 0, [], [], []
    print(f"{'mechanism':<44}{'question':<22}{'width':>10}{'over old':>10}{'time':>10}{'over old':>10}", flush=True)
    for name, mechanism in MECHANISMS.items():
        after[name] = measured(mechanism, asked.rounds)
        for question, (low, high, took) in after[name].items():
            old_low, old_high, old_took = before.get(name, after[name])[question]
            width, old = high - low, old_high - old_low
            wider = width > max(old * (1 + _SLACK), (_SHARP if name in HEADLINES else _FINE) * abs(high))
            bad = wider or low > old_high or old_low > high
            wrong += bad
            widths.append(width / old if old > 0 else float(width > 0))
            times.append(took / old_took)
            headline += [times[-1]] if name in HEADLINES else []
            print(
                f"{name:<44}{question:<22}{width:>10.2e}{widths[-1]:>10.3f}{took:>10.1f}{times[-1]:>10.2f}"
                + ("  WIDER, or apart" if bad else ""),
                flush=True,
            )
    if asked.record:
        asked.table.write_text(json.dumps(after, ensure_ascii=False, indent=1) + "\n")
    total = sum(took for answers in after.values() for _, _, took in answers.values())
    print(f"widths over old: largest {max(widths):.3f}; {wrong} of {len(widths)} wider or apart")
    print(f"times over old: median {statistics.median(times):.2f}, largest {max(times):.2f}; {total:.0f} yardsticks")
    slow = statistics.median(headline)
    print(f"headline runs over old: median {slow:.2f}" + ("  SLOWER" if slow > _SLOWER else ""))
    sys.exit(wrong > 0 or slow > _SLOWER)


if __name__ == "__main__":
    main()
