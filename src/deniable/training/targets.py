"""From a target in anybody's words to the budget of a fit: a Gaussian DP parameter, and a δ where one is needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from deniable._check import InputError, number
from deniable.accounting import tradeoff
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism, SubsampledGaussian
from deniable.planning import calibrate

DEFAULT_ADVANTAGE = 0.1
_BRACKET = (1e-6, 60.0)  # μ: nothing can be learned below, nothing is hidden above


@dataclass(frozen=True)
class Budget:
    """What a fit may spend: Gaussian DP ``mu`` beside a failure probability ``delta``, and the target in words."""

    mu: float
    delta: float
    words: str


def budget(given: dict[str, Any], mechanism: Mechanism | None = None, *, failure: float = 0.0) -> Budget:
    """Return the budget of exactly one target; none at all means an advantage of 0.1.

    Parameters
    ----------
    given
        ``advantage``; ``tpr`` and ``fpr``; ``accuracy`` and ``prior``; ``epsilon`` and ``delta``; ``reconstruction``
        and ``baseline``; ``noise_multiplier``: those that are not None count.
    mechanism
        Instead: what may be spent, full-batch Gaussian mechanisms only.
    failure
        Probability that the discovery of categories may fail with; the target holds for both together.

    Raises
    ------
    InputError
        For no or two targets, or one that cannot be met.
    """
    target = {name: value for name, value in given.items() if value is not None}
    kinds = {_KIND[name] for name in target} - {"prior"} | ({"mechanism"} if mechanism is not None else set())
    if "prior" in target and not kinds & {"advantage", "accuracy"}:
        raise InputError("prior belongs to the targets advantage and accuracy only")
    if not kinds:
        kinds, target = {"advantage"}, {"advantage": DEFAULT_ADVANTAGE}
    if len(kinds) > 1:
        raise InputError(f"give exactly one target, got {', '.join(sorted(kinds))}")
    (kind,) = kinds
    if kind == "mechanism":
        return _given(mechanism, failure)
    if kind == "noise_multiplier":
        sigma = number("noise_multiplier", target["noise_multiplier"], above=0.0)
        return Budget(1 / sigma, failure, f"noise multiplier {sigma:g} for the whole fit")
    if kind == "advantage":
        number("advantage", target["advantage"], above=0.0, below=1.0, hint="0.1 means: right in at most 55 % of cases")
    if kind == "reconstruction":
        rate = number(
            "baseline", target.get("baseline"), above=0.0, below=1.0, hint="reconstruction and baseline go together"
        )
        goal = number("reconstruction", target.get("reconstruction"), above=rate, below=1.0)
        target = {"tpr": goal, "fpr": rate}  # success ≤ TPR(baseline), see Tradeoff.reconstruction
    if kind == "epsilon":
        number(
            "delta",
            target.get("delta"),
            above=0.0,
            below=1.0,
            hint="epsilon and delta go together; Gaussian noise needs δ > 0",
        )
        number("epsilon", target.get("epsilon"), above=0.0, below=math.inf, hint="epsilon and delta go together")
    mu = _largest_mu(failure, tuple((name, number(name, value)) for name, value in sorted(target.items())))
    return Budget(mu, failure, _words(kind, given))


@lru_cache(maxsize=64)
def _largest_mu(failure: float, target: tuple[tuple[str, float], ...]) -> float:
    """Return the largest μ that meets a target beside a failure probability; the search takes milliseconds."""
    goal: dict[str, Any] = dict(target)
    return calibrate(lambda mu: _spent(mu, failure), _BRACKET, **goal)


_KIND = {
    "advantage": "advantage",
    "tpr": "tpr and fpr",
    "fpr": "tpr and fpr",
    "accuracy": "accuracy",
    "prior": "prior",
    "epsilon": "epsilon",
    "delta": "epsilon",
    "reconstruction": "reconstruction",
    "baseline": "reconstruction",
    "noise_multiplier": "noise_multiplier",
}


def _spent(mu: float, failure: float) -> Mechanism:
    return Composition((GaussianDP(mu), ApproximateDP(0.0, failure))) if failure else GaussianDP(mu)


def _given(mechanism: Any, failure: float) -> Budget:
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"mechanism must be one of deniable's mechanisms, got {mechanism!r}")
    total = 0.0
    for part in mechanism.mechanisms if isinstance(mechanism, Composition) else (mechanism,):
        if isinstance(part, GaussianDP):
            total += part.mu**2
        elif isinstance(part, SubsampledGaussian) and part.sample_rate == 1:
            total += part.steps * (part.records_per_person / part.noise_multiplier) ** 2
        else:
            raise InputError(
                "mechanism must be full-batch Gaussian (GaussianDP, SubsampledGaussian with sample_rate 1, or both), "
                f"not {part!r}; give the number that it should guarantee instead, for example epsilon= and delta="
            )
    mu = math.sqrt(total) * (1 - 2.0**-40)
    if not 0 < mu < math.inf:
        raise InputError(f"mechanism must leave a positive, finite budget, got μ = {mu:g}")
    return Budget(mu, failure, f"as hard to attack as {mechanism!r}")


def _words(kind: str, given: dict[str, Any]) -> str:
    prior = given.get("prior")
    game = f" (prior {prior:g})" if prior is not None else ""
    match kind:
        case "advantage":
            value = DEFAULT_ADVANTAGE if given.get("advantage") is None else given["advantage"]
            return f"membership advantage of every attacker at most {value:g}{game}"
        case "accuracy":
            return f"accuracy of every membership attacker at most {given['accuracy']:g}{game}"
        case "tpr and fpr":
            return f"true positive rate at most {given['tpr']:g} at a false positive rate of {given['fpr']:g}"
        case "epsilon":
            return f"(ε, δ) = ({given['epsilon']:g}, {given['delta']:g}) differential privacy"
        case _:
            limit, blind = given["reconstruction"], given["baseline"]
            return f"reconstruction succeeds with probability at most {limit:g} (blind guessing: {blind:g})"


def curve_of(mechanism: Mechanism) -> Any:
    """Return the trade-off of a fit's mechanism."""
    return tradeoff(mechanism)
