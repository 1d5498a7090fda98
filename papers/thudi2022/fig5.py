"""Thudi et al., Figure 5: the bound of Sablayrolles et al. on positive accuracy against Theorem 1."""

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

EPSILONS = (0.1, 1.0, 2.0)


def make(reduced):
    prior = np.linspace(0.001, 0.999, 101 if reduced else 199)
    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    excess, gain = [], []
    for colour, epsilon in enumerate(EPSILONS):
        lower, upper = dn.bounds.positive_accuracy(epsilon, prior=prior)
        older = dn.bounds.sablayrolles(epsilon, prior=prior)
        ax.plot(prior, older, "--", color=f"C{colour}", label=f"Sablayrolles et al., ε = {epsilon:g}")
        ax.plot(prior, upper, color=f"C{colour}", label=f"Theorem 1, ε = {epsilon:g}")
        ax.fill_between(prior, lower, upper, color=f"C{colour}", alpha=0.08)
        excess.append(np.max(upper - older))
        gain.append(np.max(older - upper))
    ax.plot([], [], color="grey", lw=6, alpha=0.2, label="ours: lower bound too, attained at both ends")
    ax.set(xlabel="P(in)", ylabel="positive accuracy bound", ylim=(0, 1.02), title="Against Sablayrolles et al.")
    ax.legend(fontsize=8)
    return figure, {
        "theorem_1_minus_sablayrolles_at_most": float(max(excess)),
        "largest_gain_at_epsilon_2": float(gain[-1]),
        "sablayrolles_at_epsilon_2_prior_0.01": float(dn.bounds.sablayrolles(2.0, prior=0.01)),
    }
