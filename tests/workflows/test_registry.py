"""One adapter per kind of source: options are checked against it, and a new kind needs one decorated function."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.report.model import Assessment
from deniable.workflows import registry, run
from deniable.workflows.registry import adapter_for, assesses


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dn.assess(dn.PureDP(1.0), n_sample=3), ["'n_sample'", "known are prior"]),
        (lambda: dn.assess("breast-cancer", epsilon=1), ["source must be", "train a PrivateClassifier"]),
        (lambda: dn.assess(dn.audit_scores([1.0] * 9, [0.0] * 9), bounds=None), ["did you mean 'bound'"]),
        (lambda: dn.assess(dn.PureDP(1.0), np.ones((3, 1)), np.ones(3)), ["X and y go with a fitted model"]),
        (lambda: dn.assess(object()), ["source must be"]),
        (lambda: dn.assess([1, 2]), ["source must be"]),
    ],
)
def test_unknown_options_and_sources_are_refused_in_words(call, words):
    with pytest.raises(dn.InputError) as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_new_kind_of_source_is_one_function():
    class Coin:
        pass

    try:

        @assesses(Coin, what="a coin")
        def assess_coin(source, asked, *, sides=2):
            return run.assess_mechanism(dn.PureDP(float(sides)), asked)

        found = dn.assess(Coin(), sides=3, prior=0.2)
        assert isinstance(found, Assessment)
        assert found.numbers["bound.advantage"].value == dn.tradeoff(dn.PureDP(3.0)).advantage()
        assert found.decision is not None
        assert adapter_for(Coin()).options == ["sides"]
        with pytest.raises(dn.InputError, match="a coin has no 'side'; did you mean 'sides'"):
            dn.assess(Coin(), side=1)
    finally:
        registry._FOUND.pop(registry._name(Coin), None)


def test_subclasses_are_found_by_their_nearest_kind():
    class Mine(dn.PureDP):
        pass

    assert dn.assess(Mine(1.0)).numbers["bound.advantage"].value == dn.tradeoff(dn.PureDP(1.0)).advantage()
