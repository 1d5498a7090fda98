"""LeBlond et al., Figure 7: the mean loss of several records against β, and against β|A(x) − A(y_i)| (E13, E15)."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import deniable as dn

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parent))
import _adult
import _common

QUANTILES = (1.0, 0.99, 0.9, 0.5, 0.1)


def make(reduced):
    X, y = _adult.adult(rows=2000 if reduced else None)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    profiles = [
        dn.privacy_profile(X, y, regularization=1.0, tolerance=1e-2, mechanism=dn.OutputPerturbation(epsilon=e))
        for e in (1e-2, 1.0, 1e2)
    ]
    profile = profiles[1]
    rho = np.geomspace(1e-2, 1e2, 9)
    unit = _adult.draw_around(np.zeros(2), 1.0, 200 if reduced else 1000, np.random.default_rng(0))
    sampled = []
    for colour, quantile in enumerate(QUANTILES):
        band = profile.transition(quantile)  # beyond the paper: the record's exact curve, no sampling
        distance = profile.distance[band.record]
        beta = band.epsilon * profile.rate
        left.loglog(beta, beta * band.mean_size, color=f"C{colour}", label=f"record {band.record}, exact E|l|")
        right.loglog(beta * distance, beta * band.mean_size, color=f"C{colour}", lw=5 - colour)
        means = [
            np.abs(
                _adult.sampled_losses(profile, r / distance, profile.optimum + unit * distance / r, band.record)
            ).mean()
            for r in rho
        ]
        left.loglog(rho / distance, means, "x", color=f"C{colour}", ms=4)
        sampled.append(means)
    ours = np.concatenate([p.rate * p.distance for p in profiles]), np.concatenate([p.mean_loss() for p in profiles])
    order = np.argsort(ours[0])[:: len(ours[0]) // 100]
    right.loglog(ours[0][order], ours[1][order], "k.", ms=2, label="E l = KL, all records, ours")
    right.loglog(rho, rho**2 / 4, "k:", lw=1, label="β²|A(x) − A(y)|²/(2d)")
    left.set(xlabel="β", ylabel="mean loss", title="mean |l|: crosses sampled, lines exact")
    right.set(xlabel="β|A(x) − A(y)|", ylim=(1e-9, 1e3), title="one curve for all records")
    for ax in (left, right):
        ax.minorticks_off()
        ax.legend(fontsize=7)

    small = profiles[0].rate * profiles[0].distance
    record = profile.ranking("typical")[0]
    b = 3 / profile.distance[record]
    losses = _adult.sampled_losses(
        profile, b, _adult.draw_around(profile.optimum, b, 40_000, np.random.default_rng(1)), record
    )
    return figure, {
        "most_exposed_record": float(record),
        "sampled_curves_differ_by": float(np.max(np.ptp(sampled, axis=0) / np.mean(sampled, axis=0))),
        "mean_loss_over_rho_squared_over_4": float(np.median(profiles[0].mean_loss() / (small**2 / 4))),
        "mean_size_over_rho_at_0.01": float(sampled[0][0] / rho[0]),
        "mean_loss_at_rho_3": float(losses.mean()),
        "printed_mean_loss_at_rho_3": float(np.mean(-losses)),  # E log C(y) − E log C(x), erratum E13
    }


if __name__ == "__main__":
    _common.main(__file__, make)
