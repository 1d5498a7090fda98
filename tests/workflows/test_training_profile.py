"""Profiles of DP-SGD runs from gradient norms."""

import numpy as np
import pytest

import deniable as dn
from deniable import InputError
from deniable.workflows.training_profile import profile_training

RUN = dn.SubsampledGaussian(1.0, 0.05, 30)


def test_small_gradients_mean_small_exposure_and_none_exceeds_the_run():
    norms = np.outer([0.0, 0.1, 0.5, 1.0, 7.0], np.ones(30))
    profile = profile_training(norms, 1.0, RUN)
    assert profile.advantage()[0] == pytest.approx(0.0, abs=1e-9)
    assert np.all(np.diff(profile.advantage()) >= -1e-9)
    assert np.all(profile.advantage() <= profile.bound.advantage())
    assert profile.advantage()[3] == pytest.approx(profile.bound.advantage(), rel=1e-3)
    assert np.all(profile.tpr(0.01) <= profile.bound.tpr(0.01))
    assert set(profile.ranking()[:2]) == {3, 4}
    frame = profile.to_frame()
    assert "must not be published" in frame.attrs["warning"]
    assert profile.tradeoff(2).advantage() == pytest.approx(profile.advantage()[2])
    with pytest.raises(InputError, match="record"):
        profile.tradeoff(5)


def test_a_halved_gradient_is_a_doubled_noise():
    profile = profile_training(np.full((1, 30), 0.5), 1.0, RUN)
    alone = dn.tradeoff(dn.SubsampledGaussian(2.0, 0.05, 30))
    assert profile.advantage()[0] == pytest.approx(alone.advantage(), rel=1e-3)
    assert profile.advantage()[0] >= alone.advantage(side="lower")


def test_one_record_has_one_number_however_it_is_asked_for():
    norms = np.outer([0.0, 0.1, 0.5, 0.99, 1.0, 7.0], np.ones(30))
    profile = profile_training(norms, 1.0, RUN)
    for fpr in (1e-8, 1e-4, 1e-2, 0.3, 1.0):
        assert [profile.tradeoff(i).tpr(fpr) for i in range(len(profile))] == profile.tpr(fpr).tolist()
    assert [profile.tradeoff(i).advantage() for i in range(len(profile))] == profile.advantage().tolist()
    assert all(profile.tradeoff(i).delta(1.0) <= profile.bound.delta(1.0) for i in range(len(profile)))
