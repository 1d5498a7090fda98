"""What an organisation asks of a release before it decides: limits, and the meaning of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from deniable._check import InputError, choice, number, refuse_unknown
from deniable._files import read_toml
from deniable.limits import DEFAULT_ADVANTAGE, Limit

Scope = Literal["every data set", "this data set"]
Required = Literal["attack", "records", "utility"]
SCOPES: tuple[Scope, ...] = ("every data set", "this data set")
REQUIRED: tuple[Required, ...] = ("attack", "records", "utility")
_DECIDED = ("advantage", "tpr", "reconstruction")  # kinds of limits whose numbers a report has
_MEASURED = ("measured", "utility_loss")
_RATES = {"tpr": ("fpr", 0.001), "reconstruction": ("baseline", 0.001)}  # where a file asks them unless it says so


@dataclass(frozen=True)
class Policy:
    """The limits that a release has to meet; a report is decided by one of these.

    The defaults are a starting point, not a standard: replace them by what your organisation has decided.

    Attributes
    ----------
    limits
        What has to be *proven*, :class:`~deniable.Limit` of different kinds: ``advantage``, ``tpr`` with
        ``fpr``, ``reconstruction`` with ``baseline``. By default an advantage of 0.1 (at even odds, no attacker is
        right more than 55 % of the time), 0.01 of the members found at a false positive rate of 0.001, and a secret
        with 1,000 equally likely values named with chance 0.01.
    measured
        Largest *measured* advantage: the lower end of the interval that an attack showed. It only applies where an
        attack was run; a larger one speaks against a release even before anything is proven. None: not asked.
    utility_loss
        Largest loss of usefulness against an unprotected model: of AUC where it is known, else of accuracy or R². A
        model that is no better than guessing misses it whatever an unprotected one reaches. None: not asked.
    scope
        "every data set": a proof has to hold whatever the data, which is what a promise to people needs. "this data
        set": the record profile of this very model is enough where there is one.
    require
        Which of "attack", "records" and "utility" a report must contain. If one is missing, the decision is "not
        decided".
    name
        How the report calls the policy.

    Raises
    ------
    InputError
        For a limit that no report can decide, two of a kind, a number outside [0, 1], an unknown scope or requirement,
        or a policy without any rule.

    Examples
    --------
    >>> import deniable as dn
    >>> report = dn.assess(dn.SubsampledGaussian(1.0, 0.01, 1000), policy=dn.Policy())
    >>> isinstance(report, dn.Assessment), report.decision.outcome
    (True, 'does not meet')
    >>> decision, rule = report.decision, report.decision.rules[0]
    >>> section = report.sections[0]
    >>> number, curves, grids, series = section.numbers[0], section.curves, section.grids, section.series
    >>> number.label, round(number.value, 3)
    ('Advantage, prior 50 %', 0.161)
    """

    limits: Sequence[Limit] = (
        Limit(advantage=DEFAULT_ADVANTAGE),
        Limit(tpr=0.01, fpr=0.001),
        Limit(reconstruction=0.01, baseline=0.001),
    )
    measured: float | None = 0.1
    utility_loss: float | None = 0.02
    scope: Scope = "every data set"
    require: tuple[Required, ...] = ()
    name: str = "default policy of deniable"

    def __post_init__(self) -> None:
        limits = tuple(self.limits) if isinstance(self.limits, list | tuple) else (self.limits,)
        for limit in limits:
            if not isinstance(limit, Limit):
                raise InputError(f"limits must be several of Limit, as in [Limit(advantage=0.1)], got {limit!r}")
            if limit.kind not in _DECIDED or limit.group_size > 1 or limit.prior not in (None, 0.5):
                raise InputError(
                    "limits of a policy are of the advantage at even odds, tpr or reconstruction, of one record, got "
                    f"{limit!r}"
                )
        if len({limit.kind for limit in limits}) < len(limits):
            raise InputError(f"limits of a policy must be of different kinds, got {limits!r}")
        object.__setattr__(self, "limits", limits)
        for name, value in (("measured", self.measured), ("utility_loss", self.utility_loss)):
            if value is not None:
                checked = number(name, value, at_least=0.0, at_most=1.0, hint="it is a fraction: 0.1 means 10 %")
                object.__setattr__(self, name, checked)
        choice("scope", self.scope, SCOPES)
        given: Any = self.require
        wanted = given if isinstance(given, list | tuple | set | frozenset) else [given]
        object.__setattr__(self, "require", tuple(choice("require", word, REQUIRED) for word in wanted))
        if not isinstance(self.name, str):
            raise InputError(f"name must be a text, got {self.name!r}")
        if not limits and self.measured is None and self.utility_loss is None and not self.require:
            raise InputError(f"a policy needs at least one rule: limits, {', '.join(_MEASURED)}, or require")

    def limit(self, kind: str) -> Limit | None:
        """Return the limit of this kind, None if it is not asked."""
        return next((limit for limit in self.limits if limit.kind == kind), None)

    @classmethod
    def from_toml(cls, path: str | Path) -> Policy:
        """Read a policy: keys are those of limits and the attributes, at the top or in a table ``[policy]``.

        A rule that the file does not name is not applied; ``fpr`` and ``baseline`` are 0.001 unless given. The word
        ``default`` instead of a file stands for ``Policy()``.

        Raises
        ------
        InputError
            If the file cannot be read, is not TOML, or has a key that is no attribute.
        """
        if str(path) == "default":
            return cls()
        content, _ = read_toml("policy", path)
        table = content.get("policy", content)
        if not isinstance(table, dict) or ("policy" in content and len(content) > 1):
            raise InputError(f"policy {str(path)!r} must hold its keys at the top or in one table [policy]")
        return cls._of(table, f"policy {str(path)!r}", Path(path).stem)

    @classmethod
    def _of(cls, table: dict[str, Any], where: str, name: str) -> Policy:
        rates = [name for name, _ in _RATES.values()]
        refuse_unknown(where, table, (*_DECIDED, *rates, *(field.name for field in fields(cls)[1:])))
        given = {key: value for key, value in table.items() if value is not False}
        at = {kind: {name: given.pop(name, usual)} for kind, (name, usual) in _RATES.items()}
        blank: dict[str, Any] = dict.fromkeys(_MEASURED)
        try:
            limits = tuple(Limit(**{kind: given.pop(kind)}, **at.get(kind, {})) for kind in _DECIDED if kind in given)
            return cls(limits, **{"name": name, **blank, **given})
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    @classmethod
    def set_once(cls, folder: str | Path = ".") -> tuple[Policy, Path] | None:
        """Return the policy that is set for a whole project and the file that holds it, or None if none is set.

        That is the file (or ``default``, ``none``) that the environment variable ``DENIABLE_POLICY`` names, else
        ``policy`` in ``[tool.deniable]`` of the nearest ``pyproject.toml`` from ``folder`` upwards: a file beside it,
        ``default``, or a table of rules.

        Raises
        ------
        InputError
            If it cannot be read: a policy that is set is never silently left out.
        """
        if named := os.environ.get("DENIABLE_POLICY"):
            return None if named == "none" else (cls.from_toml(named), Path(named))
        above = Path(folder).resolve()
        found = next((file for one in (above, *above.parents) if (file := one / "pyproject.toml").is_file()), None)
        if found is None:
            return None
        tools = read_toml("policy", found)[0].get("tool", {})
        if not isinstance(tools, dict) or "deniable" not in tools:
            return None
        own: Any = tools["deniable"] if isinstance(tools["deniable"], dict) else {"deniable": tools["deniable"]}
        refuse_unknown(f"[tool.deniable] of {str(found)!r}", own, ("policy",))
        asked = own.get("policy")
        if asked is None:
            return None
        if isinstance(asked, dict):
            return cls._of(asked, f"[tool.deniable.policy] of {str(found)!r}", found.name), found
        if not isinstance(asked, str):
            raise InputError(f"policy in [tool.deniable] must be a file, 'default' or a table, got {asked!r}")
        file = Path(asked) if asked == "default" else found.parent / asked
        return cls.from_toml(file), found if asked == "default" else file
