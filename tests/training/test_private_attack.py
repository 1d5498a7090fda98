"""The attack on private fits: its ratio against a slow computation, every kind of model, and bad input."""

import joblib
import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.noise.queries import SumNoise
from deniable.testing import insecure_noise
from deniable.training import PrivateAttack, fitting
from deniable.training.attack import Followed, Recorded, kinds_added
from oracles.replayed_fits import Recording, Replay

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


@pytest.fixture(autouse=True)
def short_fits(monkeypatch):
    monkeypatch.setattr(fitting, "STEPS", 20)


def table(n=50, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.normal(45, 15, n), "city": rng.choice(["Ulm", "Rome", None], n)})
    return frame, np.where(frame["age"] + 10 * rng.normal(size=n) > 45, "ill", "well")


@pytest.mark.parametrize("inside", [True, False])
def test_the_ratio_is_that_of_two_whole_fits(inside):
    """Slow: both data sets are followed through the recorded history, and their densities compared."""
    X, y = table()
    model = dn.PrivateClassifier(advantage=0.3, classes=["ill", "well"])
    worlds = [(X, y), (X.iloc[1:], y[1:])]
    recorded = Recorded(SumNoise())
    model._fit(*worlds[0 if inside else 1], recorded)
    followed = Followed(recorded, inside, kinds_added(model._fit, *worlds))
    model._fit(X.iloc[:1], y[:1], followed)

    history = Recording(0)  # only its shelves are used
    for label, sd, _, answers in recorded.channels:
        history.sd[label], history.released[label] = sd, answers
    found = []
    for world in worlds:
        replay = Replay(history)
        model._fit(*world, replay)
        parts = [
            -(((np.array(history.released[label]) - np.array(sums)) / history.sd[label]) ** 2).sum() / 2
            for label, sums in replay.sums.items()
        ]
        found.append(sum(parts))
    assert followed.log_ratio == pytest.approx(found[0] - found[1], rel=1e-6, abs=1e-6)
    assert 0 < np.sqrt(followed.squared_mu) <= model.certificate_.mu


@pytest.mark.parametrize(
    ("make", "task"),
    [
        (lambda: dn.PrivateClassifier(advantage=0.4), "classes"),
        (lambda: dn.PrivateClassifier(advantage=0.4, model="linear", ranges={"age": (0, 100)}), "classes"),
        (lambda: dn.PrivateClassifier(advantage=0.4), "three classes"),
        (lambda: dn.PrivateRegressor(advantage=0.4), "numbers"),
        (lambda: dn.PrivateRegressor(advantage=0.4, loss="poisson"), "numbers"),
        (lambda: dn.PrivateClassifier(advantage=0.4, interactions=1), "classes"),
    ],
)
def test_every_kind_of_model_keeps_its_promise_and_can_be_followed(make, task):
    X, y = table()
    target = {"classes": y, "three classes": np.arange(50) % 3, "numbers": np.abs(X["age"].to_numpy())}[task]
    model = make().fit(X, target)
    attack = model.attack(X, target, n_trainings=20)
    assert isinstance(attack, PrivateAttack)
    assert np.all(attack.path_mu <= attack.bound_mu)
    assert attack.path_mu.mean() > 0.6 * attack.bound_mu
    assert not attack.transcript.audit(0.9999).compare(model.tradeoff_).violated
    assert np.isfinite(attack.final.member_scores).all()
    assert "verdict on the final model" in str(attack)


@pytest.mark.parametrize("label", ["numbers", "names"])
def test_persons_are_attacked_with_all_their_records(label):
    X, y = table(60)
    X["who"] = np.arange(60) // 2 if label == "numbers" else [f"p{i // 2}" for i in range(60)]
    model = dn.PrivateClassifier(advantage=0.4, group="who", records_per_person=2).fit(X, y)
    attack = model.attack(X, y, n_trainings=20)
    assert 0.6 * attack.bound_mu < attack.path_mu.mean() <= attack.bound_mu
    assert model.attack(X, y, n_trainings=20, record=7).canary == "the person of record 7"


def test_the_canary_of_a_linear_model_nearly_reaches_the_bound():
    X = np.random.default_rng(0).normal(size=(50, 3))
    spans = {j: (X[:, j].min(), X[:, j].max()) for j in range(3)}
    model = dn.PrivateClassifier(advantage=0.4, model="linear", ranges=spans).fit(X, X[:, 0] > 0)
    attack = model.attack(X, X[:, 0] > 0, n_trainings=20)
    assert 0.9 * attack.bound_mu < attack.path_mu.mean() <= attack.bound_mu


def test_arrays_and_seeds():
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    model = dn.PrivateClassifier(advantage=0.4, interactions=1).fit(X, y)

    def attacked(n_jobs):
        with insecure_noise(np.random.default_rng(0)):
            return model.attack(X, y, n_trainings=20, n_jobs=n_jobs)

    with joblib.parallel_config("threading"):  # other processes would not know of the short fits
        first, again = attacked(1), attacked(2)
    assert first.canary == again.canary
    np.testing.assert_array_equal(first.transcript.member_scores, again.transcript.member_scores)
    np.testing.assert_array_equal(first.transcript.nonmember_scores, again.transcript.nonmember_scores)
    assert not np.array_equal(first.transcript.member_scores, first.transcript.nonmember_scores)
    assert model.attack(X, y, n_trainings=20, record=4).canary == "record 4"


def test_bad_input():
    X, y = table()
    model = dn.PrivateClassifier(advantage=0.4).fit(X, y)
    for options, words in (
        ({"n_trainings": 5}, "n_trainings"),
        ({"noise_share": 0.0}, "noise_share"),
        ({"record": 50}, "record must be below"),
        ({"confidence": 95}, "confidence"),
    ):
        with pytest.raises(dn.InputError, match=words):
            model.attack(X, y, **options)
    discovered = dn.PrivateClassifier(advantage=0.4, categories="discover").fit(X, y)
    with pytest.raises(dn.InputError, match="discovery of categories"):
        discovered.attack(X, y)
    with pytest.raises(dn.InputError, match="exact log-likelihood"):
        model.attack(X, y, n_trainings=20, noise_share=0.5).advantage()
