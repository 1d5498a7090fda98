"""LeBlond et al., Figure 4: |l| of every record for a model M at A(x), and for one off the centre."""

import _adult
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

import deniable as dn

MECHANISM = dn.OutputPerturbation(epsilon=1.0)  # the text does not state the figure's ε


def make(reduced):
    X, y = _adult.adult()
    start = dn.privacy_profile(X, y, regularization=1.0, mechanism=MECHANISM)
    off_centre = start.optimum + start.distance.max() * np.array([0.6, 0.5])
    figure, axes = plt.subplots(1, 2, figsize=(9.4, 4.0), layout="constrained")
    profiles = []
    for ax, model, title in zip(
        axes, (start.optimum, off_centre), ("(a) M = A(x)", "(b) M off the centre"), strict=True
    ):
        profile = dn.privacy_profile(X, y, regularization=1.0, mechanism=MECHANISM, released=model)
        size = np.abs(profile.privacy_loss())
        places = 1e5 * (profile.leave_one_out() - profile.optimum)  # all records
        stars = ax.scatter(*places.T, c=size, marker="*", s=8, cmap="coolwarm", lw=0, rasterized=True)
        ax.plot(*(1e5 * (model - profile.optimum)), "ko", ms=6)
        ax.set(title=title, xlabel="10⁵ (f₁ − A(x)₁)", ylabel="10⁵ (f₂ − A(x)₂)")
        figure.colorbar(stars, ax=ax, label="|l|, certified (ours)")
        profiles.append(profile)

    centred, other = profiles
    nearer = np.linalg.norm(other.leave_one_out() - off_centre, axis=1)
    gap = np.abs(nearer - np.linalg.norm(off_centre - other.optimum))
    return figure, {
        "rank_correlation_with_distance_at_the_centre": float(
            spearmanr(centred.distance, np.abs(centred.privacy_loss()))[0]
        ),
        "rank_correlation_with_the_gap_off_the_centre": float(spearmanr(gap, np.abs(other.privacy_loss()))[0]),
        "rank_correlation_with_distance_off_the_centre": float(
            spearmanr(other.distance, np.abs(other.privacy_loss()))[0]
        ),
        "largest_loss_over_epsilon": float(np.abs(centred.privacy_loss()).max() / MECHANISM.epsilon),
        "largest_error_of_a_loss": float(max(p.loss_errors.max() for p in profiles)),
        "share_with_negative_loss_off_the_centre": float(np.mean(other.privacy_loss() < 0)),
    }
