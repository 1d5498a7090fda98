"""Thudi et al., Figure 3: the bound on positive accuracy (precision) against the prior, and exact curves below it."""

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

EPSILONS, DELTA, FPR = (0.1, 1, 2, 5), 1e-5, 0.01


def make(reduced):
    prior = np.linspace(0.001, 0.999, 101 if reduced else 999)
    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    slack = []
    for colour, epsilon in enumerate(EPSILONS):
        bound = dn.bounds.positive_accuracy(epsilon, prior=prior)[1]
        ax.plot(prior, bound, color=f"C{colour}", label=f"Theorem 1, ε = {epsilon:g}")
        # Beyond the paper: a Gaussian mechanism that is (ε, δ)-DP, at a stated false positive rate.
        mu = dn.calibrate(dn.GaussianDP, bracket=(1e-3, 20.0), limit=dn.Limit(epsilon=epsilon, delta=DELTA))
        exact = dn.tradeoff(dn.GaussianDP(mu)).precision(FPR, prior)
        ax.plot(prior, exact, "--", color=f"C{colour}", lw=1)
        slack.append(np.max(exact - bound))
    ax.plot([], [], "--", color="grey", lw=1, label=f"ours: Gaussian, (ε, {DELTA:g})-DP,\nexact at FPR {FPR:.0%}")
    ax.set(xlabel="P(in)", ylabel="positive accuracy bound", ylim=(0, 1.02), title="Precision against the prior")
    ax.legend(fontsize=8)

    steps = np.diff(dn.bounds.positive_accuracy(2.0, prior=prior)[1])
    return figure, {
        "at_epsilon_2_prior_0.01": float(dn.bounds.positive_accuracy(2.0, prior=0.01)[1]),
        "smallest_step_in_the_prior": float(steps.min()),
        "exact_minus_bound_at_most": float(max(slack)),
    }
