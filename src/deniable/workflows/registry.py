"""Which adapter assesses which kind of source: one adapter per kind, found by the classes of the source.

An adapter is a function ``adapter(source, asked, *, option=…)`` that returns an ``Assessment``; its keyword-only
parameters are the options of :func:`deniable.assess` for that kind of source. It registers itself::

    @assesses(PrivacyProfile, what="a record profile")
    def assess_profile(source, asked, *, group=None): ...

Adapters stand beside the libraries that they need and are imported when a source of theirs turns up.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from deniable._check import InputError, refuse_unknown
from deniable.report.model import Assessment
from deniable.report.sections import Asked

_A = TypeVar("_A", bound=Callable[..., Any])


@dataclass(frozen=True)
class Adapter:
    """A function from a source of one kind to its assessment."""

    what: str
    make: Callable[..., Assessment]

    @property
    def options(self) -> list[str]:
        """Names of the options of this kind of source."""
        parameters = inspect.signature(self.make).parameters.values()
        return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    def __call__(self, source: Any, asked: Asked, options: dict[str, Any]) -> Assessment:
        """Return the assessment; an option that this kind of source does not have is refused."""
        if {"X", "y"} & (set(options) - set(self.options)):
            raise InputError(f"X and y go with a fitted model, got {self.what}")
        refuse_unknown(f"assess of {self.what}", options, [*COMMON, *self.options])
        return self.make(source, asked, **options)


COMMON = ("prior", "fpr", "delta", "title", "command", "policy", "meta")
_FOUND: dict[str, Adapter] = {}
_TESTS: list[tuple[Callable[[Any], bool], Adapter]] = []

# package or module of a class → the module whose adapters assess its objects; the first match counts
_WHERE = {
    "deniable.mechanisms": "run",
    "deniable.curves": "run",
    "deniable.integrations.private_run": "run",
    "deniable.training.attack": "audited",
    "deniable.training": "private_model",
    "deniable.audit.sequential": "audited",
    "deniable.audit.checking": "audited",
    "deniable.audit.one_run": "audited",
    "deniable.audit": "results",
    "deniable.noise": "results",
    "deniable.statistics": "results",
    "deniable.records": "results",
    "sklearn": "fitted_estimator",
}


def assesses(*kinds: type | str, what: str, when: Callable[[Any], bool] | None = None) -> Callable[[_A], _A]:
    """Register the decorated function for objects of these classes, or for what ``when`` recognises.

    A class may be named by a text, ``"sklearn.base.BaseEstimator"``, so that it need not be imported.
    """

    def register(make: _A) -> _A:
        adapter = Adapter(what, make)
        for kind in kinds:
            _FOUND[kind if isinstance(kind, str) else _name(kind)] = adapter
        if when is not None:
            _TESTS.append((when, adapter))
        return make

    return register


def adapter_for(source: Any) -> Adapter:
    """Return the adapter of the nearest class of ``source``.

    Raises
    ------
    InputError
        If there is none; the message lists what can be assessed.
    """
    for kind in type(source).__mro__[:-1]:
        room = next((r for r in _WHERE if kind.__module__ == r or kind.__module__.startswith(r + ".")), None)
        if room is not None:
            importlib.import_module(f"deniable.workflows.{_WHERE[room]}")
        if adapter := _FOUND.get(_name(kind)):
            return adapter
    importlib.import_module("deniable.workflows.run")
    for recognises, adapter in _TESTS:
        if recognises(source):
            return adapter
    raise InputError(
        "source must be a mechanism, a trade-off, a record of a training run, a fitted model, or a result of deniable "
        f"(of a table: train a PrivateClassifier, or make its privacy_profile), got {source!r:.200}"
    )


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
