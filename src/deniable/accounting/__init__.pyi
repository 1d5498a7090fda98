from deniable.accounting.dispatch import tradeoff as tradeoff
from deniable.accounting.filters import (
    BudgetSpentError as BudgetSpentError,
    GaussianFilter as GaussianFilter,
    RenyiFilter as RenyiFilter,
)
from deniable.accounting.gradient_norms import NormRecorder as NormRecorder
from deniable.accounting.individual import (
    IndividualTradeoffs as IndividualTradeoffs,
    individual_tradeoffs as individual_tradeoffs,
)
