"""Mechanisms: validated, frozen, composable."""

import pytest

import deniable as dn


def test_composition_flattens_and_adds():
    a, b, c = dn.GaussianDP(1.0), dn.SubsampledGaussian(1.0, 0.1, 10), dn.PureDP(0.5)
    assert (a + b + c).mechanisms == (a, b, c)
    assert dn.Composition([a, dn.Composition([b, c])]) == a + b + c


def test_every_curve_says_what_its_worlds_differ_in():
    run = dn.SubsampledGaussian(1.0, 0.1, 10)
    assert run.adjacency == (run + dn.PureDP(1.0)).adjacency == "add-remove"
    assert dn.tradeoff(run).assumptions.adjacency == "add or remove one record"
    assert dn.tradeoff(run, adjacency="replace").assumptions.adjacency == "replace one record"
    with pytest.raises(dn.InputError, match="adjacency must be 'add-remove' for this mechanism, got 'zero-out'"):
        dn.tradeoff(dn.PureDP(1.0), adjacency="zero-out")
    zeroed = dn.tradeoff(run, adjacency="zero-out")
    assert zeroed.advantage() == dn.tradeoff(run).advantage()
    assert "contribution of one record" in zeroed.assumptions.adjacency
    with pytest.raises(dn.InputError, match="one adjacency, got add-remove, zero-out"):
        dn.tradeoff(dn.PureDP(1.0) + dn.ShuffledBatches(1.0, 10))
    with pytest.raises(dn.InputError, match="adjacency must be one of"):
        dn.tradeoff(run, adjacency="remove")
