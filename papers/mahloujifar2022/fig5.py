"""Mahloujifar et al., Figure 5: a small sampling rate parts the final-model attack from the one on all models.

d = 2,000, 1,000 records, q = 0.01, 50 epochs (T = 5,000), noise varied. Beyond the paper: the likelihood ratio of all
gradients, which attains the bound at every noise level, and the limit of the final-model attack.
"""

import matplotlib.pyplot as plt
import numpy as np
from known_laws import ratio_advantage
from membership_games import final_model_limit, play_game

import deniable as dn

RATE, STEPS, DIMENSION, RECORDS = 0.01, 5000, 2_000, 1000
PLAYED = {"FMA (game OFM)": ("OFM", "FMA"), "IMA (game OIG)": ("OIG", "IMA"), "FMA (game YFM)": ("YFM", "FMA"),
          "IMA (game YIG)": ("YIG", "IMA"), "ours: likelihood ratio (OIG)": ("OIG", "LR")}  # fmt: skip


def play(which, sigma, games, rng):
    """2p − 1 of the attack that accuses above 0, and its standard error; of likelihood ratios by reweighting."""
    scores = play_game(*which, noise_multiplier=sigma, sample_rate=RATE, steps=STEPS, dimension=DIMENSION,
                       records=RECORDS, n=games, rng=rng)  # fmt: skip
    if which[1] == "LR":
        return ratio_advantage(scores)
    hits = [np.mean(side > 0) for side in scores]
    return float(hits[0] - hits[1]), float(np.sqrt(sum(p * (1 - p) for p in hits) / games))


def make(reduced):
    rng, slow = np.random.default_rng(5), 300 if reduced else 2_000  # a game that keeps 5,000 models costs more
    sigmas = np.array([0.5, 1.0, 2.0, 4.0]) if reduced else np.array([0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0])
    bound = np.array([dn.tradeoff(dn.SubsampledGaussian(s, RATE, STEPS)).advantage() for s in sigmas])
    limit = np.array([final_model_limit(s, RATE, STEPS) for s in sigmas])
    measured = {
        label: np.array([play(which, s, 100 * slow if which[1] == "FMA" else slow, rng) for s in sigmas]).T
        for label, which in PLAYED.items()
    }
    figure, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    ax.plot(sigmas, bound, "k-", label="bound, one record added (OIG as §3 defines it)")
    ax.plot(sigmas, limit, "k:", label="FMA as d → ∞")
    for (label, values), style in zip(measured.items(), ("o--", "s--", "^-.", "v-.", "*"), strict=True):
        ax.errorbar(sigmas, values[0], 2 * values[1], fmt=style, ms=5, lw=1, capsize=2, label=label)
    ax.set(xlabel="noise multiplier σ", ylabel="advantage ± two standard errors")
    ax.set_title("q = 0.01, 50 epochs, d = 2,000", fontsize=10)
    ax.legend(fontsize=8)

    final, vote = measured["FMA (game OFM)"][0], measured["IMA (game OIG)"][0]
    ratio_attack = measured["ours: likelihood ratio (OIG)"]
    ratio = dict(zip(sigmas.tolist(), (limit / bound).tolist(), strict=True))
    numbers = {f"limit_of_fma_over_bound_at_{s:g}": ratio[s] for s in (0.5, 1.0, 2.0, 4.0)}
    numbers |= {
        "fma_over_bound_at_0.5": float(final[0] / bound[0]),
        "fma_over_bound_at_4": float(final[-1] / bound[-1]),
        "ima_over_fma_at_0.5": float(vote[0] / final[0]),
        "ratio_attack_over_bound_at_0.5": float(ratio_attack[0][0] / bound[0]),
        "ratio_attack_off_the_bound_in_errors": float(np.max(np.abs(ratio_attack[0] - bound) / ratio_attack[1])),
        "highest_attack_above_bound_in_errors": float(max(np.max((v[0] - bound) / v[1]) for v in measured.values())),
    }
    return figure, numbers
