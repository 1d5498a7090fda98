"""Attacks on a model that is already trained, with shadows or without, and the records that are exposed most."""

import numpy as np
import pytest
import scipy.sparse
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deniable as dn
from deniable.audit import AttackScores
from deniable.audit.shadow import signals


@pytest.fixture(scope="module")
def trained(credit):
    X, y = credit
    member = np.random.default_rng(0).random(len(y)) < 0.5
    return RandomForestClassifier(50, random_state=0).fit(X[member], y[member]), X, y, member


@pytest.mark.parametrize(("method", "least"), [("lira", 0.5), ("quantile", 0.3), ("loss", 0.3)])
def test_a_forest_is_found_out(trained, method, least):
    scores = dn.attack_model(*trained, method=method, n_shadows=8, rng=0)
    assert scores.audit().advantage().low > least
    assert scores.method.startswith(method)
    assert set(scores.details["member_records"]) <= set(np.flatnonzero(trained[3]))


def test_shadows_are_what_the_attack_on_an_estimator_uses(trained):
    """The same shadows, and a target of one's own: the scores are those of the definition."""
    model, X, y, member = trained
    own = dn.attack_model(model, X, y, member, method="calibrated", n_shadows=8, rng=1)
    other = dn.attack_model(model, X, y, member, method="calibrated", n_shadows=8, rng=1, estimator=model)
    np.testing.assert_array_equal(own.member_scores, other.member_scores)
    auto = dn.attack_model(model, X, y, member, n_shadows=8, rng=1)
    assert set(auto.details["rehearsed"]) >= {"lira", "rmia"}


@pytest.mark.filterwarnings("ignore::deniable.audit.ReversedScoresWarning")  # 2.5 % of null scores are warned of
@pytest.mark.parametrize("method", ["lira", "quantile"])
def test_a_model_that_saw_nobody_shows_nothing(method):
    rng, shown = np.random.default_rng(2), []
    for seed in range(10):
        X = rng.normal(size=(500, 4))
        y = (X[:, 0] + rng.normal(size=500) > 0).astype(int)
        member = rng.random(300) < 0.5  # a claim about records that the model never saw
        model = LogisticRegression().fit(X[300:], y[300:])
        scores = dn.attack_model(model, X[:300], y[:300], member, method=method, n_shadows=4, rng=seed)
        shown.append(scores.audit().epsilon().low > 0)
    assert np.sum(shown) <= stats.binom.ppf(1 - 1e-3, 10, 0.05)


def test_a_function_needs_to_be_told_how_shadows_are_trained(trained):
    model, X, y, member = trained
    with pytest.raises(dn.InputError, match="estimator must be given for method 'auto'"):
        dn.attack_model(model.predict_proba, X, y, member, rng=0)


def test_what_is_never_fitted_anew_has_no_shadows(trained):
    """A calibrated frozen forest leaks what the forest leaks; shadows that share the forest do not show it."""
    forest, X, y, member = trained
    frozen = CalibratedClassifierCV(FrozenEstimator(forest)).fit(X, y)
    for attack in (
        lambda: dn.attack_estimator(frozen, X, y, n_shadows=8),
        lambda: dn.attack_model(make_pipeline(StandardScaler(), FrozenEstimator(forest)).fit(X, y), X, y, member),
        lambda: dn.assess(frozen, X, y, n_shadows=8),
    ):
        with pytest.raises(dn.InputError, match="its FrozenEstimator never is"):
            attack()


@pytest.mark.parametrize("spelled", [lambda y: y + 1, lambda y: y.astype(str)])
def test_labels_that_the_model_does_not_know_are_refused(trained, spelled):
    model, X, y, member = trained
    for method in ("loss", "quantile"):
        with pytest.raises(dn.InputError, match="labels that the model was trained on"):
            dn.attack_model(model, X, spelled(y), member, method, 8, rng=0)


def test_classes_in_any_order_are_found_by_their_label():
    p, y = np.array([[0.1, 0.2, 0.7]] * 3), np.array(["no", "yes", "maybe"])
    got = signals(lambda X: p, np.array(["yes", "maybe", "no"]), None, y)
    np.testing.assert_allclose(got, np.log([7 / 3, 1 / 9, 1 / 4]))


def test_sparse_records_are_attacked_like_dense_ones():
    rng = np.random.default_rng(5)
    X = np.where(rng.random((120, 30)) < 0.1, 1.0, 0.0)
    y = (X.sum(axis=1) + rng.normal(size=120) > 3).astype(int)
    model = MultinomialNB()
    dense, sparse = (dn.attack_estimator(model, Z, y, "lira", 8, rng=0) for Z in (X, scipy.sparse.coo_array(X)))
    np.testing.assert_allclose(dense.member_scores, sparse.member_scores)
    fitted = model.fit(X[:60], y[:60])
    own = [dn.attack_model(fitted, Z, y, np.arange(120) < 60, "rmia", 8, rng=0) for Z in (X, scipy.sparse.csr_array(X))]
    np.testing.assert_allclose(own[0].nonmember_scores, own[1].nonmember_scores)
    with pytest.raises(dn.InputError, match="dense array"):
        dn.audit.canaries(scipy.sparse.csr_array(X), y)


def simulated(n_records, n_targets, exposed, rng):
    """Scores of records of which ``exposed`` are always found and the others never."""
    member = rng.random((n_targets, n_records)) < 0.5
    scores = rng.normal(size=member.shape) + np.where(np.isin(np.arange(n_records), exposed), 8.0, 0.0) * (member - 0.5)
    records = np.broadcast_to(np.arange(n_records), member.shape)
    details = {"n_targets": n_targets, "member_records": records[member], "nonmember_records": records[~member]}
    return AttackScores(scores[member], scores[~member], "made up", "nothing", details)


def test_the_most_exposed_are_found_with_limits_for_all():
    exposed = [3, 44, 90]
    found = simulated(100, 24, exposed, np.random.default_rng(4)).most_exposed(5)
    assert set(found.record[:3]) == set(exposed)
    assert np.all(found.low[:3] > 0.5)
    assert np.all(found.low[3:] < 0.5)
    assert np.all(found.targets == 24)
    assert np.all((found.low < found.right / found.targets) & (found.right / found.targets <= found.high))


def test_limits_hold_for_all_records_together():
    wrong, uncorrected = 0, 0
    for seed in range(60):
        found = simulated(60, 16, [], np.random.default_rng(seed)).most_exposed(60)
        wrong += found.low.max() > 0.5
        uncorrected += stats.binomtest(int(found.right.max()), 16).proportion_ci(0.9).low > 0.5
    assert wrong <= stats.binom.ppf(1 - 1e-3, 60, 0.05)
    assert uncorrected > 40  # negative control: the interval of the luckiest record alone


def test_one_target_says_too_little(trained):
    with pytest.raises(dn.InputError, match="n_targets of 8 or more"):
        dn.attack_model(*trained, method="loss", n_shadows=4, rng=0).most_exposed()
    several = dn.attack_estimator(KNeighborsClassifier(), *trained[1:3], "loss", 4, rng=0, n_targets=3)
    assert len(several.most_exposed(4).record) == 4
