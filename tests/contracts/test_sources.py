"""``assess`` is one door: every kind of source is registered, typed, and refuses what does not apply to it in words."""

import importlib
import inspect

import pytest

import deniable as dn
from deniable.workflows import assessing
from deniable.workflows.assessing import Options, assess

ADAPTERS = {
    what: assessing.Adapter(what, getattr(importlib.import_module(f"deniable.workflows.{module}"), function))
    for module, function, what in assessing._ADAPTERS.values()
}


def test_the_options_of_every_kind_are_typed_and_no_others():
    named = {*inspect.signature(assess).parameters, *Options.__annotations__} - {"source", "options"}
    assert named == {name for adapter in ADAPTERS.values() for name in adapter.options} | set(assessing.COMMON)


@pytest.mark.parametrize("what", sorted(ADAPTERS))
def test_an_unknown_option_is_refused_with_those_that_are_known(what):
    adapter = ADAPTERS[what]
    with pytest.raises(dn.InputError) as error:
        adapter(None, None, {"n_sample": 3})
    for name in [*assessing.COMMON, *adapter.options]:
        assert name in str(error.value)
    assert ("did you mean 'n_samples'" in str(error.value)) == ("n_samples" in adapter.options)


def test_options_are_typed():
    made = {what: inspect.signature(adapter.make).parameters.values() for what, adapter in ADAPTERS.items()}
    assert [(what, p.name) for what, parameters in made.items() for p in parameters if p.annotation is p.empty] == []
