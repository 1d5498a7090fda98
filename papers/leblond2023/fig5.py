"""LeBlond et al., Figure 5: privacy profiles |l|/β averaged over models drawn from A(x), for ε in three regimes."""

import _adult
import matplotlib.pyplot as plt
import numpy as np
from ranked_losses import averaged_ranked_loss

import deniable as dn

STABLE, BETWEEN = (-2.0, -1.0, 0.0, 5.0, 6.0), (1.0, 2.0, 2.5, 3.0, 3.5)  # log₁₀ ε; the text does not state its values


def make(reduced):
    X, y = _adult.adult(rows=2000 if reduced else None)
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.6), layout="constrained")
    ranks = np.unique(np.geomspace(1, len(y), 60).astype(int)) - 1
    top, exact, gap = {}, {}, 0.0
    for ax, exponents in zip(axes, (STABLE, BETWEEN), strict=False):
        for exponent in exponents:
            profile = dn.privacy_profile(
                X, y, regularization=1.0, tolerance=1e-2, mechanism=dn.OutputPerturbation(epsilon=10.0**exponent)
            )
            ranked = averaged_ranked_loss(profile, 100, seed=0) / profile.rate  # ranked for each model, then averaged
            ax.plot(1 + ranks, 1e5 * ranked[ranks], label=f"log₁₀ ε = {exponent:g}")
            worst = profile.ranking("typical")[0]
            top[exponent], exact[exponent] = ranked[0], profile.mean_size()[worst] / profile.rate
            models = _adult.draw_around(profile.optimum, profile.rate, 1000, np.random.default_rng(1))
            size = np.abs(_adult.sampled_losses(profile, 1.0, models, worst))
            gap = max(gap, abs(size.mean() - exact[exponent]) / (5 * size.std() / np.sqrt(1000) + 1e-3 * size.mean()))
            if exponent in (-1.0, 0.0, 1.0, 2.0):  # beyond the paper: each record's exact advantage, no sampling
                axes[2].plot(1 + ranks, np.sort(profile.advantage())[::-1][ranks], label=f"log₁₀ ε = {exponent:g}")
    for ax, title in zip(axes, ("(a) stable regimes", "(b) between them", "ours: exact advantage"), strict=True):
        ax.set(xscale="log", xlabel="rank", title=title, ylabel="10⁵ mean |l|/β" if ax is not axes[2] else "advantage")
        ax.legend(fontsize=7)
    return figure, {
        "change_between_the_two_lowest": float(top[-1.0] / top[-2.0] - 1),
        "change_between_the_two_highest": float(top[6.0] / top[5.0] - 1),
        "exact_high_over_low": float(exact[6.0] / exact[-2.0]),
        "top_high_over_low": float(top[6.0] / top[-2.0]),
        "sampled_minus_exact_in_five_errors": float(gap),
    }
