"""One report with all three parts: what is proven of a run, a record profile, a measured attack."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import deniable as dn


@pytest.fixture(scope="session")
def whole():
    X, y = load_breast_cancer(return_X_y=True)
    rows = scale(X) / np.linalg.norm(scale(X), axis=1).max()
    mechanism, rng = dn.OutputPerturbation(epsilon=1.0), np.random.default_rng(0)
    profile = dn.privacy_profile(rows, y, regularization=1e-2, mechanism=mechanism, rng=0)
    scores = dn.audit_scores(rng.normal(0.1, 1, 2000), rng.normal(0, 1, 2000))
    bound = mechanism.guarantee()
    return dn.assess(bound, prior=0.1) + dn.assess(profile) + dn.assess(scores, bound=bound)
