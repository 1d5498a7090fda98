"""Mahloujifar et al., Figure 1: the sampled Gaussian mechanism over 50 epochs, full batches (a, c) or q = 0.01 (b, d).

Top: bounds on the advantage against the noise, and the advantage that a likelihood-ratio attack measures. Bottom: true
positive rates from the run's (ε, δ) and directly. The paper draws no axis into its text: noise levels are ours.
"""

import _older
import matplotlib.pyplot as plt
import numpy as np
from known_laws import attack_transcript

import deniable as dn

DELTA = 1e-5
# title, q, T, noise levels of the top row, of the quoted numbers and of the bottom row: there ε is large enough
# for the (ε, δ) bound to rise abruptly, from e^ε·FPR to nearly 1
SETTINGS = (("no subsampling", 1.0, 50, (2, 200), 20.0, 5.0), ("q = 0.01", 0.01, 5000, (0.4, 8), 1.0, 0.8))


def from_dp(run):
    """What (ε, δ) of the run alone says: the trade-off of the worst (ε, δ) pair."""
    return dn.tradeoff(dn.ApproximateDP(dn.tradeoff(run).epsilon(DELTA), DELTA))


def sweep(rate, steps, sigmas, trials, rng):
    """Bounds and the empirical advantage 2p − 1 of the attack that names the more likely world (appendix F.1)."""
    rows = []
    for sigma in sigmas:
        run = dn.SubsampledGaussian(float(sigma), rate, steps)
        member, nonmember = attack_transcript(run, n=trials, rng=rng)
        empirical = np.mean(member > 0) - np.mean(nonmember > 0)
        rows.append((from_dp(run).advantage(), _older.pinsker(run), dn.tradeoff(run).advantage(), empirical))
    return np.array(rows).T


def make(reduced):
    trials = 1_000 if reduced else 5_000
    rng = np.random.default_rng(1)
    figure, axes = plt.subplots(2, 2, figsize=(9.0, 7.0), layout="constrained")
    numbers = {}
    for column, (title, rate, steps, ends, sigma, drawn) in enumerate(SETTINGS):
        sigmas = np.geomspace(*ends, 4 if reduced else 15)
        humphries, by_pinsker, exact, empirical = sweep(rate, steps, sigmas, trials, rng)
        ax = axes[0, column]
        ax.semilogx(sigmas, humphries, "--", label=f"Humphries et al. (δ = {DELTA:g})")
        ax.semilogx(sigmas, by_pinsker, "-.", label="Pinsker")
        ax.semilogx(sigmas, exact, "-", label="Theorem 6, computed by ours")
        ax.semilogx(sigmas, empirical, "k.", label="attack, measured")
        ax.set(xlabel="noise multiplier σ", ylabel="advantage", title=f"({'ab'[column]}) {title}, T = {steps}")
        ax.set_xticks(ticks := [x for x in (0.5, 1, 2, 5, 10, 20, 50, 100, 200) if ends[0] <= x <= ends[1]], ticks)
        ax.minorticks_off()
        ax.legend(fontsize=7)

        run = dn.SubsampledGaussian(drawn, rate, steps)
        curve, loose = dn.tradeoff(run), from_dp(run)
        audit = attack_transcript(run, n=trials, rng=rng).audit(0.99)
        fpr = np.geomspace(1e-6, 1, 61)
        ax = axes[1, column]
        ax.loglog(fpr, loose.tpr(fpr), "--", label=f"from (ε, δ) = ({curve.epsilon(DELTA):.3g}, {DELTA:g})")
        ax.loglog(fpr, curve.tpr(fpr), "-", label="direct")
        for seen in (0.01, 0.03, 0.1, 0.3):
            interval = audit.tpr(seen)
            ax.plot(
                [seen, seen], [interval.low, interval.high], "k-", lw=2, label="_" if seen > 0.01 else "attack, 99 %"
            )
        ax.set_xticks([1e-6, 1e-4, 1e-2, 1])
        ax.set_yticks([1e-5, 1e-3, 1e-1])
        ax.minorticks_off()
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        ax.set_title(f"({'cd'[column]}) {title}, σ = {drawn:g}")
        ax.legend(fontsize=7)

        key = "full" if rate == 1 else "sampled"
        numbers[f"{key}_drawn_tpr_at_1e-2_from_dp"] = loose.tpr(1e-2)
        numbers[f"{key}_drawn_tpr_at_1e-2"] = curve.tpr(1e-2)
        run = dn.SubsampledGaussian(sigma, rate, steps)
        curve, loose = dn.tradeoff(run), from_dp(run)
        numbers[f"{key}_largest_gap_attack_to_bound"] = float(np.max(np.abs(empirical - exact)))
        numbers[f"{key}_least_slack_of_humphries"] = float(np.min(humphries - exact))
        numbers[f"{key}_least_slack_of_pinsker"] = float(np.min(by_pinsker - exact))
        numbers[f"{key}_advantage"] = curve.advantage()
        numbers[f"{key}_tpr_at_1e-3"] = curve.tpr(1e-3)
        numbers[f"{key}_tpr_at_1e-3_from_dp"] = loose.tpr(1e-3)
    # two runs of equal advantage whose ε and low-FPR ends differ: "no single parameter explains" an adversary
    same = dn.calibrate(dn.GaussianDP, bracket=(1e-3, 10.0), advantage=dn.tradeoff(run).advantage())
    numbers["tpr_at_1e-5_of_a_gaussian_with_equal_advantage"] = dn.tradeoff(dn.GaussianDP(same)).tpr(1e-5)
    numbers["sampled_tpr_at_1e-5"] = curve.tpr(1e-5)
    return figure, numbers
