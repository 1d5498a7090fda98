"""LeBlond et al., §4.1, last sentence: do the findings of Figure 6 hold for Gaussian noise, too? One half of them.

Two numeric columns of Adult, Λ = 1. With noise of standard deviation s the loss of a record at distance Δ is normal,
mean ρ²/2, variance ρ², ρ = Δ/s: |l|·s has a lower plateau, Δ·√(2/π), and no upper one; it grows like Δ²/(2s).
"""

import _adult
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import foldnorm

import deniable as dn


def mean_size(rho):
    """E|l| of N(ρ²/2, ρ²)."""
    return foldnorm.mean(rho / 2, scale=rho)


def make(reduced):
    X, y = _adult.adult(rows=3000 if reduced else None)
    laplace = dn.OutputPerturbation(epsilon=1.0)
    profile = dn.privacy_profile(X, y, regularization=1.0, tolerance=1e-2, mechanism=laplace)
    distance = np.sort(profile.distance)[::-1]
    ranks = np.array([0, len(y) // 100, len(y) // 10, len(y) // 2, 9 * len(y) // 10])
    rate = np.geomspace(1e-3, 1e4, 29) / distance[0]  # 1/s, in place of β
    exact = np.array([mean_size(distance[ranks] * r) for r in rate])
    # as the paper would: models drawn around the optimum, losses ranked for each model, then averaged
    unit = np.random.default_rng(0).standard_normal((60, 2))
    steps = profile.leave_one_out() - profile.optimum
    drawn = []
    for r in rate[::4]:
        losses = np.abs(r**2 * (np.sum(steps**2, axis=1) / 2 - (unit / r) @ steps.T))
        drawn.append((-np.partition(-losses, ranks, axis=1)[:, ranks]).mean(axis=0))
    drawn = np.array(drawn)
    rho = np.geomspace(1e-2, 30, 60)
    law = profile.mechanism.law(2)
    advantage = {
        "Gaussian, ρ = |A(x) − A(y)|/s": np.array([dn.tradeoff(dn.GaussianDP(r)).advantage() for r in rho]),
        "norm-Laplace, ρ = β|A(x) − A(y)|": np.array([law.advantage(np.array([r]), "upper")[0] for r in rho]),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    for j, rank in enumerate(ranks):
        line = left.loglog(rate, exact[:, j] / rate, label=f"rank {rank}")[0]
        left.loglog(rate[::4], drawn[:, j] / rate[::4], "x", color=line.get_color())
    left.set(xlabel="1/s", ylabel="mean |l|·s", title="Gaussian noise: a lower plateau, no upper one")
    for name, values in advantage.items():
        right.loglog(rho, values, label=name)
    right.set(xlabel="ρ", title="exact advantage of a record")
    for ax in (left, right):
        ax.minorticks_off()
        ax.legend(fontsize=7)
    start = (distance[ranks] * np.sqrt(2 / np.pi))[None, :]
    share = exact / rate[:, None] / start
    onset = np.array([np.exp(np.interp(np.log(1.05), np.log(column), np.log(rate))) for column in share.T])
    return figure, {
        "lower_plateau_rank_0_over_a_decade": float(exact[4, 0] / rate[4] / (exact[0, 0] / rate[0])),
        "upper_end_rank_0_over_a_decade": float(exact[-1, 0] / rate[-1] / (exact[-5, 0] / rate[-5])),
        "earliest_onset_times_largest_distance": float(onset.min() * distance[0]),
        "drawn_over_exact_rank_0_below_the_onset": float(drawn[1, 0] / exact[4, 0]),
        "advantage_at_the_onset": float(dn.tradeoff(dn.GaussianDP(onset.min() * distance[0])).advantage()),
        "slope_of_the_loss_below_the_onset": float(np.log(exact[4, 0] / exact[0, 0]) / np.log(rate[4] / rate[0])),
    }
