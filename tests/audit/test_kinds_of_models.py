"""Attacks on models with several outputs and rare classes."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier

import deniable as dn
from deniable.audit.shadow import balanced_design, with_every_class

X = np.random.default_rng(0).normal(size=(200, 12))


def test_several_outputs_are_attacked_one_at_a_time():
    with pytest.raises(dn.InputError, match=r"one label per row .* attack one of several outputs at a time"):
        dn.attack_estimator(Ridge(), X, X[:, :2])
    column = dn.attack_estimator(Ridge(1e-6), X, X[:, :1] + 1, n_shadows=8, rng=0)  # one output as a column is one
    assert len(column.member_scores) + len(column.nonmember_scores) == 200


@pytest.mark.parametrize("rare", [2, 3, 6])
def test_rare_classes_are_in_every_half(rare):
    y = (np.arange(100) < rare).astype(int)
    design = with_every_class(balanced_design(16, 100, np.random.default_rng(0)), y)
    assert (design.sum(axis=0) == 8).all()
    assert all(len(np.unique(y[row])) == 2 for row in design)
    scores = dn.attack_estimator(DecisionTreeClassifier(), X[:100], y, method="lira", n_shadows=16, rng=0)
    assert len(scores.member_scores) + len(scores.nonmember_scores) == 100
