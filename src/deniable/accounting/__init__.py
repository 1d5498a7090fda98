"""Composed privacy losses: from a mechanism to its trade-off."""

from deniable.accounting.dispatch import tradeoff
from deniable.accounting.filters import BudgetSpentError, GaussianFilter, RenyiFilter
from deniable.accounting.gradient_norms import NormRecorder
from deniable.accounting.individual import IndividualTradeoffs, individual_tradeoffs

__all__ = [
    "BudgetSpentError",
    "GaussianFilter",
    "IndividualTradeoffs",
    "NormRecorder",
    "RenyiFilter",
    "individual_tradeoffs",
    "tradeoff",
]
