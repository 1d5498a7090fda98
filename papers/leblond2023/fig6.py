"""LeBlond et al., Figure 6: averaged |l|/β at several ranks against β, its two plateaus, and what they mean (E15)."""

import _adult
import matplotlib.pyplot as plt
import numpy as np

import deniable as dn


def first_above(level, share, beta):
    """Where a curve first passes ``level``, between the grid's points."""
    k = int(np.argmax(share > level))
    return float(np.exp(np.interp(level, share[k - 1 : k + 1], np.log(beta[k - 1 : k + 1]))))


def make(reduced):
    X, y = _adult.adult(rows=3000 if reduced else None)
    profile = dn.privacy_profile(X, y, regularization=1.0, tolerance=1e-2, mechanism=dn.OutputPerturbation(epsilon=1.0))
    largest = profile.distance.max()
    beta = np.geomspace(1e-3, 1e4, 29) / largest
    unit = _adult.draw_around(np.zeros(2), 1.0, 60, np.random.default_rng(0))  # the same directions at every β
    ranks = np.array([0, len(y) // 100, len(y) // 10, len(y) // 2, 9 * len(y) // 10])
    size = []
    for b in beta:
        losses = np.abs(_adult.sampled_losses(profile, b, profile.optimum + unit / b))
        size.append((-np.partition(-losses, ranks, axis=1)[:, ranks]).mean(axis=0))  # ranked for each model, averaged
    size = np.array(size)
    scaled = size / beta[:, None]
    band = profile.transition()  # beyond the paper: the worst record's exact curve, and where it is 5 % and 95 %
    rate = band.epsilon * profile.rate  # β is 1/sensitivity times ε, and profile.rate is β at ε = 1

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    left.loglog(beta, scaled, label=[f"rank {rank}" for rank in ranks])
    left.axvline(1 / largest, ls="--", color="black", label="1/|A(x) − A(y_max)|")
    left.set(xlabel="β", ylabel="mean |l|/β", title="As in the paper: plateaus of |l|/β")
    right.loglog(beta, size[:, 0], label="mean |l|, rank 0")
    right.loglog(rate, band.advantage, label="ours: exact advantage, worst record")
    right.axvspan(
        band.epsilon_low * profile.rate, band.epsilon_high * profile.rate, alpha=0.2, color="grey", label="5 % to 95 %"
    )
    right.axvline(1 / largest, ls="--", color="black")
    right.set(xlabel="β", title="|l| and the advantage have no lower plateau (E15)", ylim=(1e-4, 30))
    for ax in (left, right):
        ax.minorticks_off()
        ax.legend(fontsize=7)

    share = (scaled - scaled[0]) / (scaled[-1] - scaled[0])  # of the way from the lower plateau to the upper
    onset, end = (np.array([first_above(level, s, beta) for s in share.T]) for level in (0.05, 0.95))
    exposed = np.interp(np.log([1 / largest, onset.min(), onset.min() / 10]), np.log(rate), band.advantage)
    return figure, {
        "lower_plateau_rank_0_over_a_decade": float(scaled[4, 0] / scaled[0, 0]),
        "lower_plateau_median_rank_over_a_decade": float(scaled[4, 3] / scaled[0, 3]),
        "upper_plateau_rank_0_over_a_decade": float(scaled[-1, 0] / scaled[-5, 0]),
        "earliest_onset_times_largest_distance": float(onset.min() * largest),
        "latest_onset_over_earliest": float(onset.max() / onset.min()),
        "end_of_the_rise_rank_0_over_high_rank": float(end[0] / end[4]),
        "slope_of_the_loss_below_the_onset": float(np.log(size[4, 0] / size[0, 0]) / np.log(beta[4] / beta[0])),
        "worst_advantage_at_one_over_distance": float(exposed[0]),
        "worst_advantage_at_the_earliest_onset": float(exposed[1]),
        "worst_advantage_at_a_tenth_of_that": float(exposed[2]),
        "transition_from_beta_times_distance": float(band.epsilon_low * profile.rate * largest),
        "transition_to_beta_times_distance": float(band.epsilon_high * profile.rate * largest),
    }
