"""Mahloujifar et al., Figure 2: accuracy of DP-SGD models against the bound on membership advantage.

(a) CIFAR-10, (b) MNIST. The accuracies are measured: one file per run in ``measured/``, made by ``train.py`` with torch
and Opacus, with machine, date and command.
The bounds are computed here from the history that Opacus' accountant recorded.
"""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import deniable as dn
from deniable.planning.comparison import humphries, pinsker

sys.path.append(str(Path(__file__).resolve().parents[1]))
import _common

DELTA = 1e-5
BOUNDS = {"from (ε, 1e-5)": lambda run: humphries(run, DELTA), "Pinsker": pinsker,
          "optimal (ours)": lambda run: dn.tradeoff(run).advantage()}  # fmt: skip


def make(reduced):  # the runs are measured, so there is nothing to reduce
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
    numbers = {}
    for ax, name, letter in zip(axes, ("cifar10", "mnist"), "ab", strict=True):
        files = sorted((Path(__file__).parent / "measured").glob(f"{name}_*.json"))
        points = sorted((json.loads(path.read_text()) for path in files), key=lambda point: point["noise_multiplier"])
        runs = [dn.from_opacus(point["history"]) for point in points]
        accuracy = [100 * point["accuracy"][-1] for point in points]
        for (label, bound), marker in zip(BOUNDS.items(), "s^o", strict=True):
            values = [bound(run) for run in runs]
            ax.semilogx(values, accuracy, marker, ls="-", lw=0.6, label=label)
        for point, run, percent in zip(points, runs, accuracy, strict=True):
            sigma, exact = point["noise_multiplier"], dn.tradeoff(run).advantage()
            ax.annotate(f"σ = {sigma:g}", (exact, percent), xytext=(0, -12), textcoords="offset points", fontsize=7)
            numbers[f"{name}_advantage_at_{sigma:g}"] = exact
            numbers[f"{name}_accuracy_at_{sigma:g}"] = percent / 100
            if point["epochs"] < point["paper_epochs"]:
                steps = run.steps * point["paper_epochs"] // point["epochs"]
                whole = dn.SubsampledGaussian(sigma, run.sample_rate, steps)
                numbers[f"{name}_advantage_at_{sigma:g}_all_epochs"] = dn.tradeoff(whole).advantage()
        reached, asked = points[0]["epochs"], points[0]["paper_epochs"]
        size = f"{asked} epochs" if reached == asked else f"{reached} of the paper's {asked} epochs"
        ax.set(xlabel="bound on the advantage", ylabel="test accuracy (%)", title=f"({letter}) {name}, {size}")
        ax.minorticks_off()
        ax.set_xticks(ticks := [0.01, 0.03, 0.1, 0.3, 1], ticks)
        ax.margins(y=0.15)
        ax.legend(fontsize=8)
    return figure, numbers


if __name__ == "__main__":
    _common.main(__file__, make)
