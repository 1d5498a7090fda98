"""A fitted model, its data and its noise in one report."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import deniable as dn
from deniable.records import ObjectivePerturbation, OutputPerturbation


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(120, 3))
    return features / np.linalg.norm(features, axis=1).max(), rng.integers(0, 2, 120)


@pytest.fixture(scope="module")
def model(rows):
    return LogisticRegression(C=0.2, fit_intercept=False, tol=1e-9).fit(*rows)


def test_bound_profile_and_attack_of_one_model(rows, model):
    mechanism = OutputPerturbation(epsilon=1.0)
    found = dn.assess(rows, model=model, mechanism=mechanism, n_samples=1000, rng=0)
    assert [section.key for section in found.sections] == ["bound", "risks", "records", "attack"]
    assert found.status == "consistent"
    assert found.title == "LogisticRegression on 120 records, released with ε = 1"
    profile = dn.profile_estimator(model, *rows, mechanism=mechanism)
    assert found.numbers["records.worst.advantage"].value == pytest.approx(profile.advantage().max(), rel=1e-12)
    assert found.numbers["bound.advantage"].value == pytest.approx(dn.tradeoff(dn.PureDP(1.0)).advantage(), rel=1e-12)


def test_gaussian_noise_of_a_given_scale_promises_nothing_over_all_data(rows):
    fitted = Ridge(alpha=5.0).fit(*rows)
    found = dn.assess(
        rows, model=fitted, mechanism=OutputPerturbation(scale=0.02, noise="gaussian"), n_samples=1000, rng=0
    )
    assert [section.key for section in found.sections] == ["records", "attack"]
    assert "for this very model" in found.headline
    assert found.status != "violated"


def test_objective_perturbation_is_profiled_and_not_attacked(rows, model):
    found = dn.assess(rows, model=model, mechanism=ObjectivePerturbation(epsilon=1.0), n_samples=100, rng=0)
    assert [section.key for section in found.sections] == ["bound", "risks", "records"]
    assert found.status == "bounded"


def test_a_simulator_with_too_little_noise_is_found_out(rows, model, monkeypatch):
    honest = OutputPerturbation.sample
    monkeypatch.setattr(
        OutputPerturbation, "sample", lambda self, centre, rate, rng: honest(self, centre, 5 * rate, rng=rng)
    )
    found = dn.assess(rows, model=model, mechanism=OutputPerturbation(epsilon=1.0), n_samples=5000, rng=0)
    assert found.status == "violated"


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (None, {}, "mechanism is missing"),
        ("breast-cancer", {"mechanism": OutputPerturbation(epsilon=1.0)}, r"pair \(X, y\)"),
    ],
)
def test_what_is_missing_is_named(rows, model, source, options, message):
    with pytest.raises(dn.InputError, match=message):
        dn.assess(rows if source is None else source, model=model, **options)
