"""Laws of one step: one file per mechanism. A mechanism of your own is a subclass of :class:`Step`."""

from deniable.accounting.steps.base import Repeated, Step
from deniable.accounting.steps.outcomes import Cut, ListedOutcomes, NormalOutcomes, OutcomeLine

__all__ = ["Cut", "ListedOutcomes", "NormalOutcomes", "OutcomeLine", "Repeated", "Step"]
