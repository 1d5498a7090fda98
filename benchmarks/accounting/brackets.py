"""How narrow the brackets are: on runs chosen to be hard, and on random runs over the whole range.

``OMP_NUM_THREADS=1 python benchmarks/accounting/brackets.py [random runs of either kind]``
"""

import sys
import time

import numpy as np

import deniable as dn

HARD = [
    (0.3, 1e-6, 20), (0.3, 1e-3, 20), (1.0, 1e-6, 1_000_000), (1.3, 3.5e-6, 25_000), (3.0, 1e-3, 3),
    (0.5, 0.01, 2), (0.3, 0.9, 5), (0.3, 0.1, 3), (0.3, 0.01, 10),
]  # fmt: skip
FPR = np.array([0.5, 0.1, 1e-2, 1e-3, 1e-5, 1e-6, 1e-7, 1e-9])
SHOWN = [0, 3, 5, 7]


def brackets(run: tuple[float, float, int]) -> tuple[float, list[np.ndarray], float]:
    """Width of the advantage, relative widths of the TPR of added and of removed records, and CPU seconds."""
    start = time.process_time()
    t = dn.tradeoff(dn.SubsampledGaussian(*run))
    width = t.advantage() - t.advantage(side="lower")
    rates = [one.tpr(FPR) / one.tpr(FPR, side="lower") - 1 for one in (t, t.inverse())]
    return width, rates, time.process_time() - start


def main() -> None:
    print(
        "σ, q, T: width of the advantage; relative width of the TPR (added record) at FPR", *FPR[SHOWN], "; removed; s"
    )
    for run in HARD:
        width, (added, removed), seconds = brackets(run)
        print(run, f"{width:.0e};", *(f"{x:.0e}" for x in added[SHOWN]), f"; {removed.max():.0e}; {seconds:.1f}")
    rng = np.random.default_rng(0)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for least, most, limit in ((2, 19, 1e-7), (20, 1e6, 1e-6)):
        found = []
        for _ in range(count):
            steps = round(10 ** rng.uniform(np.log10(least), np.log10(most)))
            run = 10 ** rng.uniform(np.log10(0.3), 2), 10 ** rng.uniform(-6, -0.01), steps
            width, rates, seconds = brackets(run)
            found.append((np.max(rates), width, seconds))
            if found[-1][0] > limit:
                print("  above the limit:", *(f"{x:.3g}" for x in run), f"{found[-1][0]:.1e}")
        gaps, widths, seconds = np.transpose(found)
        print(
            f"{count} runs with σ 0.3 to 100, q 1e-6 to 0.98, T {least:g} to {most:g}: relative width of the TPR above "
            f"{limit:g} in {np.sum(gaps > limit)}, largest {gaps.max():.1e}; advantage {widths.max():.1e}; "
            f"CPU seconds median {np.median(seconds):.2f}, largest {seconds.max():.1f}"
        )


if __name__ == "__main__":
    main()
