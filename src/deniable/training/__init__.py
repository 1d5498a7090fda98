"""Models fitted to a membership target: noisy sums over all records, each query of the data in one account."""

from deniable.training.account import RecordTradeoffs
from deniable.training.classifier import PrivateClassifier, labels_of
from deniable.training.column import TaskChoice, fit_column
from deniable.training.features import TableReader
from deniable.training.fits import TrainingWarning
from deniable.training.regressor import PrivateRegressor

__all__ = [
    "PrivateClassifier",
    "PrivateRegressor",
    "RecordTradeoffs",
    "TableReader",
    "TaskChoice",
    "TrainingWarning",
    "fit_column",
    "labels_of",
]
