"""The Gaussian mechanism that a curve resembles most, and how far they are apart at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable._check import FloatArray
from deniable._floats import EPS
from deniable._search import bisect
from deniable._special import expit, ndtri
from deniable.curves.base import Tradeoff
from deniable.curves.closed import GaussianTradeoff

_LARGEST = 75.0  # μ: from here on no double tells the advantage from 1
_NODES = 401  # priors that are compared


@dataclass(frozen=True)
class GaussianFit:
    """The μ that fits best, and how much the accuracies of attackers differ at most: see :func:`gaussian_fit`.

    Attributes
    ----------
    mu
        The best-fitting μ. **It is a fit, not a bound**: attacks against the curve may beat those against ``mu``.
    regret
        At every prior the best attacker's accuracy differs by at most this much: an upper bound.
    least
        No μ at all has a regret below this one.

    Examples
    --------
    See ``gaussian_fit``.
    """

    mu: float
    regret: float
    least: float


def gaussian_fit(curve: Tradeoff) -> GaussianFit:
    """Return the μ of Gaussian DP that fits a curve best, and its regret, bounded on both sides.

    The regret is the largest difference, over all priors, of the accuracies of the best attackers against the curve
    and against N(0, 1) and N(μ, 1). It is the Δ-divergence of Kaissis et al. 2024 (arXiv:2406.08918), here of both
    curves from each other.

    **The fit is no bound.** Half of the time it errs on the unsafe side: some attack against the curve does better than
    all attacks against μ. What holds at every prior is ``accuracy(prior)`` of ``GaussianTradeoff(mu)`` *plus* the
    regret. A μ *above* the curve everywhere is another number; it is much larger or infinite where rare outputs tell
    much, as in DP-SGD. For one number that bounds attacks take ``advantage()``, ``tpr(fpr)`` or ``epsilon(delta)``.

    Parameters
    ----------
    curve
        What the fit is of. The truth lies between its two sides; where the lower one knows nothing, regrets are large.

    Returns
    -------
    GaussianFit
        ``mu``, at most 75 (beyond 14 only the last digits differ), its ``regret``, and the ``least`` regret of any μ.

    Notes
    -----
    With γ = (1 − π)/π the accuracy at prior π is A(π) = π·H_γ + 1 − π, a supremum of lines and hence convex. Between
    two priors it lies below its chord, by at most a quarter of their distance times the growth of its slope; slopes at
    both ends lie between those of the chords beside. So differences at the priors, with that quarter, bound the regret
    from above, and alone from below. A of N(μ, 1) grows with μ: a smaller μ lies below the curve by at least as much as
    this one, a larger one above it by at least as much, so that no regret is below the smaller of both. ∎

    Examples
    --------
    >>> import deniable as dn
    >>> fit = dn.curves.gaussian_fit(dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 5000)))
    >>> print(f"mu {fit.mu:.4f}, regret between {fit.least:.6f} and {fit.regret:.6f}")
    mu 0.9099, regret between 0.001151 and 0.001196
    """
    scale = float(np.clip(2 * ndtri(0.5 + curve.advantage() / 2), EPS, _LARGEST))
    logits = scale * np.sinh(np.linspace(-1, 1, _NODES) * np.arcsinh(36 / scale))
    x = np.concatenate([[-1.0, 0.0], np.unique(expit(logits)), [1.0, 2.0]])
    low, high = _accuracies(curve, x)

    def too_small(mu: FloatArray) -> bool:
        least, most = _accuracies(GaussianTradeoff(float(mu)), x)
        return bool((high - least).max() > (most - low).max())

    mu = float(bisect(too_small, 0.0, _LARGEST, relative=1e-9, halvings=60)[1])
    least, most = _accuracies(GaussianTradeoff(mu), x)
    regret = max(_largest(x, high, least, most), _largest(x, most, low, high)) + 16 * EPS
    return GaussianFit(mu, min(regret, 0.5), max(float(min((low - most).max(), (least - high).max())), 0.0))


def _accuracies(curve: Tradeoff, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both bounds on A, moved outward by roundings; beyond 0 and 1 it goes on as 1 − π and π, still convex."""
    sides = curve.accuracy(x[2:-2], "lower") - 4 * EPS, curve.accuracy(x[2:-2]) + 4 * EPS
    low, high = (np.concatenate([[2.0, 1.0], side, [1.0, 2.0]]) for side in sides)
    return low, high


def _largest(x: FloatArray, above: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """A bound on the largest A − B: A is at most ``above`` at priors ``x``, B between ``low`` and ``high``."""
    width, ends = np.diff(x), np.maximum.reduce([(above - low)[1:-2], (above - low)[2:-1]])
    bend = (high[3:] - low[2:-1]) / width[2:] - (low[1:-2] - high[:-3]) / width[:-2]
    return float((ends + width[1:-1] / 4 * bend * (1 + 8 * EPS)).max())
