"""The transform of one subsampled Gaussian step by brute force: as many real nodes as double precision can use."""

from __future__ import annotations

import math

import numpy as np

from deniable.accounting.ratios import log_ratio


def transform(sigma: float, rate: float, c: float, t: float, most: int = 3_000_000) -> tuple[float, complex] | None:
    """log M(c) and M(c + it)/M(c); None where more than ``most`` nodes would be needed."""

    def loss(u):
        return log_ratio(u, np.float64(sigma), np.float64(rate))

    coarse = np.linspace(-45 - min(abs(c) * rate / sigma, 400), 45 + max(c, 0) / sigma, 20_001)
    weight = c * loss(coarse) - coarse**2 / 2
    kept = coarse[weight > weight.max() - 75]
    low, high = kept[0] - 0.05, kept[-1] + 0.05
    odds = rate / (1 - rate) * math.exp(min(high / sigma - 1 / (2 * sigma**2), 600))
    fastest = t / sigma * odds / (1 + odds)  # the largest slope of t·L
    spacing = min(0.02 * sigma, 0.02, 2 * math.pi / (100 / sigma + 1.6 * fastest))
    if (high - low) / spacing > most:
        return None
    u = low + spacing * np.arange(int((high - low) / spacing) + 2)
    logs = loss(u)
    weight = c * logs - u**2 / 2
    top = weight.argmax()
    sizes = np.exp(weight - weight[top])
    log_mgf = math.log(sizes.sum() * spacing / math.sqrt(2 * math.pi)) + weight[top]
    turned = np.exp(1j * t * (logs - logs[top])) @ sizes / sizes.sum()
    return log_mgf, complex(turned * np.exp(1j * t * logs[top]))
