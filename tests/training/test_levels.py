"""The last look of a regression: its price, what it mends, and that it is left out where it tells nothing."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

import deniable as dn
from deniable.noise.queries import Ledger, Paid, Queries, SumNoise, Units
from deniable.training import regressor
from deniable.training.additive import Additive
from deniable.training.features import FeatureTable
from deniable.training.fitting import Task
from deniable.training.losses import ClippedPoisson, ClippedSquared

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


class Watched(SumNoise):
    """Remembers sums and standard deviations."""

    def channel(self, label, sd, times):
        inner = super().channel(label, sd, times)

        def answer(sums):
            self.asked = (sums, sd)
            return inner(sums)

        return answer


class Scored(Additive):
    """A model whose scores are the first column."""

    def scores(self, table):
        return np.asarray(table.numbers(table.columns[0]))[:, None]


@pytest.mark.parametrize("loss", [ClippedSquared(), ClippedPoisson()])
@pytest.mark.parametrize("heaviest", [1, 3])
def test_no_record_moves_the_sums_by_more_than_was_paid(loss, heaviest):
    """Every extreme record by itself: its sums in units of the noise have a norm of at most μ, some above 0.6 μ."""
    base = dn.PrivateRegressor()
    fitted = base.fit(np.arange(60.0)[:, None], np.arange(60.0)).model_
    model = Scored(fitted.encoders, fitted.pairs, fitted.basis, fitted.coefficients)
    mu, reached = 0.2, []
    for score in (-1e6, -2.0, -0.3, 0.0, 1.0, 2.0, 5.0, 1e6):
        for target in (0.0, 1e-9, 1.0, 30.0, 1e9, *(() if isinstance(loss, ClippedPoisson) else (-1e9,))):
            source = Watched()
            units = Units() if heaviest == 1 else Units("person", np.array([float(heaviest)]), heaviest)
            table = FeatureTable(pd.DataFrame({"score": [score]}), dn.Schema())
            task = Task(Queries(Ledger(1.0), source, units), 3000.0, table, np.array([target]), loss)
            moved = regressor.levelled(task, model, Paid(mu, source), 12.5)
            assert np.isfinite(moved.coefficients).all()
            reached.append(np.linalg.norm(source.asked[0] / source.asked[1]))
    assert max(reached) <= mu
    assert max(reached) > 0.6 * mu


def test_rare_counts_and_long_tails_are_met_on_average():
    """Without the look predictions stay near the median: R² and the mean of all predictions tell."""
    made = np.random.default_rng(0)
    X = pd.DataFrame(made.normal(size=(8000, 3)), columns=list("abc"))
    rare = made.poisson(np.exp(X["a"] - 3.0))
    tail = np.where(made.random(8000) < 0.7, 0.0, np.exp(1 + X["a"]))
    for y, loss in ((rare, "poisson"), (tail, "squared")):
        model = dn.PrivateRegressor(advantage=0.3, loss=loss).fit(X, y)
        assert "level" in model.certificate_.shares()
        assert model.tradeoff_.advantage() <= 0.3
        assert abs(model.predict(X).mean() / y.mean() - 1) < 0.35
        assert r2_score(y, model.predict(X)) > 0.02


def test_a_look_that_would_tell_nothing_is_not_paid_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    model = dn.PrivateRegressor().fit(X, X[:, 0])
    assert "level" not in model.certificate_.shares()
    assert regressor.wide_clip(0.05, 300, 0.5) is None
    assert regressor.wide_clip(0.05, 30_000, 0.5) > 8
    assert regressor.wide_clip(0.05, 8_000, 0.5, 12.0) == 36  # three counts pass
    assert regressor.wide_clip(0.05, 300, 0.5, 12.0) is None  # unless that is all noise
