"""The certificate of a fit: what it guarantees, and each query to the data with its share of the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from deniable import testing
from deniable.mechanisms import ApproximateDP, GaussianDP, Mechanism
from deniable.mechanisms.core import parts_of
from deniable.noise.ledger import Use


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
        Every query of the data.
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
            f"Every query of the data, with its share of the budget (μ² = {self.mu**2:.6g}):",
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
    return names[0] if len(names) == 1 else f"{len(names)} queries, from {names[0]!r} to {names[-1]!r}"
