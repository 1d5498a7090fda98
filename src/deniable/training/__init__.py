"""Models fitted to a membership target: noisy sums over all records, each query of the data in one account."""

from deniable.noise.queries import Use
from deniable.training.account import RecordTradeoffs
from deniable.training.base import TrainingWarning
from deniable.training.classifier import PrivateClassifier
from deniable.training.regressor import PrivateRegressor

__all__ = [
    "PrivateClassifier",
    "PrivateRegressor",
    "RecordTradeoffs",
    "TrainingWarning",
    "Use",
]
