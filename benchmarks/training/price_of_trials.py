"""What choosing the best of k trials costs: composing all of them, or trying a random number (Papernot & Steinke).

python benchmarks/training/price_of_trials.py

For each target the Gaussian DP parameter μ that a single trial may have. Composition: μ/√k, exactly. Papernot & Steinke
(arXiv:2110.03620, Theorems 2 and 6): Rényi divergences of "repeat K times, keep the best", K with mean k, Poisson,
geometric, logarithmic or negative binomial with η = −½; then the ROC curve that all orders and both directions allow.
Their bound does not grow with √k, but at targets for which membership stays hidden its constants weigh more.
"""

import numpy as np
from harness import ADVANTAGES, gdp
from scipy.optimize import brentq
from scipy.stats import norm

ORDERS = 1 + np.logspace(-2, 3, 120)
RATES = np.linspace(1e-3, 1 - 1e-3, 600)


def advantage(divergence) -> float:
    """Largest TPR − FPR that Rényi divergences of all orders, in both directions, leave possible."""
    best = np.ones_like(RATES)
    for order in ORDERS:
        limit = (order - 1) * divergence(order)
        low, high = RATES.copy(), np.ones_like(RATES)
        for _ in range(40):
            y = (low + high) / 2
            p, q, one_p, one_q = np.log(y), np.log(RATES), np.log1p(-y), np.log1p(-RATES)
            possible = np.logaddexp(order * p + (1 - order) * q, order * one_p + (1 - order) * one_q) <= limit
            possible &= np.logaddexp(order * q + (1 - order) * p, order * one_q + (1 - order) * one_p) <= limit
            low, high = np.where(possible, y, low), np.where(possible, high, y)
        best = np.minimum(best, high)
    return float(np.max(best - RATES))


def poisson(mu: float, k: int):
    def divergence(order: float) -> float:
        epsilon = np.log1p(1 / (order - 1))
        delta = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return order * mu**2 / 2 + k * delta + np.log(k) / (order - 1)

    return divergence


def negative_binomial(mu: float, k: int, eta: float):
    if eta == 1:
        gamma = 1 / k
    elif eta == 0:
        gamma = brentq(lambda g: (1 / g - 1) / np.log(1 / g) - k, 1e-9, 1 - 1e-9)
    else:
        gamma = brentq(lambda g: eta * (1 - g) / (g * (1 - g**eta)) - k, 1e-9, 1 - 1e-9)
    other = 1 + np.logspace(-3, 3, 400)
    extra = np.min((1 + eta) * ((1 - 1 / other) * other * mu**2 / 2 + np.log(1 / gamma) / other))
    return lambda order: order * mu**2 / 2 + extra + np.log(k) / (order - 1)


def main() -> None:
    ways = {
        "Poisson": poisson,
        "geometric": lambda mu, k: negative_binomial(mu, k, 1),
        "logarithmic": lambda mu, k: negative_binomial(mu, k, 0),
        "η = −½": lambda mu, k: negative_binomial(mu, k, -0.5),
    }
    print("| advantage | trials | composition | " + " | ".join(ways) + " |\n|" + "---|" * (3 + len(ways)))
    for target in ADVANTAGES:
        whole = gdp(target)
        for k in (2, 3, 8, 16):
            found = [
                brentq(lambda mu, way=way, k=k, goal=target: advantage(way(mu, k)) - goal, 1e-3, whole, xtol=1e-3)
                for way in ways.values()
            ]
            print(f"| {target} | {k} | {whole / np.sqrt(k):.3f} | " + " | ".join(f"{mu:.3f}" for mu in found) + " |")


if __name__ == "__main__":
    main()
