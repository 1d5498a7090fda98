"""Thudi et al., Figure 7: deletion capacity against expected training size, printed and corrected (erratum E1)."""

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

EPSILON, POOL, CONFIDENCE = 1.0, 10_000, 0.8


def printed(size):
    """ln B / ln L with the e^−ε that §6 prints: L is then the *upper* bound of Corollary 1, not the lower."""
    return np.log(CONFIDENCE) / np.log(dn.bounds.negative_accuracy(EPSILON, prior=size / POOL)[1])


def make(reduced):
    size = np.linspace(0.5, 200, 400)
    capacity = dn.unlearning.deletion_capacity(EPSILON, size / POOL, CONFIDENCE)
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    for ax, scale, title in zip(axes, ("linear", "log"), ("The paper's axis", "The same, logarithmic"), strict=True):
        ax.plot(size, printed(size), "--", label="as printed, e$^{-ε}$ (erratum E1)")
        ax.step(size, np.maximum(capacity, 0.7), where="post", label="corrected, e$^{+ε}$ (ours)")
        ax.plot(size, size, ":", label="linear trend (Sekhari et al.)")
        ax.set(xlabel="expected training set size", ylabel="deletion capacity", title=title, yscale=scale)
    axes[0].set_ylim(0, 13_000)
    axes[1].legend()
    figure.suptitle(f"ε = {EPSILON:g}, pool of {POOL:,}, B = {CONFIDENCE:g}", fontsize=10)

    promised = int(printed(100))
    kept = dn.unlearning.guarantee(EPSILON, np.full(promised, 100 / POOL))
    return figure, {
        "printed_at_0.5": float(printed(0.5)),
        "printed_capacity_at_0.5": float(np.floor(printed(0.5))),
        "corrected_at_0.5": float(capacity[0]),
        "printed_at_100": float(promised),
        "corrected_at_100": float(dn.unlearning.deletion_capacity(EPSILON, 100 / POOL, CONFIDENCE)),
        "overstated_by": float(
            printed(100) / (np.log(CONFIDENCE) / np.log(dn.unlearning.guarantee(EPSILON, [100 / POOL])))
        ),
        "least_probability_after_the_printed_capacity": float(kept),
        "printed_crosses_the_linear_trend_at": float(size[np.argmax(printed(size) < size)]),
        "corrected_crosses_the_linear_trend_at": float(size[np.argmax(capacity < size)]),
    }
