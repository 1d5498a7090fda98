"""The likelihood-ratio attack on a DP-SGD transcript, played out: no accounting, only sampling and counting.

Out world: T draws of N(0, σ²). In world: T draws of (1−q)·N(0, σ²) + q·N(1, σ²). The attack accuses when the log
likelihood ratio of the transcript exceeds a threshold. False positives of 1e-5 are too rare to count, so transcripts
are drawn with a larger rate of participation and every one is weighted by its true over its sampled density.
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Attack:
    """Measured rates of the attack at one threshold, with standard errors."""

    threshold: float
    fpr: float
    fpr_error: float
    tpr: float
    tpr_error: float


def transcripts(sigma, rate, steps, sampled_rate, count, rng):
    """Draw ``count`` transcripts at ``sampled_rate``; return log dP/dQ and log dS/dQ of each (S: the sampling law)."""
    log_in, log_sampled = np.zeros(count), np.zeros(count)
    for start in range(0, count, 200):
        part = slice(start, min(start + 200, count))
        shape = (part.stop - part.start, steps)
        x = sigma * rng.standard_normal(shape) + (rng.random(shape) < sampled_rate)
        w = np.expm1((2 * x - 1) / (2 * sigma**2))
        log_in[part] = np.log1p(rate * w).sum(axis=1)
        log_sampled[part] = np.log1p(sampled_rate * w).sum(axis=1)
    return log_in, log_sampled


def simulate(sigma, rate, steps, fpr, *, sampled_rate, count, rng):
    """Choose the threshold for ``fpr`` on one half of the transcripts, measure both rates on the other."""
    log_in, log_sampled = transcripts(sigma, rate, steps, sampled_rate, count, np.random.default_rng(rng))
    half = count // 2
    order = np.argsort(-log_in[:half])
    reached = np.cumsum(np.exp(-log_sampled[:half][order])) / half
    threshold = float(log_in[:half][order][np.searchsorted(reached, fpr)])
    accused = log_in[half:] > threshold
    false = np.where(accused, np.exp(-log_sampled[half:]), 0.0)
    true = np.where(accused, np.exp(log_in[half:] - log_sampled[half:]), 0.0)
    errors = [float(weights.std(ddof=1)) / math.sqrt(weights.size) for weights in (false, true)]
    return Attack(threshold, float(false.mean()), errors[0], float(true.mean()), errors[1])
