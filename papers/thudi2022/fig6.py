"""Thudi et al., Figure 6: the positive advantage 2·(precision − prior) against the prior is not largest at ½."""

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

EPSILONS = (0.1, 1, 3, 5)


def make(reduced):
    prior = np.linspace(0.001, 0.999, 250 if reduced else 1997)
    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    numbers = {}
    for colour, epsilon in enumerate(EPSILONS):
        advantage = dn.bounds.positive_advantage(epsilon, prior=prior)
        ax.plot(prior, advantage, color=f"C{colour}", label=f"positive advantage, ε = {epsilon:g}")
        # Beyond the paper: what the whole attack gains over guessing from the prior, accusations and acquittals.
        ax.plot(prior, dn.bounds.advantage(epsilon, delta=0.0, prior=prior), "--", lw=1, color=f"C{colour}")
        numbers[f"prior_of_the_peak_at_{epsilon}"] = float(prior[np.argmax(advantage)])
        numbers[f"peak_at_{epsilon}"] = float(np.max(advantage))
    ax.plot([], [], "--", lw=1, color="grey", label="ours: 2·(accuracy − best guess), all ε")
    ax.set(xlabel="P(in)", ylabel="advantage bound", title="Membership advantage")
    ax.legend(fontsize=8)
    numbers["half_over_peak_at_5"] = float(dn.bounds.positive_advantage(5.0, prior=0.5)) / numbers["peak_at_5"]
    return figure, numbers
