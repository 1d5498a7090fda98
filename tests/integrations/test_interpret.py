"""DP-EBM in: the exact curve from the noise scales of a fitted model, and the models that are refused."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import deniable as dn

COLUMNS, ROUNDS, EPSILON, DELTA = 30, 300, 1.0, 1e-5
KNOWN = ("count", "bounds", "types", "classes", "fit")


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
        "feature_types": None, "privacy_bounds": None, "feature_names_in_": [f"x{i}" for i in range(COLUMNS)],
        "feature_bounds_": np.tile([0.0, 1.0], (COLUMNS, 1)), "bag_weights_": np.array([400.0]),
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
        (fitted(feature_types=["continuous"] * 30, privacy_bounds=[(0, 1)] * 30), (), "'count'.*'classes'.*'fit'"),
        (fitted(), ("count", "bounds", "types", "classes"), "'fit': that fit\\(\\) was given no bags=, no init_score="),
        (fitted(privacy_bounds=[(0, math.nan)] * 30), ("count", "types", "classes", "fit"), "'bounds'"),
        (fitted(privacy_bounds={"X0": (0, 1)} | {i: (0, 1) for i in range(1, 30)}), ("count",), "'bounds'"),
        (fitted(privacy_bounds=[(0, 2)] * 30), ("count",), "'bounds'"),  # changed after the fit
        (fitted(feature_types=["auto"] * 30), ("count",), "'types'"),
        (fitted(feature_types=[4] * 30), ("count",), "'types'"),
        (fitted(bag_weights_=np.array([399.5])), KNOWN, "'weights'"),
        (fitted(max_rounds=0, best_iteration_=np.zeros((1, 1))), KNOWN, "at least one term"),
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


ORDER = ["count", "bounds", "types", "categories", "weights", "classes", "fit"]


@pytest.fixture
def real():
    """interpret's class, and settings under which it states (2, 1e-4) for three columns in [0, 1]."""
    privacy = pytest.importorskip("interpret.privacy")
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (300, 3))
    y = (X[:, 0] + rng.normal(0, 0.2, 300) > 0.5).astype(int)
    settings = dict(
        epsilon=2.0, delta=1e-4, max_rounds=20, privacy_bounds=[(0, 1)] * 3, feature_types=["continuous"] * 3
    )
    return privacy.DPExplainableBoostingClassifier, X, y, settings


@pytest.mark.filterwarnings("ignore")
def test_a_real_model(real):
    make, X, y, settings = real
    model = make(**settings).fit(X, y)
    asked = ("count", "classes", "fit")
    run = dn.integrations.from_interpret(model, public=asked)
    assert run.public == asked
    assert run.mu == pytest.approx(math.hypot(gaussian_mu(0.2, 5e-5), gaussian_mu(1.8, 5e-5)), rel=1e-6)
    assert run.tradeoff().epsilon(1e-4) < 2.0
    weighted = make(**settings).fit(X, y, sample_weight=np.linspace(0.5, 2, 300))
    assert dn.integrations.from_interpret(weighted, public=(*asked, "weights")).mu == pytest.approx(run.mu, rel=1e-6)
    classic = make(**settings, composition="classic").fit(X, y)
    assert dn.integrations.from_interpret(classic, public=asked).mu < run.mu
    with pytest.raises(dn.InputError, match="random_state"):
        dn.integrations.from_interpret(make(**settings, random_state=1).fit(X, y), public=asked)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", [{"epsilon": 20.0}, {"epsilon": 60.0}, {"delta": 1e-12}, {"delta": 1e-14}])
def test_real_models_are_read_where_interpret_solves_for_its_noise_with_rounding_errors(change, real):
    make, X, y, settings = real
    model = make(**settings | change).fit(X, y)
    run = dn.integrations.from_interpret(model, public=("count", "classes", "fit"))
    scales = 3 / model.noise_scale_binning_**2, 60 * (0.01 / model.noise_scale_boosting_) ** 2
    assert run.mu == pytest.approx(math.sqrt(sum(scales)), rel=1e-6)
    assert run.mu >= math.sqrt(sum(scales))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("bounds", "held"),
    [
        ({0: (0, 1), "feature_0001": (0, 1), 2: (0, 1)}, True),
        ({"Age": (0, 1), 1: (0, 1), 2: (0, 1)}, False),
        ({0: (0, 1), 1: (0, 1), 2: (0, math.nan)}, False),
        ({0: None, "feature_0000": (0, 1), 1: (0, 1), 2: (0, 1)}, True),
        (np.array([[0, 1], [0, 1], [0, 1]]), True),
    ],
)
def test_bounds_are_found_as_interpret_finds_them(bounds, held, real):
    make, X, y, settings = real
    model = make(**settings | {"privacy_bounds": bounds}).fit(X, y)
    read = ("count", "classes", "fit", *(() if held else ("bounds",)))
    assert dn.integrations.from_interpret(model, public=read).public == tuple(sorted(read, key=ORDER.index))
    if not held:
        with pytest.raises(dn.InputError, match="'bounds': the smallest and largest"):
            dn.integrations.from_interpret(model, public=("count", "classes", "fit"))


@pytest.mark.filterwarnings("ignore")
def test_no_bounds_are_asked_for_nominal_columns(real):
    make, X, y, settings = real
    mixed = np.array([[a, b, "uvw"[i % 3]] for i, (a, b, _) in enumerate(X)], dtype=object)
    kinds = ["continuous", "continuous", "nominal"]
    bounds = np.array([[0, 1], [0, 1], [np.nan, np.nan]])
    model = make(**settings | {"privacy_bounds": bounds, "feature_types": kinds}).fit(mixed, y)
    read = ("count", "categories", "classes", "fit")
    assert dn.integrations.from_interpret(model, public=read).public == read


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kinds", [["auto"] * 3, ["continuous", "continuous", "quantile"], ["continuous", 4, None]])
def test_kinds_that_interpret_infers_are_asked_for(kinds, real):
    make, X, y, settings = real
    model = make(**settings | {"feature_types": kinds}).fit(X, y)
    with pytest.raises(dn.InputError, match="'types'"):
        dn.integrations.from_interpret(model, public=("count", "classes", "fit"))


@pytest.mark.filterwarnings("ignore")
def test_copies_and_scores_leave_no_trace_so_that_they_are_asked_about(real):
    """A hundred copies of one record move every sum by a hundred: nothing but the caller knows."""
    make, X, y, settings = real
    once = np.ones((300, 1), dtype=int)
    once[0] = 100
    for told in ({"bags": once}, {"init_score": np.full(300, 2.0)}):
        model = make(**settings).fit(X, y, **told)
        with pytest.raises(dn.InputError, match="'fit': that fit"):
            dn.integrations.from_interpret(model, public=("count", "classes"))


@pytest.mark.filterwarnings("ignore")
def test_without_its_only_record_of_a_class_another_model_is_fitted(real):
    """Why the classes have to be public: every score is then −∞, whatever the noise."""
    make, X, y, settings = real
    alone = np.zeros_like(y)
    assert np.isneginf(make(**settings).fit(X, alone).intercept_).all()
    alone[0] = 1
    model = make(**settings).fit(X, alone)
    assert np.isfinite(model.intercept_).all()
    with pytest.raises(dn.InputError, match="'classes'"):
        dn.integrations.from_interpret(model, public=("count", "fit"))
