"""Profiles of mechanisms whose law is only bounded or sampled say so, and have no transition band."""

import numpy as np
import pytest

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


def test_output_perturbation(rows):
    profile = dn.privacy_profile(*rows, regularization=0.05, mechanism=OutputPerturbation(epsilon=1.0))
    section = dn.assess(profile).sections[0]
    assert "the exact law of the noise" in section.summary
    assert any(series.key == "transition" for series in section.series)
