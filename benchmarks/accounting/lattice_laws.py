"""Lattice and mixture laws: CPU seconds of cold and of warm questions, and the widths of their brackets.

    PYTHONPATH=src OMP_NUM_THREADS=1 python benchmarks/accounting/lattice_laws.py [part of a name ...]

Cold: the first question to a new curve (advantage, TPR at FPR 1e-3, 1e-6 and 1e-9, ε at δ = 1e-5, δ at ε = 1), both
sides. Warm: a second, different question to the same curve (TPR at 3e-5, ε at 3e-6, δ at 1.7), both sides, in
milliseconds. Widths are absolute for the advantage and δ, relative for TPRs and ε.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import deniable as dn

Question = Callable[[dn.Tradeoff, str], float]
COLD: dict[str, Question] = {
    "advantage": lambda t, side: t.advantage(side=side),
    "tpr(1e-3)": lambda t, side: t.tpr(1e-3, side=side),
    "tpr(1e-6)": lambda t, side: t.tpr(1e-6, side=side),
    "tpr(1e-9)": lambda t, side: t.tpr(1e-9, side=side),
    "epsilon(1e-5)": lambda t, side: t.epsilon(1e-5, side=side),
    "delta(1)": lambda t, side: t.delta(1.0, side=side),
}
WARM: dict[str, Question] = {
    "tpr": lambda t, side: t.tpr(3e-5, side=side),
    "epsilon": lambda t, side: t.epsilon(3e-6, side=side),
    "delta": lambda t, side: t.delta(1.7, side=side),
}


def cases() -> Iterator[tuple[str, dn.mechanisms.Mechanism]]:
    """Name and mechanism; 1,000-fold compositions first."""
    for steps in (1000, 100, 10, 3, 1):
        yield f"Laplace(10) x {steps}", dn.Laplace(10.0, steps=steps)
        yield f"DiscreteLaplace(20) x {steps}", dn.DiscreteLaplace(20.0, 1, steps)
        yield f"DiscreteGaussian(30) x {steps}", dn.DiscreteGaussian(30.0, 1, steps)
        yield f"RandomizedResponse(.1, 4) x {steps}", dn.RandomizedResponse(0.1, 4, steps)
        yield f"FinitePair x {steps}", dn.FinitePair([0.5, 0.3, 0.2], [0.48, 0.31, 0.21], steps)
        yield f"BoundedRange(.1) x {steps}", dn.BoundedRange(0.1, steps)
        yield f"Laplace(1), rate .01 x {steps}", dn.Laplace(1.0, steps=steps, sample_rate=0.01)
        yield f"DiscreteLaplace(3), rate .01 x {steps}", dn.DiscreteLaplace(3.0, 1, steps, 0.01)
        yield f"DiscreteGaussian(3), rate .01 x {steps}", dn.DiscreteGaussian(3.0, 1, steps, 0.01)
        yield f"DiscreteGaussian(.5), rate .01 x {steps}", dn.DiscreteGaussian(0.5, 1, steps, 0.01)
        yield f"person of 4, noise 1, rate .01 x {steps}", dn.SubsampledGaussian(1.0, 0.01, steps, 4)
        yield (
            f"DiscreteLaplace(20) + DiscreteGaussian(30) x {steps}",
            dn.DiscreteLaplace(20.0, 1, steps) + dn.DiscreteGaussian(30.0, 1, steps),
        )
    yield "DiscreteGaussian(.05), rate .01 x 30", dn.DiscreteGaussian(0.05, 1, 30, 0.01)


def both_sides(t: dn.Tradeoff, ask: Question) -> tuple[float, float, float]:
    """CPU seconds, lower and upper bound."""
    start = time.process_time()
    low, high = float(ask(t, "lower")), float(ask(t, "upper"))
    return time.process_time() - start, low, high


def main(wanted: list[str]) -> None:
    """Print one row a law: seconds and width of each question, and milliseconds of the warm ones."""
    head = [*(f"{name}: CPU s, width" for name in COLD), *(f"warm {name}, ms" for name in WARM)]
    print("| law |", " | ".join(head), "|")
    print("|---" * (len(head) + 1) + "|")
    dn.tradeoff(dn.Laplace(3.0, steps=5)).tpr(0.1)  # imports
    for name, mechanism in cases():
        if wanted and not any(part in name for part in wanted):
            continue
        row = []
        for question, ask in COLD.items():
            t = dn.tradeoff(mechanism)
            seconds, low, high = both_sides(t, ask)
            relative = question.startswith(("tpr", "epsilon")) and high > 0
            row.append(f"{seconds:.2f}, {(high - low) / (high if relative else 1.0):.0e}")
        t = dn.tradeoff(mechanism)
        for ask in COLD.values():
            both_sides(t, ask)
        row += [f"{1e3 * both_sides(t, ask)[0]:.0f}" for ask in WARM.values()]
        print(f"| {name} |", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
