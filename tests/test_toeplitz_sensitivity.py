"""Sensitivities of falling Toeplitz strategies, against every pattern of participation and at great lengths."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import deniable as dn
from deniable.mechanisms import toeplitz_sensitivity


def largest(coefficients: np.ndarray, participations: int, separation: int) -> float:
    """The largest norm over all patterns with all signs: contributions of one dimension."""
    n = coefficients.size
    strategy = np.array([[coefficients[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
    best = 0.0
    for count in range(1, participations + 1):
        for steps in itertools.combinations(range(n), count):
            if all(b - a >= separation for a, b in itertools.pairwise(steps)):
                for signs in itertools.product((-1.0, 1.0), repeat=count - 1):
                    best = max(best, float(np.linalg.norm(strategy[:, steps] @ np.array([1.0, *signs]))))
    return best


def inverse_of_the_banded_root(steps: int, bands: int) -> np.ndarray:
    """BISR: the inverse of the first ``bands`` coefficients of √(1 − x)."""
    root = np.cumprod([1.0, *((j - 1.5) / j for j in range(1, bands))])
    found = [1.0]
    for t in range(1, steps):
        found.append(-sum(root[j] * found[t - j] for j in range(1, min(bands, t + 1))))
    return np.array(found)


STRATEGIES = {
    "identity": np.eye(1, 8)[0],
    "prefix sums": np.ones(7),
    "DP-λCGD": 0.8 ** np.arange(9),
    "BISR": inverse_of_the_banded_root(9, 4),
    "BLT": np.array([1.0, *(0.4 * 0.9**t + 0.3 * 0.5**t for t in range(8))]),
}


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize(("participations", "separation"), [(1, 1), (2, 1), (3, 2), (4, 3), (2, 20)])
def test_it_is_that_of_the_worst_pattern(name: str, participations: int, separation: int) -> None:
    coefficients = STRATEGIES[name]
    found, truth = (of(coefficients, participations, separation) for of in (toeplitz_sensitivity, largest))
    assert truth * (1 - 1e-13) <= found <= truth * (1 + 1e-13)


def test_it_holds_at_any_length() -> None:
    """Geometric series: of DP-λCGD whose participations are so far apart that nothing overlaps."""
    found = toeplitz_sensitivity(0.9 ** np.arange(100_000), participations=10, separation=10_000)
    assert found == pytest.approx(math.sqrt(10 / (1 - 0.81)), rel=1e-13)
    assert found >= math.sqrt(10 / (1 - 0.81)) * (1 - 1e-15)


def test_mechanisms_agree_with_the_strategy_itself() -> None:
    coefficients = STRATEGIES["BLT"]
    strategy = np.array([[coefficients[i - j] if i >= j else 0.0 for j in range(9)] for i in range(9)])
    whole = dn.tradeoff(dn.MatrixMechanism(3.0, strategy, participations=3, separation=3)).advantage()
    given = dn.tradeoff(dn.MatrixMechanism(3.0, sensitivity=toeplitz_sensitivity(coefficients, 3, 3))).advantage()
    assert given == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("wrong", [[1.0, -0.5], [1.0, 0.5, 0.6], [], [[1.0, 0.5]], [1.0, math.nan], [math.inf, 1.0]])
def test_others_are_refused(wrong: list[float]) -> None:
    with pytest.raises(dn.InputError, match="coefficients"):
        toeplitz_sensitivity(wrong, 2)
