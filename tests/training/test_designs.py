"""Two designs of the same records: the same sums to the last bit, scores apart by rounding only, order is nothing."""

import numpy as np
import pytest

from deniable.training import losses
from deniable.training.descent import Coded, Descent, Lattice
from deniable.training.design import Basis, DenseDesign, SharedDesign, design_of
from deniable.training.encoders import Levels, Listed, Thermometer
from deniable.training.losses import RESIDUAL, SCORE, ClippedLogistic, ClippedLoss, ClippedSoftmax

ENCODERS = (
    Thermometer("a", np.array([0.5]), 0.0, 1.0, 0.8),
    Levels("b", -1.0, 1.0),
    Listed("c", ("False", "True")),
    Listed("d", ("x", "y", "z")),
)


def records(seed, n):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, encoder.size, n).astype(np.uint16) for encoder in ENCODERS]
    masses = [np.append(np.full(e.size - 1, 1 / (e.size - 1)), np.nan) for e in ENCODERS]
    return [*codes, np.zeros(n, dtype=np.uint16)], Basis.of(ENCODERS, masses), rng


def designs(codes, basis, n, heaviest=1):
    dense = DenseDesign(iter(codes), basis, n, heaviest)
    return [dense, SharedDesign(iter(codes), basis, n)]


def passes(design, weights, residuals, outputs=3):
    """Scores of all records, and the sum of residuals times rows."""
    prepared, sums, scores = design.prepare(weights), design.empty(outputs), []
    for rows in design.chunks():
        scores.append(np.stack(design.scores(prepared, rows)))
        design.add(sums, [r[rows] for r in residuals], rows)
    return np.concatenate(scores, axis=1), design.total(sums)


@pytest.mark.parametrize("heaviest", [1, 5040])
def test_sums_are_equal_and_scores_nearly(heaviest):
    n = 5_000
    codes, basis, rng = records(0, n)
    residuals = list(np.rint(rng.uniform(-1, 1, (3, n)) * RESIDUAL * heaviest))
    weights = basis.scale[:, None] * rng.normal(size=(basis.scale.size, 3))
    (dense, sums), (scores, same) = (passes(d, weights, residuals) for d in designs(codes, basis, n, heaviest))
    indicators = np.zeros((n, sum(basis.sizes)))
    for code, start in zip(codes, basis.starts, strict=True):
        indicators[np.arange(n), start + code.astype(int)] = 1
    truth = (indicators @ basis.entries).astype(object).T @ np.array(residuals).astype(object).T
    assert (sums == truth).all()
    real = SCORE * (indicators @ (basis.entries @ weights)).T
    assert np.abs(dense - real).max() <= 0.6
    assert (same == sums).all()
    assert np.abs(scores - real).max() <= 0.5 * len(basis.sizes)


@pytest.mark.parametrize("size", [1.0, 1e12])
def test_a_record_counts_the_same_wherever_it_stands_and_whoever_stands_beside_it(size):
    """Weights of 1e12 are limited, by the basis alone."""
    n = 700
    codes, basis, rng = records(1, n)
    weights = basis.scale[:, None] * rng.normal(size=(basis.scale.size, 3)) * size
    residuals = list(np.rint(rng.uniform(-1, 1, (3, n)) * RESIDUAL))
    order, few = rng.permutation(n), np.arange(50)
    for whole, turned, part in zip(
        designs(codes, basis, n),
        designs([c[order] for c in codes], basis, n),
        designs([c[few] for c in codes], basis, 50),
        strict=True,
    ):
        scores, sums = passes(whole, weights, residuals)
        again, same = passes(turned, weights, [r[order] for r in residuals])
        assert (again == scores[:, order]).all()
        assert (same == sums).all()
        assert (passes(part, weights, [r[few] for r in residuals])[0] == scores[:, few]).all()


def test_the_number_of_records_does_not_choose_how_scores_are_rounded():
    """The noisy number does: neighbouring data sets at any number have scores on the same lattice."""
    codes, basis, _ = records(2, 400)
    for n_rows in (300, 400):
        few = [c[:n_rows] for c in codes]
        assert isinstance(design_of(iter(few), basis, n_rows, 6, 1e3, 1), DenseDesign)
        assert not isinstance(design_of(iter(few), basis, n_rows, 6, 1e9, 1), DenseDesign)
        assert isinstance(design_of(iter(few), basis, n_rows, 1, 1e3, 1), SharedDesign)


@pytest.mark.parametrize("loss", [ClippedLogistic(), ClippedSoftmax(outputs=3)])
@pytest.mark.parametrize("heaviest", [1, 12])
def test_sums_over_parts_are_those_of_all_records(loss: ClippedLoss, heaviest, monkeypatch):
    """Whatever the number of parts; and one that missed steps takes them again, in their order."""
    n = 900
    codes, basis, rng = records(3, n)
    weights = None if heaviest == 1 else rng.integers(0, heaviest + 1, n).astype(float)
    rows = Coded(codes, rng.integers(0, max(loss.outputs, 2), n).astype(float), weights)
    lattice = Lattice.of(basis, loss, heaviest, 1e3, 0.1)
    losses._logistic_table.cache_clear()
    losses._exponential_table.cache_clear()
    taken = [rng.normal(size=(basis.scale.size, loss.outputs)) for _ in range(3)]
    found = {}
    monkeypatch.setattr(losses, "_grid", lambda: pytest.fail("workers look up what the caller made"))
    for many in (1, 2, 7):
        parts = [Descent(lattice, (), part) for part in rows.cut(many)]
        assert len(parts) == many
        sums = [sum(part.gradient(step, w) for part in parts) for step, w in enumerate(taken, 5)]
        squares = np.concatenate([part.squares(range(5, 8), ()) for part in parts])
        found[many] = [*sums, squares]
    late = Descent(lattice, (), rows)
    late.gradient(7, taken[2])
    found["late"] = [*found[1][:3], late.squares(range(5, 8), taken)]
    for others in found.values():
        for one, another in zip(found[1], others, strict=True):
            np.testing.assert_array_equal(one, another)
    assert found[1][-1].min() > 0 or heaviest > 1
