"""Izzo et al., Figure 1: scale of the Laplace noise for η-MIP on the data set of Proposition 11, n = 36 … 48.

A(D) = 1/Σx (the version that is meant, erratum E7) on powers of two and one record that makes the sum of one training
set tiny: a huge sensitivity Δ, a standard deviation of 1. Theirs: Theorem 9 with M = 2, and DP. Ours: about σ/(2η)
instead of (6.16/η)²σ from the same σ (erratum E4), and next to nothing from resampled outputs.
"""

from fractions import Fraction
from itertools import combinations
from math import comb, sqrt

import matplotlib.pyplot as plt
import numpy as np
from published import enough, published_scale

import deniable as dn

SIZES = (36, 40, 44, 48)


def proposition_11(n):
    """Return the records {2^0, …, 2^(n−2)} and A = √p − Σ_{i ≤ n/2 − 2} 2^i with p = 1/C(n, n/2)."""
    special = 1 / sqrt(comb(n, n // 2)) - (2 ** (n // 2 - 1) - 1)
    return np.append(2.0 ** np.arange(n - 1), special)


def inverse_sum(records):
    return 1 / np.sum(records)


def standard_deviation(n):
    """An upper bound: E A² is 1 from the special training set; every other output is below 2^(2−n/2)."""
    return sqrt(1 + 4.0 ** (2 - n // 2))


def sensitivity(n):
    """A lower bound of the largest change by a swap: 1/√p minus any other output."""
    return sqrt(comb(n, n // 2)) - 2.0 ** (2 - n // 2)


def laplace_scale(algorithm, data, eta, **how):
    noise = dn.release(algorithm, data, advantage=2 * eta, noise="laplace", **how).noise_scale
    return float(noise) / sqrt(2)


def largest_change(n, statistic):
    """The largest change by a swap, by enumeration in rational arithmetic."""
    records = [Fraction(float(x)) for x in proposition_11(n)]
    value = {s: float(statistic([records[i] for i in s])) for s in combinations(range(n), n // 2)}
    others = {s: set(range(n)) - set(s) for s in value}
    return max(abs(value[s] - value[tuple(sorted({*s} - {i} | {j}))]) for s in value for i in s for j in others[s])


def make(reduced):
    etas = np.array([0.01, 0.05, 0.2, 0.45]) if reduced else np.geomspace(0.01, 0.45, 12)
    figure, ax = plt.subplots(figsize=(6.0, 4.6), layout="constrained")
    for n, shade in zip(SIZES, ("0.75", "0.6", "0.4", "0.2"), strict=True):
        dp = sensitivity(n) / dn.bounds.epsilon_for_mip(etas)
        ax.loglog(etas, dp, ":", color=shade, label=f"DP, n = {n}")
    theirs = published_scale(etas) * standard_deviation(SIZES[0])
    ax.loglog(etas, theirs, "-", label="MIP as published, M = 2")
    data, std = proposition_11(SIZES[0]), standard_deviation(SIZES[0])
    proven = enough(etas) * std
    ax.loglog(etas, proven, "-", lw=2, label="ours, from the same σ")
    sampled = np.array([laplace_scale(inverse_sum, data, eta, n_resamples=1024, rng=0) for eta in etas])
    ax.loglog(etas, sampled, "-", lw=2, label="ours, 1,024 resamples, confidence 0.99")
    ax.set(xlabel="η", ylabel="scale of the Laplace noise", title="Noise for η-MIP, Proposition 11")
    ax.legend(fontsize=7, loc=(0.02, 0.18))

    inverse, inverses = (lambda subset: 1 / sum(subset)), (lambda subset: sum(1 / x for x in subset))
    return figure, {
        "dp_over_mip_at_0.01_n36": float(sensitivity(36) / dn.bounds.epsilon_for_mip(etas[0]) / theirs[0]),
        "dp_over_mip_at_0.45_n36": float(sensitivity(36) / dn.bounds.epsilon_for_mip(etas[-1]) / theirs[-1]),
        "published_over_ours_at_0.45": float(theirs[-1] / proven[-1]),
        "published_over_ours_at_0.01": float(theirs[0] / proven[0]),
        "ours_times_eta_at_0.01": float(proven[0] * etas[0]),
        "log10_published_over_resampled_at_0.01": float(np.log10(theirs[0] / sampled[0])),
        "e7_growth_of_change_of_one_over_sum": largest_change(10, inverse) / largest_change(6, inverse),
        "e7_growth_of_change_of_sum_of_inverses": largest_change(10, inverses) / largest_change(6, inverses),
        "largest_spread_bound": standard_deviation(SIZES[0]),
    }
