"""Thudi et al., Figure 1: thinning the batches (e^−t) against thinning the data ((1 − t)/t), and both in a real run."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import deniable as dn

SIGMA, STEPS, FPR = 10.0, 100, 0.01  # with whole batches: a shift of one standard deviation


def odds_against(precision):
    return (1 - precision) / precision


def theorem(epsilon, prior):
    """e^−ε·(1 − π)/π, the term that both amplifications act on (§4.1): the odds that an accused record was out."""
    return odds_against(dn.bounds.positive_accuracy(epsilon, prior=prior)[1])


def make(reduced):
    t = np.linspace(0.005, 0.995, 100 if reduced else 397)
    batch, data = theorem(t, 0.5), theorem(0.0, t)  # ε = q·ε₀ with ε₀ = 1 and even odds; the prior alone
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    left.plot(t, batch, label="batch sampling, e$^{-t}$")
    left.plot(t, data, label="data sampling, (1 − t)/t")
    left.set(xlabel="t", ylabel="amplification", ylim=(0, 5), title="As in the paper")
    left.legend()

    rates = np.linspace(0.05, 0.95, 4 if reduced else 19)
    runs = [dn.tradeoff(dn.SubsampledGaussian(SIGMA, rate, STEPS)) for rate in rates]
    whole = dn.tradeoff(dn.SubsampledGaussian(SIGMA, 1.0, STEPS))
    by_batch = np.array([run.precision(FPR, 0.5) for run in runs])
    by_data = whole.precision(FPR, rates)

    def saved(rate):
        run = dn.tradeoff(dn.SubsampledGaussian(SIGMA, float(rate), STEPS))
        return run.precision(FPR, 0.5) - whole.precision(FPR, float(rate))

    crossing = float(brentq(saved, 0.05, 0.5, xtol=1e-5))
    right.plot(rates, 100 * by_batch, "o-", ms=3, label="batches thinned to t, prior ½")
    right.plot(rates, 100 * by_data, "s-", ms=3, label="data thinned to t, whole batches")
    right.axvline(crossing, color="grey", lw=0.8)
    right.set(
        xlabel="t", ylabel=f"largest precision at FPR {FPR:.0%} (%)", title=f"Ours, exact: σ = {SIGMA:g}, T = {STEPS}"
    )
    right.legend()
    return figure, {
        "batch_at_0": float(theorem(0.0, 0.5)),
        "batch_at_1": float(theorem(1.0, 0.5)),
        "data_at_0.2": float(theorem(0.0, 0.2)),
        "data_at_1e-9": float(theorem(0.0, 1e-9)),
        "crossing": float(brentq(lambda x: theorem(0.0, x) - theorem(x, 0.5), 0.1, 0.9)),
        "exact_crossing": crossing,
        "exact_precision_saved_by_data_over_batch_at_0.05": float(by_batch[0] - by_data[0]),
    }
