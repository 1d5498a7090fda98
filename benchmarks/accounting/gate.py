"""The gate that every change of the accountant passes: width and CPU time of six fixed mechanisms, before and after.

``OMP_NUM_THREADS=1 python benchmarks/accounting/gate.py --record gate.json``, then, with the change,
``python benchmarks/accounting/gate.py --against gate.json``: prints a table, and exits with 1 if a bracket is wider
than before (and than 1e-9 of its value) or does not meet the old one. Times are CPU seconds of a fresh curve, the least
of ``--rounds``; they are shown and never judged, because machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import deniable as dn
from deniable.curves import Side, Tradeoff

MECHANISMS: dict[str, dn.Mechanism] = {
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
_SLACK = 1e-9  # relative: below, a width differs by the order of a sum
_SHARP = 1e-9  # of the value: narrower brackets are as good as each other


def measured(mechanism: dn.Mechanism, rounds: int) -> dict[str, list[float]]:
    """Return low, high and CPU seconds of every question."""
    table = {}
    for question, ask in QUESTIONS.items():
        seconds = []
        for _ in range(rounds):
            curve = dn.tradeoff(mechanism)
            start = time.process_time()
            high = ask(curve, "upper")
            seconds.append(time.process_time() - start)
        table[question] = [ask(curve, "lower"), high, min(seconds)]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    before = json.loads(asked.against.read_text()) if asked.against else {}
    after: dict[str, dict[str, list[float]]] = {}
    wrong = 0
    print(
        f"{'mechanism':<44}{'question':<22}{'width before':>13}{'after':>10}{'ms before':>11}{'after':>8}", flush=True
    )
    for name, mechanism in MECHANISMS.items():
        after[name] = measured(mechanism, asked.rounds)
        for question, (low, high, seconds) in after[name].items():
            old_low, old_high, old_seconds = before.get(name, after[name])[question]
            width, old = high - low, old_high - old_low
            wider = width > max(old * (1 + _SLACK), _SHARP * abs(high))
            bad = wider or low > old_high or old_low > high
            wrong += bad
            print(
                f"{name:<44}{question:<22}{old:>13.2e}{width:>10.2e}{1e3 * old_seconds:>11.1f}{1e3 * seconds:>8.1f}"
                + ("  WIDER, or apart" if bad else ""),
                flush=True,
            )
        if asked.record:
            asked.record.write_text(json.dumps(after, ensure_ascii=False, indent=1) + "\n")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
