"""Results as a shell shows them; a notebook shows the same text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING

from deniable import testing
from deniable._shown import shown

if TYPE_CHECKING:
    from deniable.curves import Tradeoff

USUAL_FPRS = (0.1, 0.01, 0.001)


def lines(title: str, rows: Iterable[tuple[str, str]], notes: Sequence[str] = ()) -> str:
    """Return a title, rows of a name and a value, and remarks as text."""
    found = list(rows)
    wide = max((len(name) for name, _ in found), default=0)
    return "\n".join([title, *(f"  {name:<{wide}}  {value}" for name, value in found), *notes])


def as_html(text: str) -> str:
    """Return a text as a notebook shows it."""
    return f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'


def sentences(notes: Iterable[str]) -> list[str]:
    """Return notes as a text shows them; the mark of a test's noise stands in front of it already."""
    return [f"{note[0].upper()}{note[1:].rstrip('.')}." for note in notes if note != testing.INSECURE]


class Textual:
    """A result that has a text: a notebook shows the same, and both the mark of a test's noise."""

    @property
    def insecure(self) -> bool:
        """Whether something that it holds was made inside :func:`deniable.testing.insecure_noise`."""
        parts = (part for value in vars(self).values() for part in (value if isinstance(value, tuple) else (value,)))
        return any(getattr(part, "insecure", False) for part in parts)

    @property
    def holds(self) -> bool:
        """Whether what it says is so: always, but with the noise of a test."""
        return not self.insecure

    def __init_subclass__(cls) -> None:
        if "__repr__" not in vars(cls):  # dataclasses keep the one that a class has
            cls.__repr__ = Textual.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        parts = [one.name for one in getattr(self, "__dataclass_fields__", {}).values() if one.repr]
        text = f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in parts)})"
        return "\n".join(testing.marked((text,), self.insecure))

    def __str__(self) -> str:
        return "\n".join(testing.marked((self._text(),), self.insecure))  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        return as_html(str(self))


class Promised:
    """An estimator that was fitted under a ``certificate_``: a notebook shows its promise, and a test's mark."""

    def __repr__(self) -> str:
        found = getattr(self, "certificate_", None)
        return "\n".join(testing.marked((super().__repr__(),), found is not None and found.insecure))

    def _html_repr(self) -> str:  # what a notebook shows: the promise of a fitted model above scikit-learn's diagram
        diagram, found = str(super()._html_repr()), getattr(self, "certificate_", None)  # type: ignore[misc]
        if found is None:
            return diagram
        text = lines(f"Fitted {type(self).__name__}", curve_rows(found.tradeoff), sentences(found.assumptions))
        return as_html("\n".join(testing.marked((text,), found.insecure))) + diagram


def curve_rows(curve: Tradeoff) -> list[tuple[str, str]]:
    """Return the usual upper bounds of a curve in words."""
    rows = [("Advantage", f"≤ {shown(curve.advantage(), 'rate', 'upper')}")]
    for rate in USUAL_FPRS:
        found = shown(curve.tpr(rate), "rate", "upper")
        rows.append((f"TPR at FPR {shown(rate, 'rate', 'nearest')}", f"≤ {found}"))
    return rows


def curve_text(curve: Tradeoff) -> str:
    """Return the usual upper bounds of a curve, how they were computed and in which game they hold."""
    sure = [] if curve.confidence == 1 else [f"confidence {curve.confidence:g}"]
    a = curve.assumptions
    notes = [f"Method: {curve.method}", *sure, a.game, a.adjacency]
    return lines("What any attacker can reach", curve_rows(curve), notes)


def two_lines(curve: Tradeoff) -> str:
    """Kind, numbers and method of a curve; what it protects and what it holds for. Nothing is computed."""
    own = {one.name: vars(curve).get(one.name) for one in fields(curve) if one.repr and not one.kw_only}
    said = ", ".join(f"{name}={value!r}" for name, value in own.items() if isinstance(value, int | float | str))
    sure = "" if curve.confidence == 1 else f"; with confidence {curve.confidence:g}"
    head = f"{type(curve).__name__}({said}): {curve.method}"
    return "\n".join(
        testing.marked((head, f"  {curve.assumptions.adjacency}; {curve.holds_for}{sure}"), curve.insecure)
    )
