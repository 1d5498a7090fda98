"""What an organisation asks of a release before it decides: limits, and the meaning of each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from deniable._check import InputError, choice, number, refuse_unknown
from deniable._limits import MOST_ADVANTAGE

Scope = Literal["every data set", "this data set"]
Required = Literal["attack", "records", "utility"]
SCOPES: tuple[Scope, ...] = ("every data set", "this data set")
REQUIRED: tuple[Required, ...] = ("attack", "records", "utility")
_LIMITS = ("advantage", "tpr", "reconstruction", "measured", "utility_loss")


@dataclass(frozen=True)
class Policy:
    """The limits that a release has to meet; a report is decided by one of these.

    ``None`` leaves a rule out. The defaults are a starting point, not a standard: replace them by what your
    organisation has decided.

    Attributes
    ----------
    advantage
        Largest *proven* membership advantage (TPR − FPR of any attack). 0.1: no attacker who sees members and
        non-members equally often is right more than 55 % of the time.
    tpr, fpr
        Largest proven true positive rate ``tpr`` at false positive rate ``fpr``. 0.01 at 0.001: of those who are
        accused by an attacker that wrongly accuses one in 1,000, at most ten times as many are found as by guessing.
    reconstruction, baseline
        Largest proven chance of naming a secret of a record that blind guessing names with chance ``baseline``. 0.01 at
        0.001: a secret with 1,000 equally likely values.
    measured
        Largest *measured* advantage: the lower end of the interval that an attack showed. It only applies where an
        attack was run; a larger one speaks against a release even before anything is proven.
    utility_loss
        Largest loss of usefulness against an unprotected model: of AUC where it is known, else of accuracy or R². A
        model that is no better than guessing misses it whatever an unprotected one reaches.
    scope
        "every data set": a proof has to hold whatever the data, which is what a promise to people needs. "this data
        set": the record profile of this very model is enough where there is one.
    require
        Which of "attack", "records" and "utility" a report must contain. If one is missing, the decision is "cannot be
        told".
    name
        How the report calls the policy.

    Raises
    ------
    InputError
        For a limit outside [0, 1], an unknown scope or requirement, or a policy without any rule.
    """

    advantage: float | None = MOST_ADVANTAGE
    tpr: float | None = 0.01
    fpr: float = 0.001
    reconstruction: float | None = 0.01
    baseline: float = 0.001
    measured: float | None = 0.1
    utility_loss: float | None = 0.02
    scope: Scope = "every data set"
    require: tuple[Required, ...] = ()
    name: str = "default policy of deniable"

    def __post_init__(self) -> None:
        for limit in _LIMITS:
            value = getattr(self, limit)
            if value is not None:
                checked = number(limit, value, at_least=0.0, at_most=1.0, hint="it is a fraction: 0.1 means 10 %")
                object.__setattr__(self, limit, checked)
        for rate in ("fpr", "baseline"):
            object.__setattr__(self, rate, number(rate, getattr(self, rate), above=0.0, below=1.0))
        choice("scope", self.scope, SCOPES)
        given: Any = self.require
        wanted = given if isinstance(given, list | tuple | set | frozenset) else [given]
        object.__setattr__(self, "require", tuple(choice("require", word, REQUIRED) for word in wanted))
        if not isinstance(self.name, str):
            raise InputError(f"name must be a text, got {self.name!r}")
        if all(getattr(self, limit) is None for limit in _LIMITS) and not self.require:
            raise InputError(f"a policy needs at least one rule: {', '.join(_LIMITS)}, or require")

    @classmethod
    def from_toml(cls, path: str | Path) -> Policy:
        """Read a policy: keys are the attributes, at the top or in a table ``[policy]``.

        A rule that the file does not name is not applied; ``fpr`` and ``baseline`` have their defaults. The word
        ``default`` instead of a file stands for ``Policy()``.

        Raises
        ------
        InputError
            If the file cannot be read, is not TOML, or has a key that is no attribute.
        """
        if str(path) == "default":
            return cls()
        content = read_toml("policy", path)
        table = content.get("policy", content)
        if not isinstance(table, dict) or ("policy" in content and len(content) > 1):
            raise InputError(f"policy {str(path)!r} must hold its keys at the top or in one table [policy]")
        refuse_unknown(f"policy {str(path)!r}", table, [field.name for field in fields(cls)])
        blank: dict[str, Any] = dict.fromkeys(_LIMITS, None)
        given = {key: None if value is False and key in _LIMITS else value for key, value in table.items()}
        return cls(**{"name": Path(path).stem, **blank, **given})

    def to_toml(self) -> str:
        """Return the policy as a TOML file with a remark for each rule."""
        lines = ["# A policy of deniable: a rule that is not named is not asked.", "[policy]"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                shown = list(value) if isinstance(value, tuple) else value
                text = str(shown).replace("'", '"') if isinstance(shown, list) else _quoted(shown)
                lines.append(f"{field.name} = {text}  # {_REMARKS[field.name]}")
        return "\n".join(lines) + "\n"

    def with_limit(self, advantage: float) -> Policy:
        """Return the policy with another limit on the proven advantage."""
        return replace(self, advantage=advantage)


_REMARKS = {
    "advantage": "largest proven TPR - FPR of any attack",
    "tpr": "largest proven true positive rate at the false positive rate fpr",
    "fpr": "false positive rate of the rule tpr",
    "reconstruction": "largest proven chance of naming a secret that blind guessing names with chance baseline",
    "baseline": "chance of blind guessing in the rule reconstruction",
    "measured": "largest advantage that an attack may show (lower end of its interval)",
    "utility_loss": "largest loss of AUC (or accuracy, or R2) against an unprotected model",
    "scope": '"every data set", or "this data set": the record profile of this model is enough',
    "require": 'what a report has to hold: "attack", "records", "utility"',
    "name": "how reports call this policy",
}


def _quoted(value: Any) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def read_toml(name: str, path: str | Path) -> dict[str, Any]:
    """Return the content of a TOML file, or raise ``InputError`` in words."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"{name} must be the path of a TOML file (or what it holds), got {path!r}")
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{name} {str(path)!r} cannot be read: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{name} {str(path)!r} is not TOML: {error}") from None
