"""``Limit``: what an attacker may reach at most, checked once, measured on a curve and put into words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import risks
from deniable._check import InputError, integer, number, refuse_unknown
from deniable._shown import plural
from deniable.curves import Tradeoff

__all__ = ["Limit"]

DEFAULT_ADVANTAGE = 0.1  # of models and policies: at even odds, no attacker is right more than 55 % of the time
ArgumentCheck = Callable[[str, Any], Any]


@dataclass(frozen=True)
class LimitKind:
    """All that there is to say of one kind of limit."""

    limits: str  # the argument that is not to be exceeded
    at: Mapping[str, ArgumentCheck] = field(hash=False)  # the other arguments, each with its check
    leakage: Callable[..., float]  # of a curve, and what stands in ``at``
    name: str
    promise: str  # with all digits: what is promised is not rounded
    floor: Callable[..., float] = lambda **at: 0.0  # the leakage of a mechanism that leaks nothing
    reached: str = ""  # why a limit at the floor is refused
    check: ArgumentCheck | None = None  # of the limit; otherwise it lies between the floor and 1
    even: bool = False  # the prior is 1/2 unless given

    @property
    def arguments(self) -> tuple[str, ...]:
        """All of its arguments, the limit first."""
        return (self.limits, *self.at)


def _share(name: str, value: Any) -> float:
    return number(name, value, at_least=0.0, below=1.0)


def _chance(name: str, value: Any) -> float:
    if np.ndim(value):
        raise InputError(f"{name} must be a number, the probability of membership, got {value!r}; see attribute")
    return number(name, value, above=0.0, below=1.0)


def _finite(name: str, value: Any) -> float:
    return number(name, value, above=-math.inf, below=math.inf)


def _distributions(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    risks.best_guess(value)
    return tuple(tuple(row) for row in np.atleast_2d(np.asarray(value, dtype=np.float64)).tolist())


KINDS = (
    LimitKind(
        "advantage",
        at={"prior": _chance},
        even=True,
        leakage=lambda t, prior: t.advantage(prior),
        reached="0.1: right 55 % of the time at even odds",
        name="advantage{game}",
        promise="membership advantage of every attacker at most {most:.15g}{game}",
    ),
    LimitKind(
        "tpr",
        at={"fpr": _share},
        leakage=lambda t, fpr: t.tpr(fpr),
        floor=lambda fpr: fpr,
        reached="a coin flip already reaches tpr = fpr",
        name="TPR at FPR {fpr:.15g}",
        promise="true positive rate at most {most:.15g} at a false positive rate of {fpr:.15g}",
    ),
    LimitKind(
        "accuracy",
        at={"prior": _chance},
        even=True,
        leakage=lambda t, prior: t.accuracy(prior),
        floor=lambda prior: max(prior, 1 - prior),
        reached="guessing from the prior already reaches that",
        name="accuracy{game}",
        promise="accuracy of every membership attacker at most {most:.15g}{game}",
    ),
    LimitKind(
        "delta",
        at={"epsilon": _finite},
        leakage=lambda t, epsilon: t.delta(epsilon),
        check=lambda name, value: number(name, value, above=0.0, below=1.0),
        name="delta at epsilon {epsilon:.15g}",
        promise="(ε, δ) = ({epsilon:.15g}, {most:.15g}) differential privacy",
    ),
    LimitKind(  # δ(ε) = 0 can underflow; ε at δ = 0 is the supremum of the loss, which cannot
        "epsilon",
        at={"delta": _share},
        leakage=lambda t, delta: t.epsilon(delta),
        check=_finite,
        name="epsilon at delta {delta:.15g}",
        promise="(ε, δ) = ({most:.15g}, {delta:.15g}) differential privacy",
    ),
    LimitKind(
        "reconstruction",
        at={"baseline": _share},
        leakage=lambda t, baseline: t.reconstruction(baseline),
        floor=lambda baseline: baseline,
        reached="blind guessing already reaches baseline",
        name="reconstruction at baseline {baseline:.15g}",
        promise="reconstruction succeeds with probability at most {most:.15g} (blind guessing: {baseline:.15g})",
    ),
    LimitKind(
        "singling_out",
        at={"n": lambda name, value: integer(name, value, at_least=1), "weight": _share},
        leakage=lambda t, n, weight: t.singling_out(n, weight),
        floor=lambda n, weight: min(n * weight, 1.0),
        reached="a curve without any leak gives that",
        name="singling out one of {n:,} records",
        promise="one of {n:,} {units} is singled out with probability at most {most:.15g} (predicates of weight "
        "{weight:.15g})",
    ),
    LimitKind(
        "attribute",
        at={"prior": _distributions},
        leakage=lambda t, prior: t.reconstruction(risks.best_guess(prior)),
        floor=risks.best_guess,
        reached="the best guess from the prior already reaches that",
        name="inference of an attribute whose best guess is right with chance {floor:g}",
        promise="an attribute is inferred with probability at most {most:.15g} (best guess: {floor:g})",
    ),
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Limit:
    """What an attacker may reach at most: one number, and where it is asked.

    ``Limit(advantage=0.1)``, ``Limit(tpr=0.01, fpr=0.001)``, ``Limit(epsilon=1, delta=1e-6)``. Every function and
    estimator with the argument ``limit`` takes one. Equal limits are equal objects.

    Parameters
    ----------
    advantage
        Largest membership advantage of any attacker, in (0, 1], at ``prior`` (½ unless given). 0.1: at even odds, no
        attacker is right about the presence of a record more often than 55 % of the time.
    tpr, fpr
        Largest true positive rate of any attack with false positive rate ``fpr``.
    accuracy, prior
        Largest accuracy of an attacker whose prior is P(in) = ``prior`` (½ unless given).
    epsilon, delta
        (ε, δ)-differential privacy, both directions.
    reconstruction, baseline
        Largest probability of guessing a record's secret which blind guessing finds with probability ``baseline``
        (:func:`deniable.risks.reconstruction`).
    singling_out, n, weight
        Largest probability that a predicate of at most this ``weight``, read off the output, matches exactly one of
        ``n`` independent records, a public number (:func:`deniable.risks.singling_out`).
    attribute, prior
        Largest probability of naming an attribute of a record whose values an attacker who knows all the rest believes
        in with probabilities ``prior``, shape (situations, values) or (values,), situations equally likely
        (:func:`deniable.risks.attribute`).
    group_size
        The limit must hold for this many records (or persons) that are in or out together, such as the members of a
        household, without declaring who they are (:func:`deniable.risks.group`).

    Raises
    ------
    InputError
        If not exactly one limit is given, an argument of it is missing or no mechanism can meet it.

    Examples
    --------
    >>> import deniable as dn
    >>> limit = dn.Limit(tpr=1e-4, fpr=1e-5)
    >>> noise = dn.calibrate(lambda s: dn.SubsampledGaussian(s, 0.01, 5000), (0.3, 30.0), limit=limit)
    >>> round(noise + 5e-4, 3)
    1.487
    """

    advantage: float | None = None
    tpr: float | None = None
    fpr: float | None = None
    accuracy: float | None = None
    prior: ArrayLike | None = None
    epsilon: float | None = None
    delta: float | None = None
    reconstruction: float | None = None
    baseline: float | None = None
    singling_out: float | None = None
    n: int | None = None
    weight: float | None = None
    attribute: float | None = None
    group_size: int = 1

    def __post_init__(self) -> None:
        asked = {name: value for name, value in vars(self).items() if value is not None}
        together = asked.pop("group_size", None)
        kind = _kind(asked)
        if kind.even:
            asked.setdefault("prior", 0.5)
        if missing := [name for name in kind.arguments if name not in asked]:
            raise InputError(f"{_join(kind.arguments)} go together; {_join(missing)} is missing")
        checked = {name: check(name, asked[name]) for name, check in kind.at.items()}
        check = kind.check or _between(kind.floor(**checked), kind.reached)
        checked[kind.limits] = check(kind.limits, asked[kind.limits])
        checked["group_size"] = integer("group_size", together, at_least=1, hint="records in or out together")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Limit({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that say this limit, without those that have their default."""
        kind, given = self._kind, vars(self)
        shown = {name: given[name] for name in kind.arguments if not (kind.even and name == "prior" and self._even)}
        return shown | ({"group_size": self.group_size} if self.group_size > 1 else {})

    @property
    def kind(self) -> str:
        """The argument that is not to be exceeded."""
        return self._kind.limits

    @property
    def most(self) -> float:
        """The largest leakage that meets the limit."""
        return float(vars(self)[self.kind])

    @property
    def floor(self) -> float:
        """The leakage of a mechanism that leaks nothing."""
        return self._kind.floor(**self._at)

    def leakage(self, curve: Tradeoff) -> float:
        """Return how much a mechanism of this ``curve`` leaks, by its upper bound."""
        shared = curve if self.group_size == 1 else curve.group(self.group_size)
        return self._kind.leakage(shared, **self._at)

    def is_met(self, curve: Tradeoff) -> bool:
        """Whether a mechanism of this ``curve`` is proven to meet the limit."""
        return bool(self.leakage(curve) <= self.most)

    @property
    def name(self) -> str:
        """What is measured, in a few words."""
        return self._fill_in(self._kind.name)

    def words(self, unit: str = "record") -> str:
        """Return the whole promise, as certificates state it, for a ``unit`` that is in or out."""
        together = f", for any {self.group_size} {plural(unit)} in or out together" if self.group_size > 1 else ""
        return self._fill_in(self._kind.promise, unit) + together

    def _fill_in(self, text: str, unit: str = "record") -> str:
        game = "" if not self._kind.even or self._even else f" (prior {self.prior:.15g})"
        return text.format(units=plural(unit), most=self.most, floor=self.floor, game=game, **self._at)

    @property
    def _even(self) -> bool:
        return bool(self.prior == 0.5)

    @property
    def _kind(self) -> LimitKind:
        return _kind({name: value for name, value in vars(self).items() if value is not None and name != "group_size"})

    @property
    def _at(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in self._kind.at}


LIMIT_ARGUMENTS = tuple(Limit.__dataclass_fields__)


def limit_from(where: str, given: Mapping[str, Any]) -> Limit:
    """Return the limit that was read from ``where``, a file or a command line; an unknown name gets its nearest."""
    refuse_unknown(where, given, LIMIT_ARGUMENTS)
    return Limit(**given)


def _kind(asked: Mapping[str, Any]) -> LimitKind:
    """The one kind that these arguments belong to."""
    delta = asked.get("delta", math.nan)
    other = "delta" if np.ndim(delta) == 0 and delta == 0 else "epsilon"  # of the two rows for (ε, δ)
    rows = [row for row in KINDS if row.limits != other]
    kinds = [row for row in rows if any(name in asked for name in row.arguments if name != "prior")]
    if len(kinds) != 1:
        known = "; ".join(_join(row.arguments) for row in rows)
        got = "; ".join(_join(row.arguments) for row in kinds) or ("prior alone" if asked else "none")
        raise InputError(f"give exactly one limit out of {known}; got {got}")
    if "prior" in asked and "prior" not in kinds[0].at:
        owners = _join([row.limits for row in KINDS if "prior" in row.at])
        raise InputError(f"prior belongs to the limits {owners} only, got {asked['prior']!r}")
    return kinds[0]


def _between(floor: float, hint: str) -> ArgumentCheck:
    return lambda name, value: number(name, value, above=floor, at_most=1.0, hint=hint)


def _join(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
