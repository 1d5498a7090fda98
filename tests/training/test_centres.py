"""The mean row of each column is taken away, and rows longer than usual are scaled down to what the noise covers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import deniable as dn
from deniable.noise.queries import Queries, QueryBudget
from deniable.training import descent
from deniable.training.design import Basis
from deniable.training.encoders import Encoder, Hashed, Levels, Listed, Pair, Thermometer
from deniable.training.features import FeatureTable
from deniable.training.looks import Columns, Task, centre_columns, tilted
from deniable.training.losses import ClippedLogistic
from guarantees.replay import Tape

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


@given(st.floats(-0.99, 0.99), st.integers(2, 255))
def test_tilted_masses_have_the_mean_that_was_asked_for(mean, cells):
    mass = tilted(np.linspace(-1, 1, cells), mean)
    assert mass.sum() == pytest.approx(1)
    assert mass @ np.linspace(-1, 1, cells) == pytest.approx(mean, abs=1e-6)
    assert (np.diff(np.diff(np.log(np.maximum(mass, 1e-200)))) < 1e-6).all()  # exponential in between


def columns_of_every_kind(rng):
    """Encoders with random masses, and records drawn from them: cells, (records, columns)."""
    encoders = (
        Encoder(Thermometer("a", np.array([1.0, 2.0, 5.0]), 0.0, 9.0, 0.6), None),
        Encoder(Levels("b", 0.0, 1.0), None),
        Encoder(None, Listed("c", ("x", "y"))),
        Encoder(None, Hashed("d", 7)),
    )
    masses = []
    for encoder in encoders:
        mass = rng.dirichlet(np.full(encoder.size, 0.3))
        if encoder.bins:
            mass = np.append(mass[:-1] / mass[:-1].sum(), np.nan)
        masses.append(mass)
    cells = [rng.choice(m.size, 20_000, p=np.nan_to_num(m)) for m in masses]
    return Columns(encoders, tuple(masses)), np.stack(cells, axis=1)


def test_rows_have_mean_zero_and_mean_square_one():
    rng = np.random.default_rng(0)
    columns, cells = columns_of_every_kind(rng)
    basis = Basis.of(columns.encoders, columns.masses)
    dense = basis.entries.toarray() * basis.scale
    assert (basis.entries.toarray() == np.rint(basis.entries.toarray())).all()
    rows = sum(dense[start + cells[:, j]] for j, start in enumerate(basis.starts[:-1])) + dense[-1]
    assert np.square(rows).sum(axis=1).mean() == pytest.approx(1, abs=0.02)
    np.testing.assert_allclose(rows[:, :-1].mean(axis=0), 0, atol=0.02)
    missing = dense[basis.starts[0] + 4]  # a number that is missing stays in the middle of its column
    assert np.count_nonzero(missing) == 1
    worst = np.square(rows).sum(axis=1).max()
    assert worst <= basis.largest_squared_norm(1 / basis.scale) * (1 + 1e-12)


def test_a_pair_is_as_if_its_columns_were_independent():
    columns, _ = columns_of_every_kind(np.random.default_rng(1))
    levels = [np.array([0, 1, 2, 3, 8], dtype=np.uint16), np.array([0, 0, 7, 8], dtype=np.uint16)]
    (mass,) = columns.masses_with([Pair(0, 2, ("a", "c"), *levels)])[4:]
    table = mass.reshape(9, 9)
    assert np.isnan(table[8]).all()
    np.testing.assert_allclose(table[:4, 0], columns.masses[0][:4] * columns.masses[2][:2].sum())


def test_the_released_masses_are_near_the_truth_and_paid_for():
    rng = np.random.default_rng(2)
    n = 4_000
    frame = pd.DataFrame({"low": rng.beta(1, 6, n), "flag": rng.random(n) < 0.03, "job": rng.choice(["a", "b"], n)})
    table = FeatureTable(frame, dn.Schema())
    parts = (Levels("low", 0.0, 1.0), None), (None, Listed("flag", ("false", "true"))), (None, Hashed("job", 255))
    encoders = tuple(Encoder(*part) for part in parts)
    look = Queries(QueryBudget(1.0))
    task = Task(look, n, table, np.zeros(n), ClippedLogistic())
    columns = centre_columns(task, encoders, 0.5)
    assert [use.mu for use in look.ledger.uses] == [0.5]
    places = np.linspace(0, 1, 255)
    assert columns.masses[0][:-1] @ places == pytest.approx(1 / 7, abs=0.01)
    assert columns.masses[1][:2] == pytest.approx([0.97, 0.03], abs=0.01)
    assert np.sort(columns.masses[2])[-2:] == pytest.approx([0.5, 0.5], abs=0.03)
    assert np.count_nonzero(columns.masses[2]) <= 4  # 253 cells of noise alone do not pass for texts
    known = (Encoder(Levels("low", 0.0, 1.0, np.full(255, 1 / 255)), None),)
    centre_columns(task, known, 0.5)
    assert len(look.ledger.uses) == 1  # known masses cost nothing


@pytest.mark.parametrize("capped", [True, False])
def test_a_row_longer_than_usual_moves_no_more_than_paid_for(capped, monkeypatch):
    """Everybody is alike but one; negative control: without the cap on rows that one passes the budget."""
    if not capped:
        monkeypatch.setattr(descent, "shares", lambda squares, longest: np.ones(squares.size))
    n = 3_000
    X = np.zeros((n, 12)) + 0.02 * np.random.default_rng(0).random((n, 12))
    X[-1] = 1.0
    y = np.arange(n) % 2
    options = {"limit": dn.GaussianDP(4.0), "ranges": {j: (0.0, 1.0) for j in range(12)}, "model": "linear"}
    recorded = Tape(0)
    fitted = dn.PrivateClassifier(**options)._fit(X, y, recorded)
    replay = recorded.replay()
    dn.PrivateClassifier(**options)._fit(X[:-1], y[:-1], replay)
    moved, paid = replay.moved, {use.name: use.mu**2 for use in fitted.certificate_.uses}
    assert (moved["coefficients"] <= paid["coefficients"]) == capped
    if capped:
        assert moved["coefficients"] > 0.1 * paid["coefficients"]
        assert moved["coefficients"] <= fitted.record_tradeoffs_.mu[-1] ** 2
