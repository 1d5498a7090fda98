"""Mahloujifar et al., Figure 4: the membership games on H_d^f against the bound, for d = 2,000, 10,000 and 100,000.

1,000 records, q = 0.1, 5 epochs (T = 50), noise varied. Beyond the paper: the likelihood ratio of all gradients, which
attains the bound; the limit of the paper's attack as d grows, which does not; and the game as appendix H defines it,
where one record *replaces* another: the attacker reads both coordinates and passes the bound, which is for adding one.
"""

import matplotlib.pyplot as plt
import numpy as np
from membership_games import final_model_limit, play_game

import deniable as dn

RATE, STEPS, RECORDS = 0.1, 50, 1000
PLAYED = {"OFM, final model": ("OFM", "FMA"), "OIG, majority vote": ("OIG", "IMA"), "YFM, final model": ("YFM", "FMA"),
          "YIG, majority vote": ("YIG", "IMA"), "ours: OIG, likelihood ratio": ("OIG", "LR")}  # fmt: skip


def advantage(scores):
    """2p − 1 of the attack that accuses above 0, from as many members as nonmembers."""
    member, nonmember = scores
    return float(np.mean(member > 0) - np.mean(nonmember > 0))


def replacing(scores):
    """2p − 1 of telling D ∪ {z₁} from D ∪ {z₀}: whose coordinate has the larger ratio? It is the optimal test."""
    member, nonmember = scores
    return float(np.mean(np.sign(member - nonmember)))


def make(reduced):
    games, rng = 4_000 if reduced else 40_000, np.random.default_rng(4)
    sigmas = np.array([0.5, 1.0, 2.0, 4.0]) if reduced else np.array([0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0])
    bound = np.array([dn.tradeoff(dn.SubsampledGaussian(s, RATE, STEPS)).advantage() for s in sigmas])
    limit = np.array([final_model_limit(s, RATE, STEPS) for s in sigmas])
    figure, axes = plt.subplots(1, 3, figsize=(12.0, 4.0), layout="constrained", sharey=True)
    ratio = dict(zip(sigmas.tolist(), (limit / bound).tolist(), strict=True))
    numbers = {f"limit_of_fma_over_bound_at_{s:g}": ratio[s] for s in (0.5, 1.0, 2.0, 4.0)}
    highest = -1.0
    for ax, d in zip(axes, (2_000, 10_000, 100_000), strict=True):
        common = {"sample_rate": RATE, "steps": STEPS, "dimension": d, "records": RECORDS, "n": games}
        drawn = {
            label: np.array([play_game(*which, noise_multiplier=s, rng=rng, **common) for s in sigmas], dtype=object)
            for label, which in PLAYED.items()
        }
        measured = {label: np.array([advantage(scores) for scores in all_]) for label, all_ in drawn.items()}
        ax.plot(sigmas, bound, "k-", label="bound (add or remove)")
        ax.plot(sigmas, limit, "k:", label="final model as d → ∞")
        for (label, values), style in zip(measured.items(), ("o--", "s--", "^-.", "v-.", "*"), strict=True):
            ax.plot(sigmas, values, style, ms=4, lw=1, label=label)
        both = np.array([replacing(scores) for scores in drawn["ours: OIG, likelihood ratio"]])
        ax.plot(sigmas, both, "r+", label="ours: one record replaced")
        ax.set(xlabel="noise multiplier σ", title=f"d = {d:,}")
        highest = max(highest, *(float(np.max(values - bound)) for values in measured.values()))
        numbers[f"gap_of_yfm_to_ofm_d{d}"] = float(np.mean(measured["OFM, final model"] - measured["YFM, final model"]))
        if d == 100_000:
            reached = measured["ours: OIG, likelihood ratio"] / bound
            numbers["largest_gap_of_ratio_attack"] = float(np.max(np.abs(reached - 1)[sigmas <= 2]))
            numbers["replacing_over_bound_at_2"] = float((both / bound)[sigmas == 2][0])
    axes[0].set_ylabel("advantage")
    axes[0].legend(fontsize=7)
    numbers["highest_attack_above_bound"] = highest
    return figure, numbers
