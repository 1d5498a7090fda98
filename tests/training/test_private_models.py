"""The estimators: scikit-learn's contract, what a model remembers, tables as people have them, bad input."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import check_estimator

import deniable as dn
from deniable.synthesis import SynthesisWarning
from deniable.testing import insecure_noise
from deniable.training import TrainingWarning, fitting
from deniable.training.looks import Task
from deniable.training.losses import ClippedSquared
from guarantees.replay import Tape

pytestmark = pytest.mark.filterwarnings("ignore::deniable.training.TrainingWarning")


@pytest.mark.parametrize("kind", [dn.PrivateClassifier, dn.PrivateRegressor])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(kind, monkeypatch):
    monkeypatch.setattr(fitting, "STEPS", 50)
    fit = kind._fit

    def repeated(*data):  # some checks compare two fits
        with insecure_noise(np.random.default_rng(0)):
            return fit(*data)

    monkeypatch.setattr(kind, "_fit", repeated)
    results = check_estimator(kind(), on_skip=None)
    assert len(results) > 40


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.normal(45, 15, n)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.05, np.nan, age),
            "year": rng.integers(2010, 2025, n),
            "city": rng.choice(["Ulm", "Rome", None], n),
            "smokes": rng.random(n) < 0.3,
            "joined": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), unit="D"),
            "amount": [f"{x}" if x < 1e4 else None for x in rng.lognormal(5, 2, n)],
        }
    )
    frame["amount"] = frame["amount"].astype(float)
    score = (age - 45) / 10 + 2 * (frame["city"] == "Ulm") + (frame["year"] > 2018) - 1
    return frame, np.where(score + rng.logistic(size=n) > 0, "ill", "well")


@pytest.mark.parametrize(
    ("target", "holds"),
    [
        ({"advantage": 0.2}, lambda t: t.advantage() <= 0.2),
        (None, lambda t: 0.0999 < t.advantage() <= 0.1),
        ({"tpr": 0.05, "fpr": 0.01}, lambda t: 0.0499 < t.tpr(0.01) <= 0.05),
        ({"epsilon": 1.0, "delta": 1e-5}, lambda t: 0.99e-5 < t.delta(1.0) <= 1e-5),
        ({"advantage": 0.3, "group_size": 3}, lambda t: 0.2999 < t.group(3).advantage() <= 0.3),
        (
            dn.SubsampledGaussian(20.0, 1.0, 100),
            lambda t: t.advantage() <= 2 * norm.cdf(0.25) - 1 + 1e-12,
        ),
    ],
)
def test_each_target_is_met(target, holds):
    frame, y = table(200, 0)
    model = dn.PrivateClassifier(limit=dn.Limit(**target) if isinstance(target, dict) else target).fit(frame, y)
    assert holds(model.tradeoff_)
    assert holds(dn.tradeoff(model.certificate_.mechanism))
    assert model.replacement_tradeoff_.advantage() > model.tradeoff_.advantage()
    assert sum(model.certificate_.shares().values()) == pytest.approx(1)


def test_a_model_holds_nothing_but_what_was_noised():
    """Two neighbouring data sets whose noised sums come out alike leave the same bytes, attributes and repr."""
    frame, y = table(300, 1)
    first, second = (dn.PrivateClassifier(advantage=0.3) for _ in range(2))
    recorded = Tape(2)
    first._fit(frame, y, recorded)
    second._fit(frame.iloc[1:], y[1:], recorded.replay())
    assert pickle.dumps(first) == pickle.dumps(second)
    assert repr(first) == repr(second)
    assert first._repr_html_()
    assert str(first.certificate_) == str(second.certificate_)
    public = {k: v for k, v in vars(first).items() if k != "_record_tradeoffs"}
    assert pickle.dumps(public) == pickle.dumps({k: v for k, v in vars(second).items() if k != "_record_tradeoffs"})
    assert set(public) - set(first.get_params()) == {
        *(
            "model_",
            "columns_",
            "left_out_",
            "certificate_",
            "classes_",
            "loss_",
            "n_features_in_",
            "feature_names_in_",
            "schema_",
        )
    }
    assert b"300" not in str(first.certificate_).encode()


def test_the_order_of_the_records_leaves_no_trace():
    frame, y = table(300, 3)
    mixed = np.random.default_rng(0).permutation(300)
    first, second = (dn.PrivateClassifier(advantage=0.3) for _ in range(2))
    recorded, other = Tape(4), Tape(4)
    first._fit(frame, y, recorded)
    second._fit(frame.iloc[mixed], y[mixed], other)
    for one, another in zip(recorded.asked, other.asked, strict=True):
        np.testing.assert_array_equal(one[1], another[1])


def test_exposures_stay_with_the_owner():
    frame, y = table(300, 5)
    model = dn.PrivateClassifier(advantage=0.3).fit(frame, y)
    exposure = model.record_tradeoffs_
    assert model.tradeoff_.universal
    with pytest.raises(dn.InputError, match="one record along the path"):
        exposure.tradeoff(0).reconstruction(0.1)
    assert len(exposure) == 300
    (worst, advantage), *_ = exposure.most_exposed(10)
    assert advantage == pytest.approx(exposure.tradeoff(worst).advantage(), rel=1e-9)
    assert advantage <= model.tradeoff_.advantage()
    for copied in (pickle.loads(pickle.dumps(model)), clone(model).fit(frame, y)):
        np.testing.assert_array_equal(copied.classes_, model.classes_)
    with pytest.raises(AttributeError, match="not stored with a model"):
        _ = pickle.loads(pickle.dumps(model)).record_tradeoffs_
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict_proba(frame), model.predict_proba(frame))


def test_predictions_are_consistent():
    frame, y = table(2000, 6)
    model = dn.PrivateClassifier(advantage=0.5).fit(frame, y)
    p = model.predict_proba(frame)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_log_proba(frame), np.log(p))
    assert (model.predict(frame) == np.where(p[:, 1] > 0.5, "well", "ill")).all()
    assert ((model.decision_function(frame) > 0) == (p[:, 1] > 0.5)).all()
    assert roc_auc_score(y == "well", p[:, 1]) > 0.75
    unseen = frame.head(3).assign(city=["Oslo", None, "Ulm"], age=[np.nan, 1e9, -1e9], year=[1, 2, 3])
    assert np.isfinite(model.predict_proba(unseen)).all()


@pytest.mark.parametrize(("target", "auc", "accuracy"), [(0.1, 0.96, 0.89), (0.462, 0.98, 0.92)])
def test_breast_cancer_is_learned(target, auc, accuracy):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    found = []
    for seed in range(5):
        a, b, ya, yb = train_test_split(X, y, test_size=0.25, random_state=seed)
        model = dn.PrivateClassifier(advantage=target).fit(a, ya)
        found.append((roc_auc_score(yb, model.predict_proba(b)[:, 1]), model.score(b, yb)))
    assert (np.mean(found, axis=0) >= (auc, accuracy)).all()


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    model = dn.PrivateClassifier(advantage=0.9, ranges=dict.fromkeys(range(4), (0, 8))).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3)
    assert model.score(X, y) > 0.6
    known = dn.PrivateClassifier(classes=[0, 1, 2, 3]).fit(X, y)
    assert known.predict_proba(X).shape == (150, 4)


def test_regression_learns():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    scores = []
    for seed in range(3):
        a, b, ya, yb = train_test_split(X, y, test_size=0.25, random_state=seed)
        scores.append(dn.PrivateRegressor(advantage=0.462).fit(a, ya).score(b, yb))
    assert np.mean(scores) > 0.25


def test_interactions_find_what_acts_together():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6000, 6))
    y = 2 * X[:, 0] * X[:, 1] + 2 * np.sign(X[:, 2]) * X[:, 3] + rng.logistic(size=6000) > 0
    model = dn.PrivateClassifier(advantage=0.3, interactions=2).fit(X[:4000], y[:4000])
    assert sorted(pair.names for pair in model.model_.pairs) == [("0", "1"), ("2", "3")]
    assert roc_auc_score(y[4000:], model.predict_proba(X[4000:])[:, 1]) > 0.75
    figure = model.plot(["0 × 1", 4])
    assert len(figure.axes) == 3  # one says what the colours of the pair mean


def test_few_records_are_a_warning():
    X, y = load_iris(return_X_y=True)
    for _ in range(8):  # whatever the noise makes of the 15 records
        with pytest.warns(TrainingWarning, match="smallest count"):
            dn.PrivateClassifier().fit(X[::10], y[::10])


FRAME, Y = table(100, 8)


def test_a_class_of_zero_has_no_sign():
    """Whether one record of a class says 0.0 or −0.0 shows in no list of classes."""
    X, y = pd.DataFrame({"a": range(100)}), np.array([0.0, 1.0] * 50)
    lists = []
    for first in (-0.0, 0.0):
        y[0] = first
        lists.append(dn.PrivateClassifier(advantage=0.5).fit(X, y).classes_)
    assert [np.signbit(one).any() for one in lists] == [False, False]


def test_sums_are_exact_for_a_wide_clip_or_refused():
    units = SimpleNamespace(total=lambda _: 2**35, heaviest=1)
    task = Task(SimpleNamespace(units=units), 1.0, SimpleNamespace(n_rows=9), np.zeros(9), ClippedSquared(clip=16.0))
    with pytest.raises(dn.InputError, match="exact sums"):
        task.columns(None, "additive")


@pytest.mark.parametrize("classes", [[False, True], [0, 1], [0.0, 1.0], [0, 1, 2]])
def test_listed_classes_match_by_value(classes):
    """Truth values listed for a target of 0 and 1 matched no record, in silence."""
    X = pd.DataFrame({"u": np.random.default_rng(0).random(2000)})
    for y in (X.u > 0.5, (X.u > 0.5).astype(int), (X.u > 0.5).astype(float), (X.u > 0.5).astype(object)):
        fitted = dn.PrivateClassifier(advantage=0.5, classes=classes, ranges={"u": (0, 1)}).fit(X, y)
        assert fitted.score(X, y.astype(int)) > 0.9
    words = dn.PrivateClassifier(advantage=0.5, classes=["0", "true"], ranges={"u": (0, 1)})
    assert words.fit(X, np.where(X.u > 0.5, "true", "0")).classes_.tolist() == ["0", "true"]


@pytest.mark.parametrize("group", [np.arange(300), True, ["who"], 1.5])
def test_what_names_no_column_of_persons_is_refused_in_our_words(group):
    table, y = pd.DataFrame({"x": np.arange(300.0), "who": 1}), np.arange(300) % 2
    for X in (table, table.to_numpy()):
        with pytest.raises(dn.InputError, match=r"group .* is not a column"):
            dn.PrivateRegressor(group=group).fit(X, y)
    with pytest.raises(dn.InputError, match="has no column '1'"):
        dn.release_statistics(table, "count()", advantage=0.5, group=1)
    with pytest.warns(SynthesisWarning):
        assert dn.PrivateSynthesizer(targets=None).fit(table).n_ > 0
