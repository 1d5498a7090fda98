"""The guarantee of everything that private queries released, in words and in a form that machines read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from deniable._check import InputError
from deniable._files import plain, to_json
from deniable._notebook import Textual, sentences
from deniable._shown import plural, shown
from deniable.accounting import tradeoff
from deniable.curves import Tradeoff, with_assumptions
from deniable.mechanisms import (
    ApproximateDP,
    Composition,
    GaussianDP,
    Mechanism,
    Receipt,
    entered,
    fields_of,
    parts_of,
    to_plain,
    together,
)
from deniable.noise.queries import SHARED, Queries, Use, total_mu

# a pipeline's last step, and a bag's, see no other
AS_GIVEN = "the columns as they were given; what prepared them is not covered, nor what drew or repeated records"
FPRS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # of the points of a curve in a certificate's JSON


class Account(Protocol):
    """What ``ledger=`` takes: a :class:`deniable.Ledger`, which is charged before noise is drawn."""

    def charge(self, release: Any, *, unit: str | None, what: str) -> Receipt:
        """Enter a release that is about to be made; raise ``InputError`` if it must not be."""
        ...


def enter(ledger: Account | None, release: Any, *, unit: str | None, what: str) -> Receipt | None:
    """Enter a release that is about to be made, if there is a ledger; refuse what is none."""
    if ledger is not None and not hasattr(ledger, "charge"):
        raise InputError(f"ledger must be a deniable.Ledger, got {ledger!r}")
    return None if ledger is None else ledger.charge(release, unit=unit, what=what)


@dataclass(frozen=True, eq=False)
class Certificate(Textual):
    """What private queries of a table guarantee, and what their budget was spent on; ``print`` shows both in words.

    It covers everything that the queries released together: a fitted model, a table of statistics.

    Attributes
    ----------
    target
        The target in words.
    unit
        "record", "person" or "line of the file": whose presence is hidden.
    tradeoff
        The curve for adding or removing one unit.
    replacement
        The curve for *replacing* one unit by another.
    uses
        Every query of the data.
    public
        What was taken as known to everybody: it is *not* protected.
    mechanism
        The composition of all uses, for adding or removing one unit. Mechanisms of several certificates of the same
        data add up: ``dn.tradeoff(a.mechanism + b.mechanism)``.
    entry
        Number and head of its entry in a :class:`deniable.Ledger`, if there is one.
    person
        The column of the persons that are hidden; "" where records are.
    standing
        Where that ledger stood then, in words: what was spent, or what is left.

    Examples
    --------
    See ``PrivateClassifier``.
    """

    target: str
    unit: str
    tradeoff: Tradeoff = field(repr=False)
    replacement: Tradeoff = field(repr=False)
    uses: tuple[Use, ...]
    public: tuple[str, ...]
    mechanism: Mechanism
    entry: tuple[int, str] | None = None
    person: str = ""
    standing: str = ""

    def __add__(self, other: Any) -> Mechanism:
        """Return the mechanism of this release and another about the same people, with the notes of both."""
        return together((self, other))

    @property
    def advantage(self) -> float:
        """Bound on the membership advantage of every attack at even odds: 2·accuracy − 1."""
        return self.tradeoff.advantage()

    @property
    def mu(self) -> float:
        """Gaussian DP parameter of all uses together."""
        return next(part.mu for part in parts_of(self.mechanism) if isinstance(part, GaussianDP))

    @property
    def delta(self) -> float:
        """Probability of failure of all uses together."""
        return next((part.delta for part in parts_of(self.mechanism) if isinstance(part, ApproximateDP)), 0.0)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee is about, besides what is public."""
        return (
            self.tradeoff.assumptions.game,
            "out means not in the table; the prior is 1/2",
            f"covers {AS_GIVEN}",
            f"this release alone: other releases from the same {plural(self.unit)} add to it",
            *self.mechanism.notes,
        )

    def shares(self) -> dict[str, float]:
        """Return the share of μ² of every name of a use; several uses may have one."""
        whole, found = total_mu(self.uses) ** 2 or 1.0, dict[str, float]()
        for use in self.uses:
            found[use.name] = found.get(use.name, 0.0) + use.mu**2 / whole
        return found

    def purposes(self) -> list[tuple[str, tuple[str, ...], float, float]]:
        """Return each purpose with the names of its uses, their μ together, and its share of μ²."""
        found, whole = dict[str, list[Use]](), total_mu(self.uses) or 1.0
        for use in self.uses:
            found.setdefault(use.purpose, []).append(use)
        sums = {why: total_mu(uses) for why, uses in found.items()}
        return [(why, tuple(use.name for use in found[why]), mu, (mu / whole) ** 2) for why, mu in sums.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python types; the curves become their advantage at prior ½ and the TPR at some FPRs."""
        names: tuple[str, ...] = ("target", "unit", "person", "advantage", "holds", "insecure", "mu", "delta")
        names += ("uses", "public", "assumptions", "entry", "standing")
        curves = {name: points(getattr(self, name)) for name in ("tradeoff", "replacement")}
        return {name: plain(getattr(self, name)) for name in names} | curves | {"mechanism": to_plain(self.mechanism)}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the certificate as JSON and, if ``path`` is given, write it there."""
        return to_json(self.to_dict(), path)

    def _text(self) -> str:
        failure = f", and with probability at most {self.delta:.3g} no protection (discovered categories)"
        advantage, replaced = (shown(t.advantage(), "number", "upper") for t in (self.tradeoff, self.replacement))
        lines = [
            f"Target: {self.target}.",
            f"What was released hides whether any one {self.unit} was in the data: telling it is no easier than "
            f"telling N(0, 1) from N({self.mu:.6g}, 1){failure if self.delta else ''}.",
            f"Advantage at even odds: at most {advantage}; at telling a {self.unit} from another in its place, "
            f"{replaced}.",
            f"Every query of the data, with its share of the budget (μ² = {self.mu**2:.6g}):",
            *(f"  {share:7.2%}  {why} ({_first_to_last(names)})" for why, names, _, share in self.purposes()),
            "Taken as public, not protected:",
            *(f"  {line}" for line in self.public),
            f"Covers {AS_GIVEN}.",
            *sentences(self.mechanism.notes),
        ]
        return "\n".join(lines)


def _first_to_last(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} queries, from {names[0]!r} to {names[-1]!r}"


def certificate_of(
    look: Queries, words: str, public: tuple[str, ...], entry: Receipt | None, replaced: float = math.inf
) -> Certificate:
    """Return the certificate of everything that may be asked through ``look`` under a target, in ``words``.

    ``replaced`` bounds the μ of replacing a unit, where something better is known than taking one out and one in.
    """
    mechanism, unit, place = look.ledger.mechanism(), look.units.unit, fields_of(entry)
    shared = (SHARED,) * (unit == "person")
    failures = [part for part in parts_of(mechanism) if not isinstance(part, GaussianDP)] * 2
    twice = Composition((GaussianDP(min(replaced, 2 * look.ledger.mu)), *failures))
    game = (
        f"all records are used; the attacker knows the algorithm, what is declared and all {plural(unit)} but one, and "
        "names, after seeing everything that is released, whether that one is in the table"
    )
    mechanism = mechanism.with_notes((*shared, *entered(**place)), look.units.whom)
    seen = {"game": game, "access": "everything that is released", "notes": mechanism.notes}
    adjacency = f"add or remove one {unit}" + " with all its records" * bool(shared)
    return Certificate(
        words,
        unit,
        with_assumptions(tradeoff(mechanism), adjacency=adjacency, **seen),
        with_assumptions(tradeoff(twice), adjacency=f"replace one {unit} by another", **seen),
        tuple(look.ledger.uses),
        public,
        mechanism,
        person=look.units.person,
        **place,
    )


def points(curve: Tradeoff) -> dict[str, Any]:
    """Return a curve as plain types: its advantage at prior ½ and the TPR at some FPRs."""
    return {"advantage": curve.advantage(), "tpr_at_fpr": [{"fpr": fpr, "tpr": curve.tpr(fpr)} for fpr in FPRS]}
