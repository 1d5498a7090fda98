"""One adapter per kind of source: options are checked against it, and a new kind needs one function and its row."""

import pytest

import deniable as dn
from deniable.report.model import Assessment
from deniable.workflows import assessing, run


def test_a_new_kind_of_source_is_one_function_and_one_row(monkeypatch):
    class Coin:
        pass

    def assess_coin(source, asked, *, sides=2):
        return run.assess_mechanism(dn.PureDP(float(sides)), asked)

    Coin.__module__ = "deniable.coins"
    monkeypatch.setattr(run, "assess_coin", assess_coin, raising=False)
    monkeypatch.setitem(assessing._ADAPTERS, ("Coin",), ("run", "assess_coin", "a coin"))
    found = dn.assess(Coin(), sides=3, prior=0.2)
    assert isinstance(found, Assessment)
    assert found.numbers["bound.advantage"].value == dn.tradeoff(dn.PureDP(3.0)).advantage()
    assert found.decision is not None
    assert assessing.adapter_for(Coin()).options == ["sides"]
    with pytest.raises(dn.InputError, match="a coin has no 'side'; did you mean 'sides'"):
        dn.assess(Coin(), side=1)


def test_subclasses_are_found_by_their_nearest_kind():
    class Mine(dn.PureDP):
        pass

    assert dn.assess(Mine(1.0)).numbers["bound.advantage"].value == dn.tradeoff(dn.PureDP(1.0)).advantage()
