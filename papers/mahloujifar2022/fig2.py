"""Mahloujifar et al., Figure 2: accuracy of DP-SGD models against the bound on membership advantage.

(a) CIFAR-10, (b) MNIST. The accuracies are measured: one file per run in ``measured/``, made by ``train.py`` with torch
and Opacus, with machine, date and command; where there are several runs of a noise level, their mean is drawn and a bar
from the least to the largest. The bounds are computed here from the history that Opacus' accountant recorded.
"""

import _measured
import _older
import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

DELTA = 1e-5
BOUNDS = {"from (ε, 1e-5)": lambda run: _older.humphries(run, DELTA), "Pinsker": _older.pinsker,
          "optimal (ours)": lambda run: dn.tradeoff(run).advantage()}  # fmt: skip


def make(reduced):  # the runs are measured, so there is nothing to reduce
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
    numbers = {}
    for ax, name, rate, letter in zip(axes, ("cifar10", "mnist"), (0.02, 0.001), "ab", strict=True):
        points = [point for point in _measured.runs(name) if point["history"][0][1] == rate]
        levels = sorted({point["noise_multiplier"] for point in points})
        seeds = [[point for point in points if point["noise_multiplier"] == sigma] for sigma in levels]
        runs = [dn.from_opacus(same[0]["history"]) for same in seeds]
        accuracy = [100 * np.array([point["accuracy"][-1] for point in same]) for same in seeds]
        mean = np.array([values.mean() for values in accuracy])
        bars = [[m - a.min(), a.max() - m] for m, a in zip(mean, accuracy, strict=True)]
        for (label, bound), marker in zip(BOUNDS.items(), "s^o", strict=True):
            values = [bound(run) for run in runs]
            ax.errorbar(values, mean, yerr=np.transpose(bars), fmt=marker, ls="-", lw=0.6, capsize=3, label=label)
        for sigma, run, same, percent in zip(levels, runs, seeds, mean, strict=True):
            exact = dn.tradeoff(run).advantage()
            text = f"σ = {sigma:g}" + (f", {len(same)} runs" if len(same) > 1 else "")
            ax.annotate(text, (exact, percent), xytext=(4, -12), textcoords="offset points", fontsize=7)
            numbers[f"{name}_advantage_at_{sigma:g}"] = exact
            numbers[f"{name}_accuracy_at_{sigma:g}"] = percent / 100
            if same[0]["epochs"] < same[0]["paper_epochs"]:
                steps = run.steps * same[0]["paper_epochs"] // same[0]["epochs"]
                whole = dn.SubsampledGaussian(sigma, run.sample_rate, steps)
                numbers[f"{name}_advantage_at_{sigma:g}_all_epochs"] = dn.tradeoff(whole).advantage()
        reached, asked = points[0]["epochs"], points[0]["paper_epochs"]
        size = f"{asked} epochs" if reached == asked else f"REDUCED: {reached} of the paper's {asked} epochs"
        ax.set(xlabel="bound on the advantage", ylabel="test accuracy (%)", title=f"({letter}) {name}, {size}")
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_xticks(ticks := [0.01, 0.03, 0.1, 0.3, 1], ticks)
        ax.margins(y=0.15)
        ax.legend(fontsize=8)
    return figure, numbers
