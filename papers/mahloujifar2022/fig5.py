"""Mahloujifar et al., Figure 5: a small sampling rate parts the final-model attack from the one on all models.

d = 2,000, 1,000 records, q = 0.01, 50 epochs (T = 5,000), noise varied. Beyond the paper: the likelihood ratio of all
gradients, which attains the bound at every noise level, and the limit of the final-model attack.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn
from deniable.audit import final_model_limit, play_game

sys.path.append(str(Path(__file__).resolve().parents[1]))
import _common

RATE, STEPS, DIMENSION, RECORDS = 0.01, 5000, 2_000, 1000
PLAYED = {"FMA (game OFM)": ("OFM", "FMA"), "IMA (game OIG)": ("OIG", "IMA"), "FMA (game YFM)": ("YFM", "FMA"),
          "IMA (game YIG)": ("YIG", "IMA"), "ours: likelihood ratio (OIG)": ("OIG", "LR")}  # fmt: skip


def play(which, sigma, games, rng):
    """2p − 1 of the attack that accuses above 0."""
    member, nonmember = play_game(*which, noise_multiplier=sigma, sample_rate=RATE, steps=STEPS, dimension=DIMENSION,
                                  records=RECORDS, n=games, rng=rng)  # fmt: skip
    return float(np.mean(member > 0) - np.mean(nonmember > 0))


def make(reduced):
    rng, slow = np.random.default_rng(5), 300 if reduced else 2_000  # a game that keeps 5,000 models costs more
    sigmas = np.array([0.5, 1.0, 2.0, 4.0]) if reduced else np.array([0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0])
    bound = np.array([dn.tradeoff(dn.SubsampledGaussian(s, RATE, STEPS)).advantage() for s in sigmas])
    limit = np.array([final_model_limit(s, RATE, STEPS) for s in sigmas])
    measured = {
        label: np.array([play(which, s, 100 * slow if which[1] == "FMA" else slow, rng) for s in sigmas])
        for label, which in PLAYED.items()
    }
    figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
    ax.plot(sigmas, bound, "k-", label="bound")
    ax.plot(sigmas, limit, "k:", label="FMA as d → ∞")
    for (label, values), style in zip(measured.items(), ("o--", "s--", "^-.", "v-.", "*"), strict=True):
        ax.plot(sigmas, values, style, ms=5, lw=1, label=label)
    ax.set(xlabel="noise multiplier σ", ylabel="advantage", title="q = 0.01, 50 epochs, d = 2,000")
    ax.legend(fontsize=8)

    final, vote = measured["FMA (game OFM)"], measured["IMA (game OIG)"]
    ratio = dict(zip(sigmas.tolist(), (limit / bound).tolist(), strict=True))
    numbers = {f"limit_of_fma_over_bound_at_{s:g}": ratio[s] for s in (0.5, 1.0, 2.0, 4.0)}
    numbers |= {
        "fma_over_bound_at_0.5": float(final[0] / bound[0]),
        "fma_over_bound_at_4": float(final[-1] / bound[-1]),
        "ima_over_fma_at_0.5": float(vote[0] / final[0]),
        "ratio_attack_over_bound_at_0.5": float(measured["ours: likelihood ratio (OIG)"][0] / bound[0]),
        "highest_attack_above_bound": float(max(np.max(values - bound) for values in measured.values())),
    }
    return figure, numbers


if __name__ == "__main__":
    _common.main(__file__, make)
