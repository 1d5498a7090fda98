"""Mahloujifar et al., conclusion: which hyperparameters are best for a bound on membership inference? MNIST, measured.

The paper expects that the best settings for membership privacy differ from those for differential privacy, and leaves
the search to others. Each run of ``train.py`` gives one point an epoch: its accuracy so far, and the bound of the steps
so far. The learning rate is in proportion to the sampling rate; network, clipping and data are those of Figure 2 (b).
A search on the data is itself a release: these curves tell what a setting costs, choosing by them is not paid for.
"""

import _measured
import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

DELTA = 1e-5


def make(reduced):
    figure, axes = plt.subplots(1, 2, figsize=(9.4, 4.2), layout="constrained", sharey=True)
    numbers, points = {}, []
    settings = {}
    for run in _measured.runs("mnist"):
        sigma, rate, steps = run["history"][0]
        settings.setdefault((rate, sigma), []).append((run["accuracy"], steps // run["epochs"]))
    shades = dict(zip(sorted({rate for rate, _ in settings}), ("C0", "C1", "C3"), strict=False))
    for ((rate, sigma), same), marker in zip(sorted(settings.items()), "osv^DPX*", strict=False):
        accuracy, steps = np.mean([curve for curve, _ in same], axis=0), same[0][1]
        epochs = np.arange(1, len(accuracy) + 1)[:: 5 if reduced else 1]
        curves = [dn.tradeoff(dn.SubsampledGaussian(sigma, rate, int(steps * epoch))) for epoch in epochs]
        advantage = np.array([curve.advantage() for curve in curves])
        epsilon = np.array([curve.epsilon(DELTA) for curve in curves])
        label = f"q = {rate:.2g}, σ = {sigma:g}" + (f", {len(same)} runs" if len(same) > 1 else "")
        for ax, spent in zip(axes, (advantage, epsilon), strict=True):
            ax.semilogx(spent, 100 * accuracy[epochs - 1], marker + "-", ms=3, lw=0.8, color=shades[rate], label=label)
        name = f"rate_{rate:.2g}_sigma_{sigma:g}"
        numbers[f"{name}_advantage_after_1_epoch"] = advantage[0]
        numbers[f"{name}_epsilon_over_advantage_after_1_epoch"] = epsilon[0] / advantage[0]
        points += [(a, e, accuracy[n - 1], rate) for a, e, n in zip(advantage, epsilon, epochs, strict=True)]
    axes[0].set(xlabel="bound on the advantage", ylabel="test accuracy (%)", title="by membership advantage")
    axes[1].set(xlabel=f"ε at δ = {DELTA:g}", title="by differential privacy")
    axes[0].legend(fontsize=7)
    for limit in (0.02, 0.03):
        for rate in shades:
            reached = [accuracy for bound, _, accuracy, q in points if q == rate and bound <= limit]
            numbers[f"best_accuracy_at_rate_{rate:.2g}_and_advantage_{limit:g}"] = max(reached)
    return figure, numbers
