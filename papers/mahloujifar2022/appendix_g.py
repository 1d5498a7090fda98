"""Mahloujifar et al., errata E16 and E18: what δ is not, and a scale below zero.

E16: Appendix G bounds precision and accuracy by σ(ε) "with probability 1 − δ". An (ε, δ) guarantee does not say that:
the log ratio passes ε far more often than δ. E18: Theorem 6 applies Lemma 7, TV_a(X', Y) = q·TV_{(a+q−1)/q}(X, Y), at
scales below 0 too, where Definition 4 has none; ½∫|x − a·y| does.
"""

import matplotlib.pyplot as plt
import numpy as np
from known_laws import attack_transcript

import deniable as dn

DELTA = 1e-5
RUNS = {
    "σ = 3.7307, one step": dn.SubsampledGaussian(3.7307, 1.0, 1),
    "σ = 1, q = 0.01, T = 5,000": dn.SubsampledGaussian(1.0, 0.01, 5000),
}


def chance_to_pass(curve, epsilon, step=1e-4):
    """P(L > ε | in) = H − γ·dH/dγ at γ = e^ε."""
    up, down = (curve.delta(epsilon + s, direction="remove") for s in (step, -step))
    return curve.delta(epsilon, direction="remove") - (up - down) / (2 * step)


def make(reduced):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    numbers = {}
    for colour, (name, run) in enumerate(RUNS.items()):
        curve = dn.tradeoff(run)
        epsilon = np.linspace(0.2, 2.2, 9 if reduced else 41)
        passes = np.array([chance_to_pass(curve, e) for e in epsilon])
        left.semilogy(epsilon, passes, color=f"C{colour}", label=f"P(log ratio > ε), {name}")
        left.semilogy(epsilon, curve.delta(epsilon), "--", color=f"C{colour}", label="δ(ε) of the same run")
        at = curve.epsilon(DELTA)
        key = "one_step" if run.steps == 1 else "run"
        numbers[f"e16_epsilon_of_{key}"] = at
        numbers[f"e16_passes_over_delta_of_{key}"] = chance_to_pass(curve, at) / DELTA
        numbers[f"e16_passes_plus_1_over_delta_of_{key}"] = chance_to_pass(curve, at + 1.0) / DELTA
    member, _ = attack_transcript(RUNS["σ = 3.7307, one step"], n=200_000 if reduced else 4_000_000, rng=16)
    seen = np.array([np.mean(member > e) for e in (0.2, 0.5, 0.8, 1.0)])
    left.plot((0.2, 0.5, 0.8, 1.0), seen, "k.", label="played: share of transcripts above ε")
    numbers["e16_played_over_delta"] = float(seen[-1] / DELTA)
    left.set(xlabel="ε", ylabel="probability", ylim=(1e-9, 1), title="E16: δ is not the chance to pass ε")

    rate, mu = 0.1, 1.5  # one sampled step: X' = (1 − q)·Y + q·X with X = N(μ, 1), Y = N(0, 1)
    scales = np.linspace(0.02, 2, 67)
    inner = (scales + rate - 1) / rate
    sampled = dn.tradeoff(dn.SubsampledGaussian(1 / mu, rate, 1))
    whole = dn.tradeoff(dn.GaussianDP(mu))
    outer = dn.bounds.scaled_total_variation(sampled, scales, "remove")

    def lemma_7(scale):
        return dn.bounds.subsampled_variation(dn.bounds.scaled_total_variation(whole, scale, "remove"), rate=rate)

    right.plot(scales, outer, lw=4, alpha=0.4, label="TV_a(X', Y), sampled")
    right.plot(scales, lemma_7(inner), label="q·TV at (a + q − 1)/q, also below 0")
    right.plot(scales, lemma_7(np.maximum(inner, 0.0)), "--", label="the scale kept in Definition 4's range")
    right.axvline(1 - rate, color="grey", lw=0.8)
    right.set(xlabel="a (left of the line the scale is negative)", title="E18: Lemma 7 at q = 0.1")
    numbers |= {
        "e18_largest_error_of_lemma_7": float(np.max(np.abs(lemma_7(inner) - outer))),
        "e18_error_with_the_scale_kept_positive": float(np.max(outer - lemma_7(np.maximum(inner, 0.0)))),
        "e18_lowest_scale": float(inner[0]),
    }
    for ax in (left, right):
        ax.minorticks_off()
        ax.legend(fontsize=7)
    return figure, numbers
