"""DP-EBM in: the exact curve from the noise scales of a fitted model, and the models that are refused."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import deniable as dn

COLUMNS, ROUNDS, EPSILON, DELTA = 30, 300, 1.0, 1e-5
KNOWN = ("count", "bounds", "types")


def gaussian_mu(epsilon, delta):
    """μ of Gaussian DP that is just (ε, δ)-DP: an independent root search."""
    return brentq(
        lambda mu: norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta,
        1e-4, 50,
    )  # fmt: skip


class DPExplainableBoostingClassifier(SimpleNamespace):
    """The shape of a fitted model of interpret-core 0.7.8."""


class DPExplainableBoostingRegressor(SimpleNamespace):
    pass


def fitted(weight=1.0, composition="gdp", **changes):
    if composition == "gdp":
        bins = math.sqrt(COLUMNS) / gaussian_mu(0.1 * EPSILON, DELTA / 2)
        boosts = math.sqrt(COLUMNS * ROUNDS) / gaussian_mu(0.9 * EPSILON, DELTA / 2)
    else:
        bins = math.sqrt(8 * COLUMNS * math.log(math.e + 0.1 * EPSILON / (DELTA / 2))) / (0.1 * EPSILON)
        boosts = math.sqrt(8 * COLUMNS * ROUNDS * math.log(math.e + 0.9 * EPSILON / (DELTA / 2))) / (0.9 * EPSILON)
    values = {
        "has_fitted_": True, "random_state": None, "n_features_in_": COLUMNS,
        "term_features_": [(i,) for i in range(30)],
        "max_rounds": ROUNDS, "outer_bags": 1, "best_iteration_": np.array([[COLUMNS * ROUNDS]]),
        "objective": "log_loss",
        "classes_": np.array([0, 1]), "validation_size": 0, "epsilon": EPSILON, "delta": DELTA, "bin_budget_frac": 0.1,
        "composition": composition, "learning_rate": 0.01, "noise_scale_binning_": bins * weight,
        "noise_scale_boosting_": boosts * 0.01 * weight, "feature_types_in_": ["continuous"] * COLUMNS,
        "feature_types": None, "privacy_bounds": None,
    }  # fmt: skip
    return DPExplainableBoostingClassifier(**{**values, **changes})


def test_both_releases_are_composed_exactly():
    run = dn.integrations.from_interpret(fitted(), public=KNOWN)
    parts = gaussian_mu(0.1 * EPSILON, DELTA / 2), gaussian_mu(0.9 * EPSILON, DELTA / 2)
    assert run.mu == pytest.approx(math.hypot(*parts), rel=1e-9)
    assert run.replacing_mu == pytest.approx(math.sqrt(2 * parts[0] ** 2 + 4 * parts[1] ** 2), rel=1e-9)
    assert run.tradeoff().epsilon(DELTA) < EPSILON  # tighter than the promise, which adds the two parts
    assert run.tradeoff().advantage() == dn.tradeoff(dn.GaussianDP(run.mu)).advantage()
    assert run.tradeoff().advantage() < dn.bounds.advantage(EPSILON, delta=DELTA)
    assert run.replacing().advantage() > run.tradeoff().advantage()
    assert any("number of records" in note for note in run.tradeoff().assumptions.notes)


def test_it_becomes_a_report():
    run = dn.integrations.from_interpret(fitted(), public=KNOWN)
    made = dn.assess(run)
    assert made.numbers["bound.advantage"].value == run.tradeoff().advantage()
    assert "stated to be (1, 1e-05)-DP" in made.title
    assert any("number of records" in note for note in made.assumptions.notes)


def test_classic_composition_is_tightened_most():
    classic, gdp = (
        dn.integrations.from_interpret(fitted(composition="classic"), public=KNOWN),
        dn.integrations.from_interpret(fitted(), public=KNOWN),
    )
    assert classic.mu < gdp.mu / 2


def test_weights_cancel_but_have_to_be_public():
    with pytest.raises(dn.InputError, match="weights"):
        dn.integrations.from_interpret(fitted(weight=3.0), public=KNOWN)
    assert dn.integrations.from_interpret(fitted(weight=3.0), public=(*KNOWN, "weights")).mu == pytest.approx(
        dn.integrations.from_interpret(fitted(), public=KNOWN).mu, rel=1e-6
    )


@pytest.mark.parametrize(
    ("model", "public", "message"),
    [
        (fitted(), (), "'count'.*'bounds'.*'types'"),
        (fitted(feature_types=["continuous"] * 30, privacy_bounds=[(0, 1)] * 30), (), "'count'"),
        (fitted(privacy_bounds=[(0, math.nan)] * 30), ("count", "types"), "'bounds'"),
        (fitted(feature_types_in_=["nominal"] + ["continuous"] * 29), KNOWN, "'categories'"),
        (fitted(), ("everything",), "public must be a list"),
        (fitted(random_state=0), KNOWN, "random_state"),
        (fitted(epsilon=2.0), KNOWN, "do not follow"),
        (fitted(term_features_=[(0,)]), KNOWN, "more steps"),
        (fitted(noise_scale_boosting_=math.nan), KNOWN, "do not follow"),
        (fitted(composition="other"), KNOWN, "composition must be"),
        (fitted(objective="hinge"), KNOWN, "objective"),
        (fitted(validation_size=0.1), KNOWN, "validation_size"),
        (fitted(has_fitted_=False), KNOWN, "must be fitted"),
        (DPExplainableBoostingRegressor(), KNOWN, "must be a classifier"),
        (object(), KNOWN, "must be interpret's"),
    ],
)
def test_what_cannot_be_known_is_refused(model, public, message):
    with pytest.raises(dn.InputError, match=message):
        dn.integrations.from_interpret(model, public=public)


@pytest.mark.filterwarnings("ignore")
def test_a_real_model():
    privacy = pytest.importorskip("interpret.privacy")
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (300, 3))
    y = (X[:, 0] + rng.normal(0, 0.2, 300) > 0.5).astype(int)
    settings = dict(
        epsilon=2.0, delta=1e-4, max_rounds=20, privacy_bounds=[(0, 1)] * 3, feature_types=["continuous"] * 3
    )
    model = privacy.DPExplainableBoostingClassifier(**settings).fit(X, y)
    run = dn.integrations.from_interpret(model, public=("count",))
    assert run.public == ("count",)
    assert run.mu == pytest.approx(math.hypot(gaussian_mu(0.2, 5e-5), gaussian_mu(1.8, 5e-5)), rel=1e-6)
    assert run.tradeoff().epsilon(1e-4) < 2.0
    weighted = privacy.DPExplainableBoostingClassifier(**settings).fit(X, y, sample_weight=np.linspace(0.5, 2, 300))
    assert dn.integrations.from_interpret(weighted, public=("count", "weights")).mu == pytest.approx(run.mu, rel=1e-6)
    classic = privacy.DPExplainableBoostingClassifier(**settings, composition="classic").fit(X, y)
    assert dn.integrations.from_interpret(classic, public=("count",)).mu < run.mu
    with pytest.raises(dn.InputError, match="random_state"):
        dn.integrations.from_interpret(
            privacy.DPExplainableBoostingClassifier(**settings, random_state=1).fit(X, y), public=("count",)
        )
