"""Thudi et al., Table 1: the bounds of prior work in numbers, at even odds and for a rare record."""

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

EPSILONS = np.array([0.1, 0.5, 1.0, 2.0, 5.0])


def make(reduced):
    rows = {
        "Yeom et al.: e^ε/2": dn.bounds.yeom(EPSILONS),
        "Erlingsson et al.: 1 − e^−ε/2": dn.bounds.erlingsson(EPSILONS),
        "Sablayrolles et al.: π + ε/4, π = ½": dn.bounds.sablayrolles(EPSILONS, prior=0.5),
        "Theorem 1, π = ½": dn.bounds.positive_accuracy(EPSILONS, prior=0.5)[1],
        "Sablayrolles et al., π = 1 %": dn.bounds.sablayrolles(EPSILONS, prior=0.01),
        "Theorem 1, π = 1 %": dn.bounds.positive_accuracy(EPSILONS, prior=0.01)[1],
        "ours: accuracy, any π, at π = 1 %": dn.bounds.accuracy(EPSILONS, delta=0.0, prior=0.01),
    }
    figure, ax = plt.subplots(figsize=(7.2, 2.4), layout="constrained")
    ax.axis("off")
    cells = [[f"{value:.4f}" for value in row] for row in rows.values()]
    ax.table(cells, rowLabels=list(rows), colLabels=[f"ε = {e:g}" for e in EPSILONS], loc="center")

    older = np.minimum.reduce([rows[name] for name in list(rows)[:3]])
    return figure, {
        "yeom_at_0.5": float(rows["Yeom et al.: e^ε/2"][1]),
        "erlingsson_at_1": float(rows["Erlingsson et al.: 1 − e^−ε/2"][2]),
        "sablayrolles_at_1": float(rows["Sablayrolles et al.: π + ε/4, π = ½"][2]),
        "theorem_1_at_1": float(rows["Theorem 1, π = ½"][2]),
        "theorem_1_minus_the_best_older_at_most": float(np.max(rows["Theorem 1, π = ½"] - older)),
    }
