"""The clip of a regression's residuals, chosen anew once the descent has explained what it can: a noisy histogram.

A clip adds noise in proportion to its width, and biases predictions by what it cuts off on one side more than on the
other. Before the fit a long tail of the target cannot be told from what the columns explain; residuals show it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from deniable._check import FloatArray
from deniable.noise import CLEAR, Queries
from deniable.training.looks import INFORMATIVE
from deniable.training.losses import EXACT, RESIDUAL, ClippedLoss

CLIP_SHARE = 0.005  # of μ²: how large the residuals are
_CLIPS = 2.0 ** (np.arange(-4, 9) / 2)  # what is tried, in spreads of the target
WIDEST = float(2 * _CLIPS[-1])  # a residual beyond is taken to be this large
_WITHIN = 0.7  # of the residuals must not be clipped
_FELT = 1.6  # error of predictions by noise, over clip/μ·√(columns/n)·reach^¾ (measured on seven tables)


def tells(look: Queries, n: float) -> bool:
    """Return whether the records are many enough for a histogram of residuals."""
    return n * look.ledger.mu * math.sqrt(CLIP_SHARE) >= INFORMATIVE


def reclip(look: Queries, loss: ClippedLoss, residuals: FloatArray, n: float, mu: float, columns: int) -> ClippedLoss:
    """Pay for a histogram of the residuals, clipped at :data:`WIDEST`, and return the loss with the best clip.

    ``residuals`` are on the lattice, unweighted; ``mu`` is the budget of the steps.
    """
    price = look.ledger.mu * math.sqrt(CLIP_SHARE)
    edges = _CLIPS[::2]  # octaves: what is counted in finer cells is lost in noise
    cells = np.searchsorted(edges, np.abs(residuals) / RESIDUAL, side="right") + (edges.size + 1) * (residuals < 0)
    rows = np.arange(residuals.size)
    counts = look.histogram("residuals", "how large the residuals are", price, rows, cells, 2 * edges.size + 2)
    shares = np.where(counts > CLEAR / price, counts, 0.0).reshape(2, -1) / n
    middles = np.sqrt(np.append(edges[0] / 4, edges) * np.append(edges, WIDEST))
    bias = np.abs((shares[0] - shares[1]) @ np.maximum(middles[:, None] - _CLIPS, 0.0))
    first = loss.first or loss.clip
    reach = [replace(loss, clip=clip, first=first).bend for clip in _CLIPS.tolist()]
    paths = np.array([min(bend.travel * mu, bend.reach) for bend in reach])
    felt = _FELT * _CLIPS / mu * math.sqrt(columns / n) * paths**0.75
    below = np.cumsum(shares.sum(axis=0))[:-1] / max(float(shares.sum()), 1e-9)
    within = np.interp(np.arange(_CLIPS.size) / 2, np.arange(edges.size), below)
    exact = _CLIPS * (2 * n * look.units.heaviest * RESIDUAL) < EXACT
    cost = np.where((within >= _WITHIN) & exact, np.square(bias) + np.square(felt), np.inf)
    best = float(_CLIPS[np.argmin(cost)]) if np.isfinite(cost).any() else loss.clip
    return replace(loss, clip=best, first=first)
