"""Record by record: leave-one-out optima, ex-post privacy loss, privacy profiles."""

from deniable._parallel import cluster
from deniable.laws.norm_laplace import NormLaplaceTradeoff
from deniable.records.empirical import Coverage, coverage, typical_self_coverage
from deniable.records.losses import Huber, Logistic, Loss, Poisson, Softmax, Squared, SquaredHinge
from deniable.records.making import privacy_profile
from deniable.records.mechanisms import OutputPerturbation
from deniable.records.objective import ObjectivePerturbation
from deniable.records.profile import PrivacyProfile
from deniable.records.several import changed_sphere
from deniable.records.transition import Transition
from deniable.records.worst_case import Sphere, worst_case_sphere

__all__ = [
    "Coverage",
    "Huber",
    "Logistic",
    "Loss",
    "NormLaplaceTradeoff",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Poisson",
    "PrivacyProfile",
    "Softmax",
    "Sphere",
    "Squared",
    "SquaredHinge",
    "Transition",
    "changed_sphere",
    "cluster",
    "coverage",
    "privacy_profile",
    "typical_self_coverage",
    "worst_case_sphere",
]
