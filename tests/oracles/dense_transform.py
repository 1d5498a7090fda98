"""The transform of one subsampled Gaussian step by brute force: as many real nodes as double precision can use."""

import math

import numpy as np


def transform(sigma: float, rate: float, c: float, t: float, most: int = 3_000_000) -> tuple[float, complex] | None:
    """log M(c) and M(c + it)/M(c); None if ``most`` nodes are not enough."""

    def loss(u):  # log(1 − q + q·e^a), written for small a and for large
        a = u / sigma - 1 / (2 * sigma**2)
        small, large = np.minimum(a, 30.0), np.maximum(a, 30.0)
        far = large + math.log(rate) + np.log1p((1 - rate) / rate * np.exp(-large))
        return np.where(a < 30, np.log1p(rate * np.expm1(small)), far)

    def log_size(u):
        return c * loss(u) - u**2 / 2

    last = 45 + max(c, 0) / sigma
    coarse = np.linspace(-45 - min(abs(c) * rate / sigma, 400), last, 20_001)
    weight = log_size(coarse)
    kept = coarse[weight > weight.max() - 75]
    low, high = kept[0] - 0.05, kept[-1] + 0.05
    odds = rate / (1 - rate) * math.exp(min(high / sigma - 1 / (2 * sigma**2), 600))
    fastest = t / sigma * odds / (1 + odds)  # the largest slope of t·L
    spacing = min(0.02 * sigma, 0.02, 2 * math.pi / (100 / sigma + 1.6 * fastest))
    if (high - low) / spacing > most:
        return None
    u = low + spacing * np.arange(int((high - low) / spacing) + 2)
    u = u[u <= last]
    logs, weight = loss(u), log_size(u)
    top = weight.argmax()
    sizes = np.exp(weight - weight[top])
    log_mgf = math.log(sizes.sum() * spacing / math.sqrt(2 * math.pi)) + weight[top]
    turned = np.exp(1j * t * (logs - logs[top])) @ sizes / sizes.sum()
    return log_mgf, complex(turned * np.exp(1j * t * logs[top]))
