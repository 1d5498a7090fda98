"""The last look of a regression: its price, what it mends, and that it is left out where it tells nothing."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

import deniable as dn
from deniable.noise.queries import Paid, Queries, QueryBudget, SumNoise, Units
from deniable.testing import insecure_noise
from deniable.training import levels, regressor
from deniable.training.looks import Task
from deniable.training.losses import ClippedLogistic, ClippedPoisson, ClippedSquared

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


class Watched(SumNoise):
    """Remembers sums and standard deviations."""

    def channel(self, label, sd, times):
        inner = super().channel(label, sd, times)

        def answer(sums):
            self.asked = (sums, sd)
            return inner(sums)

        return answer


@pytest.mark.parametrize("loss", [ClippedSquared(), ClippedPoisson()])
@pytest.mark.parametrize("heaviest", [1, 3])
def test_no_record_moves_the_sums_by_more_than_was_paid(loss, heaviest):
    """Every extreme record by itself: its sums in units of the noise have a norm of at most μ, some above 0.6 μ."""
    model = dn.PrivateRegressor().fit(np.arange(60.0)[:, None], np.arange(60.0)).model_
    mu, reached = 0.2, []
    for score in (-1e6, -2.0, -0.3, 0.0, 1.0, 2.0, 5.0, 1e6):
        for target in (0.0, 1e-9, 1.0, 30.0, 1e9, *(() if isinstance(loss, ClippedPoisson) else (-1e9,))):
            source = Watched()
            units = Units() if heaviest == 1 else Units("person", np.array([float(heaviest)]), heaviest)
            task = Task(Queries(QueryBudget(1.0), source, units), 3000.0, None, np.array([target]), loss)
            moved, _ = regressor.level_scores(task, model, np.array([[score]]), Paid(mu, source), 12.5)
            assert np.isfinite(moved.coefficients).all()
            reached.append(np.linalg.norm(source.asked[0] / source.asked[1]))
    assert max(reached) <= mu
    assert max(reached) > 0.6 * mu


def test_no_record_moves_a_classifiers_look_by_more_than_was_paid():
    model = dn.PrivateRegressor().fit(np.arange(60.0)[:, None], np.arange(60.0)).model_
    reached = []
    for score in (-1e6, -20.0, -4.0, -1.0, 0.0, 0.3, 2.0, 4.0, 1e6):
        for target in (0.0, 1.0):
            source = Watched()
            task = Task(Queries(QueryBudget(1.0), source), 3000.0, None, np.array([target]), ClippedLogistic())
            moved, loss = levels.calibrate_scores(task, model, np.array([[score]]), Paid(0.2, source))
            assert np.isfinite(moved.coefficients).all()
            assert np.isfinite(loss.link)
            reached.append(np.linalg.norm(source.asked[0] / source.asked[1]))
    assert max(reached) <= 0.2
    assert max(reached) > 0.6 * 0.2


def error_of(shares, y):
    """Expected calibration error over ten bins of equally many records."""
    order = np.array_split(np.argsort(shares), 10)
    return sum(len(rows) * abs(shares[rows].mean() - y[rows].mean()) for rows in order) / len(y)


def test_probabilities_are_what_happens():
    """Half of what shrinkage and few steps leave: the error was .046, .032 and .041 with the same noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(26_000, 25))
    y = (rng.random(26_000) < 1 / (1 + np.exp(-1.2 * X[:, :12].sum(axis=1)))).astype(int)
    errors = []
    for seed in range(3):
        with insecure_noise(np.random.default_rng(seed)):
            model = dn.PrivateClassifier(advantage=0.1).fit(X[:6000], y[:6000])
        assert "level" in model.certificate_.shares()
        errors.append(error_of(model.predict_proba(X[6000:])[:, 1], y[6000:]))
    assert np.mean(errors) < 0.025


def test_probabilities_rise_with_the_score_and_are_even_at_zero():
    scores = np.linspace(-8, 8, 401)
    for link in (-0.5, 0.0, 0.4, 1.0):
        shares = ClippedLogistic(link=link).probabilities(scores)
        assert (np.diff(shares) > 0).all()
        assert shares[200] == 0.5
    np.testing.assert_allclose(ClippedLogistic(link=1.0).probabilities(scores), 1 / (1 + np.exp(-scores)))
    clipped = np.minimum(1 / (1 + np.exp(-scores)), 0.5)
    np.testing.assert_allclose(ClippedLogistic().probabilities(scores), clipped / (clipped + clipped[::-1]))


def test_few_records_pay_for_no_look():
    rng = np.random.default_rng(0)
    model = dn.PrivateClassifier(advantage=0.1).fit(rng.normal(size=(200, 3)), np.arange(200) % 2)
    assert "level" not in model.certificate_.shares()


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
