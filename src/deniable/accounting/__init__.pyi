from deniable.accounting.curve import first_engine as first_engine
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
    tradeoffs as tradeoffs,
)
from deniable.accounting.reductions import Dominated as Dominated, truncated as truncated
from deniable.accounting.steps import Repeated as Repeated, Step as Step
from deniable.accounting.steps.gaussian_mixture import (
    Case as Case,
    GaussianMixtureStep as GaussianMixtureStep,
    truncated_around as truncated_around,
)
from deniable.accounting.steps.registry import allocated as allocated, sampled as sampled
from deniable.accounting.steps.sampled_gaussian import ReplacedGaussianStep as ReplacedGaussianStep
