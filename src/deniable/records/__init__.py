"""Record by record: leave-one-out optima, ex-post privacy loss, privacy profiles."""

from deniable._parallel import cluster
from deniable.laws import NormLaplaceTradeoff
from deniable.records.losses import Huber, Logistic, Loss, Poisson, Softmax, Squared, SquaredHinge, as_loss as as_loss
from deniable.records.mechanisms import OutputPerturbation
from deniable.records.objective import ObjectivePerturbation
from deniable.records.profile import PrivacyProfile
from deniable.records.profiler import privacy_profile
from deniable.records.transition import Transition

__all__ = [
    "Huber",
    "Logistic",
    "Loss",
    "NormLaplaceTradeoff",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Poisson",
    "PrivacyProfile",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "Transition",
    "cluster",
    "privacy_profile",
]
