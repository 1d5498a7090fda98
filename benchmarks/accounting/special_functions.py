"""Largest errors of SciPy's special functions on the ranges that deniable uses, against mpmath: what has to be charged.

``python benchmarks/accounting/special_functions.py [points]`` prints one row a function: where it was measured, the
largest relative (or absolute, or per 1 + x²) error, and the argument at which it occurs. Seeded; minutes at 20,000.
"""

import sys
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
from scipy import special

mp.mp.dps = 50
EPS = float(np.finfo(np.float64).eps)


def phi(x: Any) -> Any:
    """Φ(x) in 50 digits."""
    return mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2


def relative(found: float, truth: Any) -> float:
    """Return |found − truth|/|truth|, 0 where both underflow."""
    if abs(truth) < mp.mpf(10) ** -290:
        return 0.0
    return float(abs(mp.mpf(float(found)) - truth) / abs(truth))


def row(name: str, where: str, arguments: np.ndarray, error: Callable[..., float]) -> None:
    """Print the largest error over all rows of arguments, in units of 2.2e-16."""
    worst, at = 0.0, arguments[0]
    for x in arguments:
        found = error(*np.atleast_1d(x))
        if not found <= worst:
            worst, at = found, x
    print(f"| {name} | {where} | {worst / EPS:.3g} | {np.array2string(np.atleast_1d(at), precision=6)} |", flush=True)


def binomial_below(k: float, n: int, p: float) -> Any:
    """P(Bin(n, p) ≤ k) by summing the smaller tail in 50 digits."""
    p = mp.mpf(p)

    def tail(start: int, step: int) -> Any:
        term = mp.exp(mp.loggamma(n + 1) - mp.loggamma(start + 1) - mp.loggamma(n - start + 1))
        term *= p**start * (1 - p) ** (n - start)
        total, j = mp.mpf(0), start
        while 0 <= j <= n and (term > total * mp.mpf(10) ** -40 or not total):
            total += term
            term *= (n - j) * p / ((j + 1) * (1 - p)) if step > 0 else j * (1 - p) / ((n - j + 1) * p)
            j += step
        return total

    if k >= n:
        return mp.mpf(1)
    return tail(int(k), -1) if k < n * p else 1 - tail(int(k) + 1, 1)


def inverse_beta_error(a: float, b: float, level: float) -> float:
    """Relative error of betaincinv, as the change of x that would put the level right."""
    x = float(special.betaincinv(a, b, level))
    if x in (0.0, 1.0):
        return 0.0
    below = 1 - binomial_below(a - 1, int(a + b - 1), x)  # P(Beta(a, b) ≤ x) = P(Bin(a + b − 1, x) ≥ a)
    log_density = (a - 1) * mp.log(x) + (b - 1) * mp.log(1 - mp.mpf(x)) - mp.log(mp.beta(a, b))
    return float(abs((below - mp.mpf(level)) / mp.exp(log_density)) / x)


def main(points: int) -> None:
    """Print the table."""
    rng = np.random.default_rng(20)
    print("| function | where | largest error / 2.2e-16 | at |\n|---|---|---|---|")
    wide = np.concatenate([rng.uniform(-37, 9, points), rng.normal(0, 2, points)])
    row("ndtr, relative/(1 + x²)", "−37 … 9", wide, lambda x: relative(special.ndtr(x), phi(x)) / (1 + x * x))
    row("ndtr, relative", "−5 … 9", wide[wide > -5], lambda x: relative(special.ndtr(x), phi(x)))
    row("log_ndtr, absolute/(1 + x²)", "−37 … 9", wide,
        lambda x: float(abs(mp.mpf(float(special.log_ndtr(x))) - mp.log(phi(x)))) / (1 + x * x))  # fmt: skip
    row("erfcx, relative", "−20 … 1e5", np.concatenate([rng.uniform(-20, 5, points), 10 ** rng.uniform(-3, 5, points)]),
        lambda x: relative(special.erfcx(x), mp.exp(mp.mpf(x) ** 2) * mp.erfc(x)))  # fmt: skip
    row(
        "erf, relative",
        "1e-12 … 6",
        10 ** rng.uniform(-12, 0.78, points),
        lambda x: relative(special.erf(x), mp.erf(x)),
    )
    levels = np.concatenate([10 ** rng.uniform(-300, -0.3, points), rng.uniform(0, 1, points)])

    def quantile(p: float) -> float:
        x = mp.mpf(float(special.ndtri(p)))
        return float(abs((phi(x) - mp.mpf(p)) / (mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)))) / (1 + abs(float(x)))

    row("ndtri, absolute/(1 + |z|)", "1e-300 … 1", levels, quantile)
    row("gammaln, relative", "1 … 1e7", 10 ** rng.uniform(0, 7, points),
        lambda x: relative(special.gammaln(x), mp.loggamma(x)))  # fmt: skip
    row("kve(0)/kve(1), relative", "1e-6 … 1e6", 10 ** rng.uniform(-6, 6, points // 10),
        lambda x: relative(special.kve(0, x) / special.kve(1, x), mp.besselk(0, x) / mp.besselk(1, x)))  # fmt: skip
    row("expit, relative", "−700 … 40", rng.uniform(-700, 40, points),
        lambda x: relative(special.expit(x), 1 / (1 + mp.exp(-mp.mpf(x)))))  # fmt: skip
    few = max(points // 5, 20)
    trials = np.ceil(10 ** rng.uniform(0.5, 5, few))
    hits = np.floor(trials * rng.uniform(0, 1, few) ** 2)
    tail = 10 ** rng.uniform(-9, -1, few)
    lower = np.stack([np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1, tail], axis=1)
    row("betaincinv (Clopper–Pearson low), relative", "n ≤ 1e5, 1e-9 … 0.1", lower, inverse_beta_error)
    upper = np.stack([np.minimum(hits, trials - 1) + 1, trials - np.minimum(hits, trials - 1), 1 - tail], axis=1)
    row("betaincinv (Clopper–Pearson high), relative", "n ≤ 1e5, 1 − 1e-9 … 0.9", upper, inverse_beta_error)
    shape = np.stack([np.ceil(10 ** rng.uniform(0, 3, few)), 10 ** rng.uniform(-9, -1, few)], axis=1)

    def chi(a: float, level: float) -> float:
        x = float(special.gammainccinv(a, level))
        found = mp.gammainc(mp.mpf(a), mp.mpf(x), mp.inf, regularized=True)
        density = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
        return float(abs((found - mp.mpf(level)) / density)) / x

    row("gammainccinv, relative", "d ≤ 1e3, 1e-9 … 0.1", shape, chi)
    for most, name in ((1e4, "n ≤ 1e4"), (1e7, "n ≤ 1e7")):
        n = np.ceil(10 ** rng.uniform(1, np.log10(most), few))
        p = 10 ** rng.uniform(-6, -0.31, few)
        k = np.clip(np.floor(n * p + rng.normal(0, 4, few) * np.sqrt(n * p)), 0, n - 1)
        at = np.stack([k, n, p], axis=1)
        row("bdtr, absolute", name, at, lambda k, n, p: float(abs(
            mp.mpf(float(special.bdtr(k, int(n), p))) - binomial_below(k, int(n), p))))  # fmt: skip
        row("bdtrc, relative", name, at, lambda k, n, p: relative(
            special.bdtrc(k, int(n), p), 1 - binomial_below(k, int(n), p)))  # fmt: skip
        row("betainc(k + 1, n − k, p) = P(K > k), relative", name, at, lambda k, n, p: relative(
            special.betainc(k + 1, n - k, p), 1 - binomial_below(k, int(n), p)))  # fmt: skip
        row("betaincc(k + 1, n − k, p) = P(K ≤ k), relative", name, at, lambda k, n, p: relative(
            special.betaincc(k + 1, n - k, p), binomial_below(k, int(n), p)))  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
