"""Profiles of mechanisms whose law is only bounded or sampled say so, and have no transition band."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deniable as dn
from deniable.records import ObjectivePerturbation, OutputPerturbation


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 3))
    return features / np.linalg.norm(features, axis=1).max(), rng.integers(0, 2, 80)


def test_objective_perturbation(rows):
    profile = dn.privacy_profile(
        *rows, regularization=0.05, mechanism=ObjectivePerturbation(epsilon=1.0), n_samples=200, rng=0
    )
    section = dn.assess(profile).sections[0]
    assert "95\u00a0% confidence" in section.summary
    assert "exact" not in section.summary
    assert section.curves[0].label == "most exposed record, upper bound"
    assert all(series.key != "transition" for series in section.series)


GAUSSIAN = {"noise": "gaussian", "delta": 1e-5}


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [
        (OutputPerturbation(epsilon=1.0), "norm-Laplace noise of ε = 1"),
        (OutputPerturbation(epsilon=2.5, **GAUSSIAN), "Gaussian noise of ε = 2.5, δ = 1e-05"),
        (OutputPerturbation(scale=0.25), "norm-Laplace noise of scale 0.25"),
        (ObjectivePerturbation(epsilon=1.0), "norm-Laplace noise of ε = 1 in its objective"),
    ],
)
def test_the_bound_is_said_to_be_of_a_release_with_noise_wherever_it_is_said(rows, mechanism, noise):
    options = {"n_samples": 200} if isinstance(mechanism, ObjectivePerturbation) else {}
    profile = dn.privacy_profile(*rows, regularization=0.05, mechanism=mechanism, rng=0, **options)
    made = dn.assess(profile)
    assert f"if released with {noise}" in made.title
    assert f"only if it is released with {noise}: at even odds, the most exposed record" in made.headline
    found = json.loads(made.to_json())
    (section,) = found["sections"]
    assert f"if the model is released with {noise}, and never without" in section["summary"]
    assert f"with {noise}" in section["numbers"][0]["meaning"]
    assert noise in found["assumptions"]["access"]
    assert found["not_covered"][0] == "The fitted model without that noise: nothing is proven about it."
    assert "what prepared them is not covered" in found["assumptions"]["notes"][-1]
    assert "released with the noise stated" in found["decision"]["reason"]
    for text in (str(made), made.to_html(), str(profile), profile._repr_html_()):
        assert noise in text.replace("\n", " ").replace("  ", " ")


def test_a_page_of_a_pipelines_profile_says_what_was_taken_as_fixed(rows):
    model = make_pipeline(StandardScaler(), LogisticRegression(fit_intercept=False, tol=1e-10)).fit(*rows)
    profile = dn.profile_estimator(model, *rows, mechanism=OutputPerturbation(scale=0.1), rng=0)
    assert any("preprocessing was taken as fixed" in note for note in dn.assess(profile).assumptions.notes)


def test_output_perturbation(rows):
    profile = dn.privacy_profile(*rows, regularization=0.05, mechanism=OutputPerturbation(epsilon=1.0))
    section = dn.assess(profile).sections[0]
    assert "the exact law of the noise" in section.summary
    assert any(series.key == "transition" for series in section.series)
