"""For which records and in which game a curve holds."""

from __future__ import annotations

from dataclasses import dataclass

from deniable import testing

EVERY_CASE = "every record and every rest of the data"  # what a curve must hold for to bound other risks
ONE_CASE = "the record and the data set for which it was computed"


@dataclass(frozen=True)
class Assumptions:
    """The game in which a number holds: read it before quoting the number."""

    game: str = "the attacker knows the whole training set but for one record, and tests whether that record was in"
    adjacency: str = "add or remove one record"
    access: str = "everything that the mechanism outputs, intermediate steps included"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", testing.marked(self.notes, testing.insecure()))

    @property
    def insecure(self) -> bool:
        """Whether this was made inside :func:`deniable.testing.insecure_noise`."""
        return testing.INSECURE in self.notes
