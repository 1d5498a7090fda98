"""``dn.tradeoff`` of composed mechanisms: reference values, properties, hard corners, bad input."""

import numpy as np
import pytest

import deniable as dn

# design reference values: advantage and TPR at FPR 0.1, 0.01, 1e-3, 1e-5 by an independent high-resolution inversion
REFERENCE = {
    (1.0, 0.01, 5000): (0.3508330355, 0.35862566, 0.081618635, 0.015836315, 4.7042152e-4, 0.90083262),
    (0.5, 0.001, 10_000): (0.2421900607, 0.27257956, 0.059856059, 0.012933779, 6.1444746e-4, 0.90039621),
    (0.8, 0.02, 2500): (0.6295887512, 0.70064784, 0.31888637, 0.11545423, 1.0358932e-2, 0.92390963),
    (2.0, 0.05, 1000): (0.3231337531, 0.3292293, 0.06951146, 0.012615348, 3.3204265e-4, 0.90037004),
    (0.6, 1e-4, 1_000_000): (0.1529557064, 0.18632226, 0.02672249, 3.5700241e-3, 5.9322534e-5, 0.90000002),
    (5.0, 1.0, 500): (0.9746526813, 0.99929007, 0.98405505, 0.91649936, 0.5820908, 0.99307586),
}


@pytest.mark.parametrize("run", REFERENCE)
def test_reference_runs(run):
    advantage, *rates, accuracy = REFERENCE[run]
    trade = dn.tradeoff(dn.SubsampledGaussian(*run))
    assert trade.advantage() == pytest.approx(advantage, abs=1e-10)
    assert trade.advantage() - trade.advantage(side="lower") <= 1e-10
    fpr = np.array([0.1, 0.01, 1e-3, 1e-5])
    assert trade.tpr(fpr) == pytest.approx(np.array(rates), rel=5e-8)
    assert np.all(trade.tpr(fpr) - trade.tpr(fpr, side="lower") <= 1e-7 * trade.tpr(fpr))
    assert trade.accuracy(0.1) == pytest.approx(accuracy, abs=1e-8)


def test_directions_mean_what_they_mean_to_dp_accounting():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    peer = pld.from_gaussian_mechanism(1.0, sampling_prob=0.1, value_discretization_interval=1e-3)
    ours = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 1))
    assert ours.delta(0.05, "remove") == pytest.approx(peer._pmf_remove.get_delta_for_epsilon(0.05), rel=1e-6)
    assert ours.delta(0.05, "add") == pytest.approx(peer._pmf_add.get_delta_for_epsilon(0.05), rel=1e-6)
    assert ours.delta(0.05, "remove") > 2 * ours.delta(0.05, "add")  # the two are told apart


def test_external_epsilons_name_their_direction():
    trade = dn.tradeoff(dn.SubsampledGaussian(1.5, 0.04, 2250))
    assert trade.epsilon(1e-5, "remove") == pytest.approx(6.76878, abs=5e-6)
    assert trade.epsilon(1e-5, "add") == pytest.approx(6.17855, abs=5e-6)
    assert trade.epsilon(1e-5) == trade.epsilon(1e-5, "remove") <= 6.7774
    assert trade.inverse().epsilon(1e-5, "add") == pytest.approx(trade.epsilon(1e-5, "remove"), rel=1e-9)


@pytest.mark.parametrize("steps", [2, 3, 8, 20])
def test_sketches_of_few_steps_are_nearly_as_narrow(steps):
    t = dn.tradeoff(dn.SubsampledGaussian(0.5, 0.01, steps))
    fpr = [0.5, 1e-3, 1e-6]
    assert np.all(t.tpr(fpr, side="lower") <= t.sketch().tpr(fpr))
    assert np.all(t.sketch().tpr(fpr) <= np.multiply(t.tpr(fpr), 1.01))
