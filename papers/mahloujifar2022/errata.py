"""Mahloujifar et al., errata E8 to E11: what is printed and what is right, by simulation beside the exact value.

E8: Algorithm 1 prints max(η, 0) where it needs min(η, 0). E9: Proposition 8 needs about 6 times the samples that
Hoeffding's inequality needs. E10: equations 24 to 26 and Theorem 21 add 1 − 2p where it has to be taken away.
E11: TV_a of footnote 4 is not the hockey stick; they differ by (1 − a)/2.
"""

import matplotlib.pyplot as plt
import numpy as np
from known_laws import attack_transcript

import deniable as dn

RUN = dn.SubsampledGaussian(1.0, 0.1, 50)
ERROR, DOUBT = 0.01, 1e-5  # the paper's accuracy and confidence


def algorithm_1(samples, rng, clip):
    """Algorithm 1, lines 9 and 10 as ``clip`` says; the losses are of draws from the world without the record."""
    _, losses = attack_transcript(RUN, n=samples, rng=rng)
    return float(np.mean(-np.expm1(clip(losses, 0.0))))


def make(reduced):
    rng = np.random.default_rng(8)
    exact = dn.tradeoff(RUN)
    proposition_8 = 3 * np.log(1 / DOUBT) / ERROR**2  # e^{−mδ²/3} = β
    hoeffding = np.log(2 / DOUBT) / (2 * ERROR**2)  # 2e^{−2mδ²} = β
    repeats, size = (5, 6_000) if reduced else (40, int(np.ceil(hoeffding)))
    right = np.array([algorithm_1(size, rng, np.minimum) for _ in range(repeats)])
    printed = np.array([algorithm_1(size, rng, np.maximum) for _ in range(2)])

    priors = np.linspace(0.02, 0.5, 13 if reduced else 25)
    ratios = priors / (1 - priors)
    variation = dn.bounds.scaled_total_variation(exact, ratios)
    corrected = dn.bounds.advantage_from_scaled_variation(variation, prior=priors)
    as_printed = 2 * (1 - priors) * variation + 1 - 2 * priors
    member, nonmember = (np.sort(s) for s in attack_transcript(RUN, n=4_000 if reduced else 100_000, rng=rng))
    threshold = -np.log(ratios)  # the best attack accuses where p·P > (1 − p)·Q
    tpr, fpr = (1 - np.searchsorted(s, threshold) / len(s) for s in (member, nonmember))
    measured = 2 * (priors * tpr + (1 - priors) * (1 - fpr)) - 2 * (1 - priors)

    figure, (left, middle, last) = plt.subplots(1, 3, figsize=(12.0, 3.8), layout="constrained")
    sizes = np.geomspace(1e3, 1e6, 50)
    left.loglog(sizes, np.sqrt(3 * np.log(1 / DOUBT) / sizes), label="Proposition 8")
    left.loglog(sizes, np.sqrt(np.log(2 / DOUBT) / (2 * sizes)), label="Hoeffding")
    left.loglog([size] * repeats, np.abs(right - exact.advantage()), "k.", label="Algorithm 1 with min: its error")
    left.axhline(ERROR, color="grey", lw=0.8)
    left.set(xlabel="samples m", ylabel="error, confidence 99.999 %", title="E8, E9: Monte Carlo")
    middle.plot(priors, as_printed, "--", label="as printed: + (1 − 2p)")
    middle.plot(priors, corrected, label="corrected: − (1 − 2p)")
    middle.plot(priors, measured, "k.", ms=4, label="likelihood-ratio attack, measured")
    middle.plot(priors, 2 * (1 - 2 * priors), ":", label="as printed, for equal worlds")
    middle.set(xlabel="prior p", ylabel="advantage", title="E10: prior advantage")
    scales = np.linspace(0, 2, 41)
    last.plot(scales, dn.bounds.scaled_total_variation(exact, scales), label="TV_a = ½∫|x − ay|")
    last.plot(scales, exact.hockey_stick(scales, "add"), "--", label="hockey stick H_a")
    last.set(xlabel="a", title="E11: equal at a = 1 only")
    for ax in (left, middle, last):
        ax.minorticks_off()
        ax.legend(fontsize=7)

    equal = dn.tradeoff(dn.PureDP(0.0))  # the two worlds are one
    nothing = dn.bounds.scaled_total_variation(equal, 0.1 / 0.9)
    hockey_stick = exact.hockey_stick(0.5, "add")
    return figure, {
        "e8_as_printed": float(printed.max()),
        "e8_corrected_minus_exact": float(right.mean() - exact.advantage()),
        "e9_samples_proposition_8": float(proposition_8),
        "e9_samples_ratio": float(proposition_8 / hoeffding),
        "e9_largest_error": float(np.max(np.abs(right - exact.advantage()))),
        "e10_equal_worlds_as_printed": float(2 * 0.9 * nothing + 0.8),
        "e10_equal_worlds_corrected": float(dn.bounds.advantage_from_scaled_variation(nothing, prior=0.1)),
        "e10_corrected_minus_exact": float(np.max(np.abs(corrected - exact.advantage(priors)))),
        "e10_corrected_minus_measured": float(np.max(np.abs(corrected - measured))),
        "e11_difference_at_half": float(hockey_stick - dn.bounds.scaled_total_variation(exact, 0.5)),
    }
