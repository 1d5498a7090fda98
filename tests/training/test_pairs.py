"""Pairs of columns: found where two act together, asked only where records are enough, paid for, exact."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import deniable as dn
from deniable.training import fitting, pairs
from deniable.training.losses import ClippedLogistic
from deniable.training.pairs import ASKS, PairQuery, asks_for, clarity, products, side_of
from guarantees.replay import Tape

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


def crossed(n, seed=0):
    """Two exclusive ors beside two columns that do nothing: no column alone tells anything."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    score = 2 * np.sign(X[:, 0] * X[:, 1]) + 1.5 * X[:, 2] * X[:, 3]
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


@pytest.fixture(scope="module")
def model():
    return dn.PrivateClassifier(advantage=0.2).fit(*crossed(8000))


def test_what_acts_together_is_found_without_being_asked_for(model):
    X, y = crossed(4000, 1)
    assert {pair.names for pair in model.model_.pairs} == {("0", "1"), ("2", "3")}
    assert roc_auc_score(y, model.predict_proba(X)[:, 1]) > 0.8


def test_none_and_at_most_so_many():
    X, y = crossed(8000)
    none = dn.PrivateClassifier(advantage=0.2, interactions=0).fit(X, y)
    assert none.model_.pairs == ()
    assert not any("pairs" in use.name for use in none.certificate_.uses)
    assert len(dn.PrivateClassifier(advantage=0.2, interactions=1).fit(X, y).model_.pairs) == 1


def test_a_pair_is_drawn_with_its_scale_and_counts_in_how_far_columns_move(model):
    fitted = model.model_
    place = next(j for j, block in enumerate(fitted.blocks) if block.name == "0 × 1")
    grid = fitted.blocks[place].grid(fitted.block(place)[:, -1])
    assert fitted.spread(place) == pytest.approx(np.ptp(grid))
    assert grid[0, 0] > 0 > grid[0, -1]
    figure = model.plot(["0 × 1"])
    assert len(figure.axes) == 2  # the second one says what the colours mean
    dn_plot = pytest.importorskip("matplotlib.pyplot")
    dn_plot.close(figure)


def test_where_no_pair_can_stand_out_nothing_is_asked():
    model = dn.PrivateClassifier(advantage=0.1).fit(*crossed(600))
    assert not any("pairs" in use.name for use in model.certificate_.uses)
    loss = ClippedLogistic()
    assert [len(asks_for(loss, strength)) for strength in (100, 600, 2e3, 1e6)] == [0, 1, 3, 3]
    assert clarity(ASKS[0], loss, 4000) == 2 * clarity(ASKS[0], loss, 2000)


def test_pairs_are_not_seen_in_noise():
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(4):
        X, y = rng.normal(size=(6000, 8)), rng.integers(0, 2, 6000)
        found += len(dn.PrivateClassifier(advantage=0.2).fit(X, y).model_.pairs)
    assert found <= 5  # three queries a fit that may each take .3 by chance, and the threshold is per query


class Everything:
    """Every query is made and every pair taken, so that few records exercise all of it."""

    @pytest.fixture(autouse=True)
    def _always(self, monkeypatch):
        monkeypatch.setattr(fitting, "STEPS", 30)
        monkeypatch.setattr(pairs, "_HOPELESS", 0.0)
        monkeypatch.setattr(pairs, "_FALSE", 1e12)
        monkeypatch.setattr(pairs, "_FEWEST", 6)


def people(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.normal(50, 15, n).round(), "job": rng.choice(["nurse", "baker"], n)})
    frame["pay"], frame["who"] = np.exp(rng.normal(10, 1, n)).round(), np.arange(n) // 3
    return frame, rng.integers(0, 2, n)


class TestTheAccount(Everything):
    @pytest.mark.parametrize("group", [None, "who"])
    def test_no_neighbour_moves_a_query_by_more_than_its_price(self, group):
        frame, y = people(90, 0)
        estimator = dn.PrivateClassifier(advantage=0.5, group=group)
        recorded = Tape(1)
        estimator._fit(frame, y, recorded)
        assert estimator.model_.pairs
        paid = {use.name: use.mu**2 for use in estimator.certificate_.uses}
        assert sum("pairs" in name for name in paid) == 3
        assert math.fsum(paid.values()) == pytest.approx(estimator.certificate_.mu**2)
        asked = 0.0
        for i in range(0, 90, 9):
            gone = (frame["who"] == frame["who"][i]).to_numpy() if group else np.arange(90) == i
            replay = recorded.replay()
            dn.PrivateClassifier(**estimator.get_params())._fit(frame[~gone], y[~gone], replay)
            shift = replay.moved
            assert set(shift) == set(paid)
            assert all(shift[name] <= price * (1 + 1e-12) for name, price in paid.items())
            unit = i // 3 if group else i
            assert math.sqrt(sum(shift.values())) <= estimator.record_tradeoffs_.mu[unit] * (1 + 1e-9)
            asked = max(asked, *(shift[name] / paid[name] for name in paid if "pairs" in name))
        assert asked > 0.1  # the price is not merely large

    def test_negative_control_longer_rows_that_are_not_scaled_down_pass_the_price(self, monkeypatch):
        monkeypatch.setattr(pairs, "shares", lambda squares, longest: np.ones(squares.size))
        frame = pd.DataFrame({name: np.r_[np.zeros(199), 1.0] for name in "abcdef"})
        frame += np.random.default_rng(0).normal(0, 0.1, (200, 6))
        ranges = dict.fromkeys("abcdef", (-1.0, 1.0))
        estimator, recorded = dn.PrivateClassifier(advantage=0.9, ranges=ranges), Tape(3)
        y = np.arange(200) % 2
        estimator._fit(frame, y, recorded)
        paid = {use.name: use.mu**2 for use in estimator.certificate_.uses}
        worst = 0.0
        for i in range(0, 200, 7):
            replay, keep = recorded.replay(), np.arange(200) != i
            dn.PrivateClassifier(**estimator.get_params())._fit(frame[keep], y[keep], replay)
            shift = replay.moved
            worst = max(worst, *(shift[name] / paid[name] for name in paid if "pairs" in name))
        assert worst > 1

    def test_the_order_of_the_records_leaves_no_trace(self):
        frame, y = people(120, 4)
        order = np.random.default_rng(0).permutation(120)
        recorded, other = Tape(5), Tape(5)
        first = dn.PrivateClassifier(advantage=0.5)._fit(frame, y, recorded)
        second = dn.PrivateClassifier(advantage=0.5)._fit(frame.iloc[order], y[order], other)
        np.testing.assert_array_equal(first.model_.coefficients, second.model_.coefficients)


def test_products_are_those_of_a_slow_count():
    rng = np.random.default_rng(1)
    n, sizes = 500, (5, 9, 4)
    codes = [rng.integers(0, size, n).astype(np.uint16) for size in sizes]
    sides = [
        side_of(j, np.minimum(np.arange(size), 8).astype(np.uint16), np.full(size, 1 / size))
        for j, size in enumerate(sizes)
    ]
    residuals = [np.rint(rng.normal(0, 1e4, n))]
    found = products(residuals, codes, sides, 1e18, 1.0)
    kept = 1 - 2.0**-40  # shares are rounded down
    for place, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
        for i in (0, 1):
            for k in (0, 1):
                of = [sides[c].functions[sides[c].levels[codes[c]], f] for c, f in ((a, i), (b, k))]
                slow = sum(int(r) * int(x) * int(y) for r, x, y in zip(np.trunc(residuals[0] * kept), *of, strict=True))
                assert found[0, place, 2 * i + k] == slow


def test_functions_of_a_side_are_centred_and_orthogonal_under_the_masses():
    mass = np.array([0.05, 0.2, 0.1, 0.3, 0.15, 0.05, 0.1, 0.05, np.nan])
    side = side_of(0, np.arange(9).astype(np.uint16), mass)
    ramp, ends = side.functions[:-1].T / 127
    assert abs(mass[:-1] @ ramp) < 0.01
    assert abs(mass[:-1] @ ends) < 0.01
    assert abs(mass[:-1] @ (ramp * ends)) < 0.01
    assert mass[:-1] @ ramp**2 == pytest.approx(1, abs=0.02)
    assert not side.functions[-1].any()  # a missing value says nothing of a pair


def test_factors_are_those_of_two_normal_laws():
    """Closed form: log of N(z; 0, noise + signal) over N(z; 0, noise), summed over the four products."""
    sides = [side_of(j, np.arange(9).astype(np.uint16), np.append(np.full(8, 1 / 8), np.nan)) for j in (0, 1)]
    query, sd = PairQuery(ClippedLogistic(), None, [], 1000.0), 2e5
    released = np.array([[[3e6, 0.0, 1e5, 0.0]]])
    energy = np.outer(sides[0].energy, sides[1].energy).ravel()
    noise, signal = sd**2 + 1000 * 0.25 * energy, 0.003 * 0.25 * 1000**2 * energy
    log = [-0.5 * (np.log(noise + s) + released[0, 0] ** 2 / (noise + s)) for s in (signal, 0)]
    assert query.factors(released, sides, sd) == pytest.approx([(log[0] - log[1]).sum()])
