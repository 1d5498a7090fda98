import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from optimal_attack import exact_membership
from sklearn.base import clone, is_classifier
from sklearn.cluster import KMeans
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.datasets import load_breast_cancer, load_diabetes, make_blobs
from sklearn.decomposition import PCA
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from deniable import InputError, MembershipPrivate
from deniable.noise import GaussianNoise
from deniable.testing import insecure_noise

X, Y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)[:, :6]
XD, YD = load_diabetes(return_X_y=True)
X, Y = X[::2], Y[::2]
QUICK = {"advantage": 0.2, "n_resamples": 40, "random_state": 0, "bound": "centre"}

ESTIMATORS = [
    LinearSVC(C=0.01),
    GaussianNB(),
    LinearRegression(),
    Ridge(1.0),
    PCA(2),
    EmpiricalCovariance(),
    LedoitWolf(),
    KMeans(2, n_init=1, max_iter=20, random_state=0),
    make_pipeline(StandardScaler(), HuberRegressor()),
    make_pipeline(PCA(1), GaussianNB()),
]


def outputs(model, rows):
    for name in ("predict_proba", "decision_function", "predict", "transform", "mahalanobis"):
        if hasattr(model, name):
            yield name, getattr(model, name)(rows)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_fit_clone_and_pickle(estimator):
    model = clone(MembershipPrivate(estimator, **QUICK)).fit(X, Y)
    assert model.certificate_.advantage <= 0.2
    assert model.certificate_.kind == "sampled"
    assert model.n_features_in_ == 6
    again = pickle.loads(pickle.dumps(model))
    answers = dict(outputs(model, X[:20]))
    assert answers
    for name, value in outputs(again, X[:20]):
        np.testing.assert_allclose(value, answers[name], rtol=1e-9, atol=1e-12)
        assert np.all(np.isfinite(value))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_with_hardly_any_noise_it_is_the_plain_estimator(estimator):
    """An advantage near 1 needs little noise: what is installed must predict like a plain fit on half of the data."""
    blobs, labels = make_blobs(400, n_features=3, centers=[[-6, 0, 0], [6, 0, 0]], random_state=0)
    model = MembershipPrivate(estimator, advantage=0.98, n_resamples=24, random_state=0).fit(blobs, labels)
    plain = clone(estimator).fit(blobs, labels)
    for name, value in outputs(model, blobs):
        expected = getattr(plain, name)(blobs)
        if name == "predict" and isinstance(estimator, KMeans):
            agree = np.mean(value == expected)
            assert max(agree, 1 - agree) > 0.99
        elif name == "predict" and hasattr(model, "classes_"):
            assert np.mean(value == expected) > 0.95
        elif name == "transform":  # components up to their sign
            columns = [abs(np.corrcoef(a, b)[0, 1]) for a, b in zip(value.T, expected.T, strict=True)]
            assert columns[0] > 0.95


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_training_residue(estimator):
    """Nothing on the object is a number that the fit on the training part produced, nor a row of the data."""
    with insecure_noise(np.random.default_rng(1)):
        model = MembershipPrivate(estimator, **QUICK).fit(X, Y)
    found = _numbers(model)
    train = np.sort(np.random.default_rng(1).permutation(len(X))[: model.certificate_.n_train])
    plain = clone(estimator).fit(X[train], Y[train])
    residue = {v for v in _numbers(plain) if v != round(v)} - {v for v in _numbers(estimator)}
    residue -= _numbers(np.unique(Y))
    assert residue
    assert not residue & found
    assert not set(np.unique(X).tolist()) & {v for v in found if v != round(v)}
    blob = pickle.dumps(model)
    for value in [*residue, *X[train[:50]].ravel().tolist()]:
        assert np.float64(value).tobytes() not in blob
    assert not any(hasattr(model.estimator_, name) for name in ("n_iter_", "labels_", "inertia_", "class_count_"))


def _numbers(thing, depth=0):
    """All floats reachable through attributes and containers."""
    if isinstance(thing, bool | str | bytes | type(None)) or depth > 6:
        return set()
    if isinstance(thing, int | float | np.number):
        return {float(thing)}
    if isinstance(thing, np.ndarray):
        return set(thing.ravel().astype(float).tolist()) if thing.dtype.kind in "fiub" else set()
    if isinstance(thing, dict):
        return set().union(*(_numbers(v, depth + 1) for v in thing.values())) if thing else set()
    if isinstance(thing, list | tuple | set):
        return set().union(*(_numbers(v, depth + 1) for v in thing)) if thing else set()
    return _numbers(vars(thing), depth + 1) if hasattr(thing, "__dict__") else set()


def test_a_poisson_regression_predicts_from_what_is_released():
    model = MembershipPrivate(PoissonRegressor(), **QUICK).fit(XD[:80, :2], np.arange(80) % 4)
    kept = model.estimator_
    np.testing.assert_allclose(model.predict(XD[:, :2]), np.exp(XD[:, :2] @ kept.coef_ + kept.intercept_))
    assert set(vars(kept)) - set(kept.get_params()) == {"coef_", "intercept_", "n_features_in_", "_base_loss"}


def test_residue_search_finds_a_residue():
    """Negative control of the test above."""
    model = MembershipPrivate(Ridge(), **QUICK).fit(XD, YD)
    model.estimator_.secret_ = {"a": [np.array([XD[3, 4]])]}
    assert XD[3, 4] in _numbers(model)
    assert XD[3, 4].tobytes() in pickle.dumps(model)


CHECKED = [
    LinearRegression(),
    Ridge(),
    LinearSVC(),
    GaussianNB(),
    KMeans(2, n_init=1),
    PCA(1),
    EmpiricalCovariance(),
]


@pytest.mark.parametrize("estimator", CHECKED, ids=lambda v: type(v).__name__)
def test_check_estimator(estimator, monkeypatch):
    """Every check of scikit-learn passes; one is skipped without the environment variable SCIPY_ARRAY_API."""
    # scores are checked, too, so regressions need enough resamples for little noise
    enough = {"n_resamples": 8, "confidence": 0.8} if is_classifier(estimator) else {"n_resamples": 32}
    model = MembershipPrivate(estimator, advantage=0.9, bound="centre", random_state=0, **enough)
    fit, tags = MembershipPrivate.fit, MembershipPrivate.__sklearn_tags__

    def repeated(self, X, y=None):  # some checks compare two fits
        with insecure_noise(np.random.default_rng(0)):
            return fit(self, X, y)

    def certain(self):  # else these checks are skipped
        found = tags(self)
        found.non_deterministic = False
        return found

    monkeypatch.setattr(MembershipPrivate, "fit", repeated)
    monkeypatch.setattr(MembershipPrivate, "__sklearn_tags__", certain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks hand in what estimators warn of
        results = check_estimator(model, on_fail=None, on_skip=None)
    assert len(results) > 35
    assert not {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"}
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


def test_without_thousands_of_fits_the_centre_is_the_default():
    model = MembershipPrivate(KMeans(3, n_init=1, random_state=0), advantage=0.4, n_resamples=40, random_state=0).fit(X)
    assert model.certificate_.bound == "centre"
    with pytest.raises(InputError, match="'centre'"):
        MembershipPrivate(Ridge(), advantage=0.2, bound="swap").fit(XD, YD)


def test_frames_and_text_labels():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    labels = np.where(Y == 1, "benign", "malignant")
    model = MembershipPrivate(GaussianNB(), **QUICK).fit(frame, labels)
    assert list(model.feature_names_in_) == list("abcdef")
    assert set(model.predict(frame)) <= {"benign", "malignant"}


def test_two_functions():
    def centroids(fitted):
        return fitted.centroids_

    def install(shell, array):
        shell.centroids_ = array
        shell.true_classes_ = shell.classes_
        shell.class_prior_ = np.array([0.5, 0.5])
        shell.deviations_, shell.within_class_std_dev_ = np.zeros_like(array), np.ones(array.shape[1])

    model = MembershipPrivate(
        NearestCentroid(), advantage=0.6, n_resamples=40, get_parameters=centroids, set_parameters=install
    ).fit(X, Y)
    assert model.score(X, Y) > 0.6


def test_covariance_matrices_are_projected():
    noisy = {"advantage": 0.1, "n_resamples": 100}
    with insecure_noise(np.random.default_rng(0)):
        raw = MembershipPrivate(EmpiricalCovariance(), project_psd=False, **noisy).fit(X)
    with insecure_noise(np.random.default_rng(0)):
        psd = MembershipPrivate(EmpiricalCovariance(), **noisy).fit(X)
    assert np.linalg.eigvalsh(raw.estimator_.covariance_)[0] < 0
    assert np.linalg.eigvalsh(psd.estimator_.covariance_)[0] > -1e-9


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MembershipPrivate(DecisionTreeClassifier(), advantage=0.2), "PrivateClassifier"),
        (MembershipPrivate(make_pipeline(PCA(1), LogisticRegression())), "PrivateClassifier"),
        (MembershipPrivate(Ridge(), advantage=0.0), "advantage"),
        (MembershipPrivate(Ridge(), advantage=0.2, noise="cauchy"), "noise"),
        (MembershipPrivate(Ridge(), advantage=0.2, get_parameters=len), "together"),
        (MembershipPrivate(Ridge(), advantage=0.002, n_resamples=20), "n_resamples"),
        (MembershipPrivate(PCA(9), advantage=0.2, n_resamples=48), "n_components"),
    ],
)
def test_bad_input_sets_nothing(model, message):
    with pytest.raises(InputError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "estimator_")


def test_what_cannot_be_released_by_its_parameters_names_the_way_out():
    from sklearn.utils import all_estimators

    data, target = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    for name, way in (
        ("RandomForestClassifier", "use deniable.PrivateClassifier"),
        ("LogisticRegression", "use deniable.PrivateClassifier"),
        ("SGDClassifier", "use deniable.PrivateClassifier"),
        ("KNeighborsRegressor", "use deniable.PrivateRegressor"),
        ("DBSCAN", "give get_parameters"),
        ("MinMaxScaler", "give get_parameters"),
    ):
        with pytest.raises(InputError, match=rf"estimator={name} .*{way}"):
            MembershipPrivate(dict(all_estimators())[name]()).fit(data, target)


def test_rare_classes_are_refused_from_the_whole_data_set():
    """The refusal must not depend on who trains: the same data are refused, or taken, every time."""
    labels = np.zeros(60)
    labels[:3] = 1
    with pytest.raises(InputError, match="a class has 3 of 60 and is missing from 12% of the parts of 30"):
        MembershipPrivate(LinearSVC(), **QUICK).fit(X[:60], labels)


def test_a_part_without_a_class_is_no_error():
    """Four records of a class: one part in twenty has none of them; that none of 100 lacks it has a chance of 0.6 %."""
    labels = np.zeros(60)
    labels[[3, 20, 40, 59]] = 1
    settings = QUICK | {"advantage": 0.8, "n_resamples": 100}
    model = MembershipPrivate(LinearSVC(C=0.1), **settings).fit(X[:60], labels)
    assert model.certificate_.holds
    assert list(model.classes_) == [0.0, 1.0]


def test_unset_random_states_are_seeded():
    scales = [
        MembershipPrivate(KMeans(2, n_init=1), advantage=0.6, n_resamples=24, random_state=seed)
        .fit(X[:60])
        .noise_scale_
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scales[0]["cluster_centers_"], scales[1]["cluster_centers_"])
    assert not np.array_equal(scales[0]["cluster_centers_"], scales[2]["cluster_centers_"])


def test_public_bounds_clip_the_columns_of_fits_and_predictions():
    rows, target = X[:60, :3], YD[:60]
    far = rows.copy()
    far[0] = [60.0, -200.0, 50.0]
    bounds = (rows.min(axis=0) - 1, rows.max(axis=0) + 1)
    kept = MembershipPrivate(Ridge(2.0), bounds=bounds, **QUICK).fit(far, target)
    np.testing.assert_array_equal(kept.predict(far), kept.predict(np.clip(far, *bounds)))
    for bad, word in (((1.0,), "pair"), ((2.0, 1.0), "low < high"), (([0, 0], [1, 1]), "each of 3 columns")):
        with pytest.raises(InputError, match=word):
            MembershipPrivate(Ridge(2.0), bounds=bad, **QUICK).fit(rows, target)


def test_the_optimal_attack_stays_below_the_certificate():
    rows = np.random.default_rng(8).normal(size=(10, 1))
    target = rows[:, 0] + np.random.default_rng(9).normal(size=10)
    estimator = LinearRegression(fit_intercept=False)
    model = MembershipPrivate(estimator, **QUICK | {"advantage": 0.4, "n_resamples": 256}).fit(rows, target)
    scale = model.noise_scale_["coef_"]

    def best_attack(law):
        found = exact_membership(lambda data: clone(estimator).fit(*data).coef_, (rows, target), law, tolerance=1e-4)
        return (found.worst - found.error) / 2

    assert 0 < best_attack(GaussianNoise(1.0, scale)) <= model.certificate_.advantage / 2 <= 0.2
    assert best_attack(GaussianNoise(1.0, scale / 20)) > 0.2  # negative control


def test_no_error_quotes_a_cell():
    rows = X[:60].astype(object)
    rows[3, 1] = "see Mueller file 4711"
    with pytest.raises(InputError, match="a cell is a text") as caught:
        MembershipPrivate(Ridge(), **QUICK).fit(rows, YD[:60])
    assert "Mueller" not in str(caught.value)
    assert caught.value.__context__ is None
