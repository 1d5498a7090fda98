"""Mahloujifar et al., Figure 3: advantage against the sampling rate q over 5 epochs, and why it oscillates.

The number of steps is a whole number, T = round(5/q): between two jumps of T a larger q only adds leakage, at a jump
one step fewer takes some away. Where 5/q is whole there is no rounding, and no oscillation.
"""

import _older
import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

EPOCHS, DELTA = 5, 1e-5
SIGMAS = (0.5, 1.0, 2.0)  # the text names 0.5 alone of the paper's three


def run(sigma, rate, steps=None):
    return dn.SubsampledGaussian(sigma, float(rate), max(round(EPOCHS / rate), 1) if steps is None else int(steps))


def make(reduced):
    rates = np.linspace(0.01, 1.0, 34 if reduced else 199)
    whole = np.arange(EPOCHS, 26 if reduced else 151)  # numbers of steps T with q = 5/T: nothing is rounded
    figure, axes = plt.subplots(1, len(SIGMAS), figsize=(12.0, 3.8), layout="constrained")
    falls = outside = rises = 0
    for ax, sigma in zip(axes, SIGMAS, strict=True):
        exact = np.array([dn.tradeoff(run(sigma, q)).advantage() for q in rates])
        coarse = rates[::3]
        ax.plot(coarse, [_older.humphries(run(sigma, q), DELTA) for q in coarse], "--", lw=1, label="Humphries et al.")
        ax.plot(rates, by_pinsker := [_older.pinsker(run(sigma, q)) for q in rates], "-.", lw=1, label="Pinsker")
        ax.plot(rates, exact, lw=1, label="optimal, T = round(5/q)")
        smooth = np.array([dn.tradeoff(run(sigma, EPOCHS / t, t)).advantage() for t in whole])
        ax.plot(EPOCHS / whole, smooth, "k:", lw=1.2, label="optimal where 5/q is whole")
        ax.set(xlabel="sampling rate q", ylabel="advantage", title=f"σ = {sigma:g}, {EPOCHS} epochs", ylim=(0, 1.02))
        ax.legend(fontsize=7)

        steps = np.array([run(sigma, q).steps for q in rates])
        down = np.diff(exact) < -1e-9
        falls += int(down.sum())
        outside += int(np.sum(down & (np.diff(steps) == 0)))  # falls while T stays: none, if rounding explains them
        rises += int(np.sum(np.diff(smooth) > 1e-9))  # the curve without rounding grows with q = 5/T throughout
        if sigma == SIGMAS[0]:
            vacuous = int(np.argmax(np.array(by_pinsker) >= 1))
            numbers = {
                "rate_at_which_pinsker_is_vacuous": float(rates[vacuous]),
                "optimal_there": float(exact[vacuous]),
            }
    numbers |= {"falls_with_rate": falls, "falls_without_a_jump_of_T": outside, "falls_where_5_over_q_is_whole": rises}
    return figure, numbers
