"""A table like those of lenders: numbers and categories of mixed use, and a label that nothing predicts fully."""

import numpy as np


def credit_table(n=1000, seed=0):
    """Return (X, y): seven numbers, three categories as indicators, a label with noise."""
    rng = np.random.default_rng(seed)
    age = rng.integers(19, 75, n)
    amount = np.round(rng.lognormal(7.8, 0.8, n))
    months = rng.choice([6, 9, 12, 15, 18, 24, 30, 36, 48, 60], n)
    rate, held, loans, dependants = (rng.integers(1, top, n) for top in (5, 5, 4, 3))
    account, purpose, savings = rng.integers(0, 4, n), rng.integers(0, 8, n), rng.integers(0, 5, n)
    logit = 0.9 * (account - 1.5) - 0.025 * (months - 20) - 0.3 * np.log(amount / 2500) + 0.02 * (age - 35)
    y = (rng.random(n) < 1 / (1 + np.exp(-(logit + 0.3 * (savings - 2) + 0.7)))).astype(int)
    numbers = np.column_stack([age, amount, months, rate, held, loans, dependants]).astype(float)
    indicators = [np.eye(k)[c] for k, c in ((4, account), (8, purpose), (5, savings))]
    return np.hstack([numbers, *indicators]), y
