"""Izzo et al., Figure 2: relative error of a private covariance against η, n = 500,000, d = 3, 10 runs, three zooms.

Raw: gradient descent on half of the data. DP-SGD: full batches, clipped at the median gradient norm, with the exact η
of its Gaussian noise; fig2_baseline.py says why the paper's lies above. Published: Corollary 10 with σ from 128 halves.
Ours: release(), centre and swap bound. Bands are standard errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from published import PublishedNoise, published_scale
from sklearn.datasets import make_spd_matrix

import deniable as dn
from deniable.releases import SecondMoment

STEPS, LEARNING_RATE, MOMENTS, SPLITS = 25, 0.2, (2, 4, 6), 128


def descend(x, clip, noise, rng):
    """Full-batch descent on the mean of ‖A − xxᵀ‖², gradients clipped at ``clip``; return A and all gradient norms."""
    a, norms, fourth = np.zeros((3, 3)), [], np.sum(x**2, axis=1) ** 2
    for _ in range(STEPS):
        squared = np.sum(a**2) - np.sum((x @ (a + a.T)) * x, axis=1) + fourth
        norms.append(2 * np.sqrt(np.maximum(squared, 0.0)))
        weight = np.minimum(1.0, clip / np.maximum(norms[-1], 1e-300))
        gradient = 2 * (a * weight.mean() - (x * weight[:, None]).T @ x / len(x))
        a = a - LEARNING_RATE * (gradient + noise * rng.standard_normal((3, 3)))
    return a, norms


def one_run(run, etas, n, resamples):
    """Relative errors of every method on fresh data: name → one number for each η."""
    rng = np.random.default_rng(run)
    sigma = make_spd_matrix(3, random_state=run)
    data = rng.standard_normal((n, 3)) @ np.linalg.cholesky(sigma).T

    def error(a):
        return float(np.linalg.norm(a - sigma) / np.linalg.norm(sigma))

    halves = np.array([SecondMoment()(data[rng.permutation(n)[: n // 2]]).ravel() for _ in range(SPLITS)])
    train = data[rng.permutation(n)[: n // 2]]
    raw, norms = descend(train, np.inf, 0.0, rng)
    clip = float(np.median(norms))
    found = {"raw": [error(raw)] * len(etas)}
    # replacing a record moves each clipped sum by up to 2·clip: T steps of noise s·clip are Gaussian DP of 2√T/s
    mu = np.array([dn.calibrate(dn.GaussianDP, bracket=(1e-4, 20.0), advantage=2 * eta) for eta in etas])
    for name, divisor in (("DP-SGD", len(train)), ("DP-SGD, noise not divided by n", 1)):
        noise = 2 * np.sqrt(STEPS) / mu * clip / divisor
        found[name] = [error(descend(train, clip, s, rng)[0]) for s in noise]
    for m in MOMENTS:
        spread = np.mean(np.abs(halves - halves.mean(axis=0)) ** m, axis=0) ** (1 / m)
        law = PublishedNoise(1.0, spread, m)
        scales = published_scale(etas, m)
        found[f"published, M = {m}"] = [error(raw + s * law.sample(1, rng).reshape(3, 3)) for s in scales]
    for bound in ("centre", "swap"):
        options = {"bound": bound, "n_resamples": resamples, "rng": run}
        ours = (dn.release(SecondMoment(), data, advantage=2 * e, **options) for e in etas)
        found[f"ours, {bound}"] = [error(r.value) for r in ours]
    return found


def make(reduced):
    etas = np.array([0.01, 0.1, 0.2, 0.45]) if reduced else np.array([0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45])
    n = 500 if reduced else 500_000
    runs = [one_run(run, etas, n, 512) for run in range(2 if reduced else 10)]
    (figure, axes), mean, doubt = plt.subplots(1, 3, figsize=(13.0, 4.4), layout="constrained"), {}, {}
    for name in runs[0]:
        errors = np.array([run[name] for run in runs])
        mean[name], doubt[name] = errors.mean(axis=0), errors.std(axis=0, ddof=1) / np.sqrt(len(runs))
        ours, band = "ours" in name, (mean[name] - doubt[name], mean[name] + doubt[name])
        for ax in axes:
            line = ax.plot(etas, mean[name], "-" if ours else "--", lw=1 + ours, label=name)[0]
            ax.fill_between(etas, *band, color=line.get_color(), alpha=0.2, lw=0)
    titles = (f"Private covariance, n = {n:,}, d = 3", "small η (M = 2 is far above)", "η ≥ 0.1")
    for ax, title, ends, top in zip(axes, titles, ((0.01, 0.45), (0.01, 0.1), (0.1, 0.45)), (1e4, 60, 2), strict=True):
        ax.axhline(1, color="grey", lw=0.6)
        ax.set(xlabel="η", xlim=ends, ylim=(1e-3 if top > 60 else 0, top), title=title)
    axes[0].set(xscale="log", yscale="log", ylabel="relative error ‖A − Σ‖ / ‖Σ‖")
    axes[0].legend(fontsize=6)
    at = {0.01: 0, 0.2: list(etas).index(0.2)}
    return figure, {
        "raw": mean["raw"][0],
        **{f"published_m{m}_at_{e}": mean[f"published, M = {m}"][i] for m in MOMENTS for e, i in at.items()},
        "dp_sgd_at_0.2": mean["DP-SGD"][at[0.2]],
        "undivided_dp_sgd_least": float(mean["DP-SGD, noise not divided by n"].min()),
        **{f"ours_{b}_at_{e}": mean[f"ours, {b}"][i] for b in ("centre", "swap") for e, i in at.items()},
        "ours_swap_over_raw_at_0.01": mean["ours, swap"][0] / mean["raw"][0],
        **{f"error_of_ours_centre_at_{e}": doubt["ours, centre"][i] for e, i in at.items()},
    }
