"""Izzo et al., §6, future work: the optimal adversary of Proposition 2 as a regulariser, on small data. Does it help?

A(S) = mean of S clipped to [−c, c], plus Gaussian noise. Plain: no clipping, the noise alone buys η. Regularised: c and
the noise minimise squared error + w·η, η being what the optimal adversary gains, summed over all subsets. The clip is
taken from *other* samples of the same law: one chosen on the data themselves would be a look that η does not count.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from optimal_attack import exact_membership

from deniable.noise import GaussianNoise

CLIPS = np.array([0.25, 0.5, 1.0, 2.0, 4.0, np.inf])
TARGETS = np.array([0.05, 0.1, 0.2])


def clipped_mean(c):
    return lambda part: np.clip(part, -c, c).mean()


def least_noise(data, c, scales):
    """Smallest scale of the grid at which the optimal adversary gains at most each target, and the error then."""
    spread = np.ptp(np.clip(data, -c, c)) / len(data) * 2  # the farthest that one record moves the mean of half
    k, f = len(data) // 2, clipped_mean(c)
    noise = np.zeros(len(TARGETS))  # enough for what does not depend on the data
    if spread > 0:
        laws = [GaussianNoise(s * spread, np.ones(1)) for s in scales]
        etas = np.array([exact_membership(f, data, law, tolerance=1e-4).worst / 2 for law in laws])
        noise = np.array([scales[np.flatnonzero(etas <= t)[0]] * spread for t in TARGETS])
    parts = np.array([f(data[list(rows)]) for rows in itertools.combinations(range(len(data)), k)])
    return noise**2 + np.mean((parts - data.mean()) ** 2)  # against the mean of all records, which is what is asked for


def one_law(draw, samples, n, scales):
    """Squared errors (samples, clips, targets), in units of the variance of the mean of half."""
    found = []
    for run in range(samples):
        data = draw(np.random.default_rng(run), n)
        found.append(np.array([least_noise(data, c, scales) for c in CLIPS]) / (np.var(data) / n))
    return np.array(found)


def make(reduced):
    n, samples = (6, 2) if reduced else (8, 10)
    scales = np.geomspace(0.4, 6.0, 8 if reduced else 16)
    laws = {  # around a mean that is itself drawn: clipping at 0 is not given the answer
        "normal": lambda rng, m: rng.standard_normal() + rng.standard_normal(m),
        "Student, 2 degrees": lambda rng, m: rng.standard_normal() + rng.standard_t(2, m),
    }
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), sharey=True, layout="constrained")
    numbers = {}
    for ax, (name, draw) in zip(axes, laws.items(), strict=True):
        error = one_law(draw, samples, n, scales)
        chosen = np.empty((samples, len(TARGETS)))
        for i in range(samples):
            others = np.median(np.delete(error, i, axis=0), axis=0)
            chosen[i] = error[i, np.argmin(others, axis=0), np.arange(len(TARGETS))]
        plain = error[:, -1]
        ax.loglog(TARGETS, np.median(plain, axis=0), "o--", label="noise alone")
        ax.loglog(TARGETS, np.median(chosen, axis=0), "o-", label="clip from other samples")
        ax.loglog(TARGETS, np.median(error.min(axis=1), axis=0), "o:", label="best clip of this sample (not counted)")
        ax.set(xlabel="η of the optimal adversary", title=name)
        ax.legend(fontsize=7)
        short = name.split(",")[0].lower()
        for place, target in enumerate(TARGETS):
            numbers[f"{short}_error_over_plain_at_{target:g}"] = float(np.median(chosen[:, place] / plain[:, place]))
    axes[0].set(ylabel="squared error / variance of the mean")
    return figure, numbers
