"""Composed privacy losses: from a mechanism to its trade-off."""

from deniable.accounting.door import tradeoff
from deniable.accounting.individual import IndividualTradeoffs, NormRecorder, individual_tradeoffs

__all__ = ["IndividualTradeoffs", "NormRecorder", "individual_tradeoffs", "tradeoff"]
