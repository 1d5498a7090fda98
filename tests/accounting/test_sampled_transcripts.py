"""The sampling bound of Mahloujifar et al. (Algorithm 1), corrected: curves against transcripts that are drawn.

Erratum E8: with η = log Q/P of the transcript drawn from P, the term is 1 − e^{min(η, 0)}; max(η, 0), as printed, makes
it ≤ 0. Erratum E9: Hoeffding's tail is 2·e^{−2mδ²}, about six times fewer samples than the printed e^{−mδ²/3}. The
Dvoretzky–Kiefer–Wolfowitz inequality has the same tail for all thresholds at once.
"""

import math

import numpy as np
import pytest

import deniable as dn

SIGMA, RATE, STEPS, SIZE = 1.0, 0.1, 40, 20_000
CURVE = dn.tradeoff(dn.SubsampledGaussian(SIGMA, RATE, STEPS))
RADIUS = math.sqrt(math.log(4 / 0.01) / (2 * SIZE))  # both samples, confidence 99 %


def losses(seed, member):
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((SIZE, STEPS)) + member * (rng.random((SIZE, STEPS)) < RATE) / SIGMA
    return np.log1p(RATE * np.expm1(u / SIGMA - 1 / (2 * SIGMA**2))).sum(axis=1)


def test_bands_contain_the_exact_curve():
    for seed in range(5):
        inside, out = losses(seed, True), losses(seed + 100, False)
        for level in np.linspace(-1, 1, 9):
            for guilty, direction in ((inside, "remove"), (-out, "add")):
                hockey_stick = -np.mean(np.expm1(np.minimum(level - guilty, 0.0)))
                assert hockey_stick - RADIUS <= CURVE.delta(level, direction)
                assert hockey_stick + RADIUS >= CURVE.delta(level, direction, side="lower")
        for threshold in np.quantile(out, [0.1, 0.5, 0.9, 0.99]):
            fpr, hit = np.mean(out > threshold), np.mean(inside > threshold)
            assert hit - RADIUS <= CURVE.tpr(min(fpr + RADIUS, 1.0))


def test_printed_algorithm_is_never_positive():
    """Erratum E8: with max(η, 0) in place of min(η, 0) the mean of 1 − e^η is at most 0."""
    eta = -losses(1, True)
    printed, corrected = (np.mean(1 - np.exp(end(eta, 0))) for end in (np.maximum, np.minimum))
    assert printed <= 0 < corrected
    assert corrected == pytest.approx(CURVE.advantage(), abs=RADIUS)


def test_hoeffding_needs_a_sixth_of_the_printed_samples():
    """Erratum E9: 2e^{−2mδ²} against 2e^{−mδ²/3}."""
    beta = 0.01 / 2
    assert 2 * math.exp(-2 * SIZE * RADIUS**2) == pytest.approx(beta)
    assert 2 * math.exp(-6 * SIZE * RADIUS**2 / 3) == pytest.approx(beta)
