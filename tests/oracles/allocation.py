"""Random allocation by quadrature over two or three batches: shares nothing with the certified engine.

S = (Y₁ + … + Y_t)/t with log-normal Y of mean 1. E(S − γ)₊ over the last batch is Black and Scholes' formula, and the
others are integrated by Gauss–Legendre panels.
"""

import math

import numpy as np
from scipy.special import ndtr

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _panels(low: float, high: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    edges = np.linspace(low, high, count + 1)
    half = np.diff(edges) / 2
    u = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    return u.ravel(), (half[:, None] * _WEIGHTS).ravel() * np.exp(-(u.ravel() ** 2) / 2) / math.sqrt(2 * math.pi)


def _term(u: np.ndarray, sigma: float) -> np.ndarray:
    return np.exp(u / sigma - 1 / (2 * sigma**2))


def _call(strike: np.ndarray, sigma: float) -> np.ndarray:
    """E(Y − k)₊."""
    safe = np.where(strike > 0, strike, 1.0)
    u = sigma * np.log(safe) + 1 / (2 * sigma)
    return np.where(strike > 0, ndtr(1 / sigma - u) - safe * ndtr(-u), 1 - strike)


def _calls(strike: np.ndarray, sigma: float, terms: int) -> np.ndarray:
    """E(Y₁ + … + Y_terms − k)₊: above k the first term alone decides; below, panels close in on it."""
    if terms == 1:
        return _call(strike, sigma)
    k = np.where(strike > 0, strike, 1.0)
    end = sigma * np.log(k) + 1 / (2 * sigma)
    lengths = np.concatenate([0.75 ** np.arange(40), [0.75**40 * 3]]) * (end + 13.0)[..., None] / 4
    right = end[..., None] - np.concatenate([np.zeros_like(end)[..., None], np.cumsum(lengths[..., ::-1], -1)], -1)
    half = (right[..., :-1] - right[..., 1:]) / 2
    u = (right[..., 1:] + half)[..., None] + half[..., None] * _NODES
    weight = half[..., None] * _WEIGHTS * np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    inside = np.sum(weight * _calls(k[..., None, None] - _term(u, sigma), sigma, terms - 1), axis=(-1, -2))
    return np.where(strike > 0, inside + _call(k, sigma) + (terms - 1) * ndtr(-end), terms - strike)


def hockey_stick(sigma: float, batches: int, gamma: float) -> float:
    """H_γ(P‖Q) of one epoch with 2 or 3 batches."""
    return float(_calls(np.array(batches * gamma), sigma, batches)) / batches


def with_gaussian(sigma: float, mu: float, gamma: float) -> float:
    """H_γ of two batches composed with N(0, 1) against N(μ, 1)."""
    u, weight = _panels(-12.0, 12.0 + 1 / sigma, 40)
    y = _term(u, sigma)
    ratio = (y[:, None] + y[None, :]) / 2
    level = (math.log(gamma) - np.log(ratio)) / mu + mu / 2  # x above which ratio·e^{μx − μ²/2} > γ
    return float(weight @ (ratio * ndtr(mu - level) - gamma * ndtr(-level)) @ weight)


def two_of_three(sigma: float, gamma: float) -> float:
    """H_γ of one epoch in which a record enters two of three batches; accurate to about 1e-6."""
    u, weight = _panels(-9.0, 9.0 + 1 / sigma, 20)
    y = _term(u, sigma)
    total, product = y[:, None] + y[None, :], y[:, None] * y[None, :]
    # (y₁y₂ + y₃·(y₁ + y₂))/3 > γ: a call on y₃ at (3γ − y₁y₂)/(y₁ + y₂)
    return float(weight @ (total / 3 * _call((3 * gamma - product) / total, sigma)) @ weight)
