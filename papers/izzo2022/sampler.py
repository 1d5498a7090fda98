"""Izzo et al., Corollary 10 as printed, against the dimension: its promise fails (erratum E3), and by how much.

Two records ±(1, …, 1), one of them trains and is released, M = 6, η = 0.1: no attack may be right more often than 0.6.
The radius is drawn from a Laplace law where the density that the proof needs has a Gamma(d) radius. Two attacks: the
sign of the sum of the coordinates, and the optimal one (Proposition 2). Ours, at the same η: Gaussian and norm-Laplace.
"""

import matplotlib.pyplot as plt
import numpy as np
from optimal_attack import exact_membership
from published import PublishedNoise, published_scale
from scipy.special import ndtri

from deniable.noise import GaussianNoise, NormLaplaceNoise

ETA, MOMENT = 0.1, 6


def laws(d):
    """The noise of each method for σᵢ = 1, outputs 2√d apart."""
    distance, ones = 2 * np.sqrt(d), np.ones(d)
    return {
        "published": PublishedNoise(published_scale(ETA, MOMENT), ones, MOMENT),
        "ours, Gaussian": GaussianNoise(distance / (2 * ndtri(0.5 + ETA)), ones),  # ½TV = Φ(ρ/2) − ½
        "ours, norm-Laplace": NormLaplaceNoise(least_scale(d, distance), ones),
    }


def least_scale(d, distance):
    """The least scale of norm-Laplace noise whose exact law has ½TV ≤ η; that of the worst ρ-DP pair always has."""
    tried = distance / (2 * np.arctanh(2 * ETA)) / np.geomspace(1, 1000, 20_000)  # falling
    fine = NormLaplaceNoise(1.0, np.ones(d)).leakage(0.0, distance / tried) <= 2 * ETA
    return float(tried[fine].min())


def sign_of_sum(law, releases, rng):
    """Accuracy of naming the record by the sign of Σ coordinates; by symmetry the record is +1."""
    right = done = 0
    while done < releases:
        size = min(releases - done, max(1, 2_000_000 // law.dimension))
        right += int(np.sum(np.sum(1 + law.sample(size, rng), axis=1) > 0))
        done += size
    return right / releases


def optimal(law, releases, rng):
    """Accuracy of the best attack, from the two exact densities; averaged over simulated releases for d > 2."""
    records = np.array([np.ones(law.dimension), -np.ones(law.dimension)])
    return 0.5 + exact_membership(lambda part: part[0], records, law, k=1, n_samples=releases, rng=rng).worst / 2


def make(reduced):
    dimensions = (1, 10, 100, 1000) if reduced else (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
    releases, rng = (2_000, 500) if reduced else (10_000, 2_000), np.random.default_rng(3)
    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    numbers = {}
    for name, style in zip(laws(1), ("o-", "s--", "^-."), strict=True):
        simple = [sign_of_sum(laws(d)[name], releases[0], rng) for d in dimensions]
        best = [optimal(laws(d)[name], releases[1], rng) for d in dimensions]
        line = ax.semilogx(dimensions, simple, style, label=f"{name}: sign of the sum")[0]
        ax.semilogx(dimensions, best, style[1:], color=line.get_color(), lw=0.7, label=f"{name}: optimal attack")
        key = name.replace("ours, ", "").lower().replace("-", "_")
        if name == "published":
            numbers["published_at_1"] = simple[0]
            numbers |= {f"published_at_{d}": a for d, a in zip(dimensions, simple, strict=True) if d >= 1000}
            numbers["published_optimal_at_1000"] = best[dimensions.index(1000)]
        else:
            numbers[f"{key}_highest_sign_of_sum"] = max(simple)
            numbers[f"{key}_certified"] = max(
                0.5 + float(law.leakage(0.0, law.distance(np.ones(d), -np.ones(d)))) / 2
                for d, law in ((d, laws(d)[name]) for d in dimensions)
            )
    ax.axhline(0.5 + ETA, color="k", lw=0.8, ls=":", label="promised: 0.6")
    ax.set(xlabel="dimension d", ylabel="attack accuracy", title="Published sampler, M = 6, η = 0.1")
    ax.legend(fontsize=7)
    return figure, {name: value for name, value in numbers.items() if name not in ("published_at_3000",)}
