"""The account of a fit: each look at the data with its cost, and the certificate of their sum.

Every look is a Gaussian release of sums, μ = (largest change that one unit makes, in standard deviations); the squares
of the μ add up (Dong, Roth & Su 2022, Corollary 3.3). Discovering categories adds a probability of failure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from deniable import testing
from deniable._check import InputError
from deniable._floats import MANY_ROUNDINGS
from deniable.mechanisms import ApproximateDP, Composition, GaussianDP, Mechanism
from deniable.mechanisms.core import parts_of

_ROUNDED = 1 + MANY_ROUNDINGS  # charged on every sum of μ² and of δ


@dataclass(frozen=True)
class Use:
    """One look at the data.

    Attributes
    ----------
    name, purpose
        What was looked at, and what for.
    mu
        Gaussian DP parameter of this look.
    delta
        Probability that this look reveals a record's presence (discovery of categories only).
    """

    name: str
    purpose: str
    mu: float
    delta: float = 0.0


@dataclass(frozen=True)
class FitCertificate:
    """What a fit guarantees and what its budget was spent on; ``print`` shows both in words.

    Attributes
    ----------
    target
        The target in words.
    unit
        "record" or "person": whose presence is hidden.
    uses
        Every look at the data.
    public
        What was taken as known to everybody: it is *not* protected.
    mechanism
        The composition of all uses, for adding or removing one unit.
    insecure
        Whether the noise was that of a test (:func:`deniable.testing.insecure_noise`): then nothing is promised.
    """

    target: str
    unit: str
    uses: tuple[Use, ...]
    public: tuple[str, ...]
    mechanism: Mechanism
    insecure: bool = field(default_factory=testing.insecure)

    @property
    def mu(self) -> float:
        """Gaussian DP parameter of all uses together."""
        return next(part.mu for part in parts_of(self.mechanism) if isinstance(part, GaussianDP))

    @property
    def delta(self) -> float:
        """Probability of failure of all uses together."""
        return next((part.delta for part in parts_of(self.mechanism) if isinstance(part, ApproximateDP)), 0.0)

    def shares(self) -> dict[str, float]:
        """Return each use's share of μ²."""
        whole = math.fsum(use.mu**2 for use in self.uses)
        return {use.name: use.mu**2 / whole for use in self.uses}

    def __str__(self) -> str:
        shares: dict[str, float] = {}
        named: dict[str, list[str]] = {}
        for use in self.uses:  # one line per purpose: forty columns are forty looks of one kind
            shares[use.purpose] = shares.get(use.purpose, 0.0) + self.shares()[use.name]
            named.setdefault(use.purpose, []).append(use.name)
        delta = f", and with probability at most {self.delta:.3g} no protection (discovered categories)" * bool(
            self.delta
        )
        lines = [
            f"Target: {self.target}.",
            f"The fitted model hides whether any one {self.unit} was in the data: telling it is no easier than telling "
            f"N(0, 1) from N({self.mu:.6g}, 1){delta}.",
            f"Every look at the data, with its share of the budget (μ² = {self.mu**2:.6g}):",
            *(f"  {share:7.2%}  {purpose} ({_listed(named[purpose])})" for purpose, share in shares.items()),
            "Taken as public, not protected:",
            *(f"  {line}" for line in self.public),
        ]
        return "\n".join(testing.marked(tuple(lines), self.insecure))

    def _repr_html_(self) -> str:
        from deniable._notebook import panel

        first, promise, *rest = str(self).splitlines()
        return panel("Certificate of a fit", [], rest, headline=f"{first} {promise}")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} looks, from {names[0]!r} to {names[-1]!r}"


@dataclass
class Ledger:
    """Collects the uses while a fit runs and refuses to pass the budget.

    What a look costs may depend on what earlier ones released (whether bins are worth a second look, for example). A
    budget fixed beforehand that no path can pass, each cost counted before its use, is a valid filter for Gaussian DP
    (Koskela, Tobaben & Honkela, arXiv:2209.15596). The sum along one path is not a bound by itself: the budget is what
    a certificate states.
    """

    mu: float
    delta: float = 0.0
    uses: list[Use] = field(default_factory=list)
    kept: float = 0.0  # μ that is reserved for later looks

    def spend(self, name: str, purpose: str, mu: float, delta: float = 0.0) -> None:
        """Record one use, before it happens."""
        self.uses.append(Use(name, purpose, mu, delta))
        if not (total_mu(self.uses) <= self.mu and total_delta(self.uses) <= self.delta):
            self.uses.pop()
            raise InputError(f"the budget μ = {self.mu:g}, δ = {self.delta:g} does not cover {name}")

    @property
    def left(self) -> float:
        """The largest μ that can still be spent, rounded down, excluding the reserve for later looks."""
        spent = math.fsum((self.kept**2, *(use.mu**2 for use in self.uses)))
        return math.sqrt(max(self.mu**2 / _ROUNDED**2 - spent, 0.0)) / _ROUNDED

    def parts(self, *shares: float) -> tuple[float, ...]:
        """Return the μ of ``shares`` of μ², made smaller in proportion so that they cost at most half of what is left.

        Looks at columns take more where records are few and where values lie close together, so that fixed shares
        might not fit.
        """
        fits = min(1.0, self.left**2 / self.mu**2 / (2 * math.fsum(shares)))
        return tuple(self.mu * math.sqrt(share * fits) for share in shares)

    def mechanism(self) -> Mechanism:
        """Return the budget, which no path of the fit can exceed."""
        gaussian = GaussianDP(self.mu)
        return Composition((gaussian, ApproximateDP(0.0, self.delta))) if self.delta > 0 else gaussian


def total_mu(uses: list[Use] | tuple[Use, ...]) -> float:
    """Return √Σμ², rounded up."""
    return math.sqrt(math.fsum(use.mu**2 for use in uses) * _ROUNDED)


def total_delta(uses: list[Use] | tuple[Use, ...]) -> float:
    """Return Σδ, rounded up: at least 1 − Π(1 − δ)."""
    return math.fsum(use.delta for use in uses) * _ROUNDED if any(use.delta for use in uses) else 0.0
