"""LeBlond et al., Figure 7: the mean loss of several records against β and β|A(x) − A(y_i)| (errata E13, E15, E17).

Top: the mean of l, as the caption has it. Bottom: the mean of |l|, over β, which has the plateaus that the text
describes. Dotted: the onset of the rise (Figure 6), here where |l|/β is 5 % of the way from one plateau to the other.
"""

import _adult
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import deniable as dn
from deniable.laws.norm_laplace import NormLaplaceLaw

QUANTILES = (1.0, 0.99, 0.9, 0.5, 0.1)
LAW = NormLaplaceLaw(2)  # of the loss in the plane: it depends on ρ = β|A(x) − A(y)| alone


def make(reduced):
    X, y = _adult.adult(rows=2000 if reduced else None)
    figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.2), layout="constrained")
    profiles = [
        dn.privacy_profile(X, y, regularization=1.0, tolerance=1e-2, mechanism=dn.OutputPerturbation(epsilon=e))
        for e in (1e-2, 1.0, 1e2)
    ]
    profile = profiles[1]
    rho, fine = np.geomspace(1e-2, 1e2, 9), np.geomspace(3e-3, 3e2, 60)
    unit = _adult.draw_around(np.zeros(2), 1.0, 200 if reduced else 1000, np.random.default_rng(0))
    size, mean = LAW.mean_size(fine), LAW.mean_loss(fine)
    sampled = []
    for colour, quantile in enumerate(QUANTILES):
        record = int(profile.ranking("typical")[int((1 - quantile) * (len(y) - 1))])
        distance = profile.distance[record]
        losses = [
            _adult.sampled_losses(profile, r / distance, profile.optimum + unit * distance / r, record) for r in rho
        ]
        sampled.append([np.abs(loss).mean() for loss in losses])
        signed = np.array([loss.mean() for loss in losses])
        for row, exact, crosses in ((0, mean, signed), (1, size, np.array(sampled[-1]))):
            per = [1, 1] if row == 0 else [fine / distance, rho / distance]
            for ax, u in ((axes[row, 0], distance), (axes[row, 1], 1)):
                rate = per if row == 0 or u != 1 else [fine, rho]  # right: over ρ, in units of the distance
                ax.loglog(fine / u, exact / rate[0], color=f"C{colour}", lw=5 - colour, label=f"record {record}, exact")
                ax.loglog(rho / u, crosses / rate[1], "x", color=f"C{colour}", ms=4)
    rise = 2 / np.pi + 0.05 * (1 - 2 / np.pi)
    onset = brentq(lambda r: float(LAW.mean_size(r)) / r - rise, 0.1, 100)
    for row, name in ((0, "mean l"), (1, "mean |l| / β")):
        axes[row, 0].axvline(onset / profile.distance.max(), ls=":", color="black", label="onset, y_max")
        axes[row, 1].axvline(onset, ls=":", color="black")
        axes[row, 0].set(xlabel="β", ylabel=name)
        axes[row, 1].set(xlabel="β|A(x) − A(y)|", ylabel=name if row == 0 else "mean |l| / (β|A(x) − A(y)|)")
    axes[0, 0].set(ylim=(1e-6, 300), title="the mean of l: no plateau (crosses: 1,000 models drawn)")
    axes[0, 1].set(ylim=(1e-6, 300), title="one curve for all records")
    axes[0, 1].loglog(fine, fine**2 / 4, "k--", lw=1, label="β²|A(x) − A(y)|²/(2d)")
    axes[1, 0].set_title("the mean of |l| over β: two plateaus")
    axes[0, 1].legend(handles=axes[0, 1].lines[-1:], fontsize=7)
    axes[0, 0].legend(fontsize=6)
    axes[1, 1].set(yscale="linear", title="the same over β|A(x) − A(y)|: from 2/π to 1")
    for ax in axes.flat:
        ax.minorticks_off()

    small = profiles[0].rate * profiles[0].distance
    record = profile.ranking("typical")[0]
    b = 3 / profile.distance[record]
    models = _adult.draw_around(profile.optimum, b, 40_000, np.random.default_rng(1))
    losses = _adult.sampled_losses(profile, b, models, record)
    return figure, {
        "most_exposed_record": float(record),
        "sampled_curves_differ_by": float(np.max(np.ptp(sampled, axis=0) / np.mean(sampled, axis=0))),
        "mean_loss_over_rho_squared_over_4": float(np.median(profiles[0].mean_loss() / (small**2 / 4))),
        "mean_size_over_rho_at_0.01": float(sampled[0][0] / rho[0]),
        "onset_times_largest_distance": float(onset),
        "mean_loss_at_rho_3": float(losses.mean()),
        "printed_mean_loss_at_rho_3": float(np.mean(-losses)),  # E log C(y) − E log C(x), erratum E13
        "e17_mean_size_at_rho_0.01": float(LAW.mean_size(0.01)),
        "e17_divergence_at_rho_0.01": float(LAW.mean_loss(0.01)),
    }
