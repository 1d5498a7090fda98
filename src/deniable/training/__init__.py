"""Models fitted to a membership target: noisy sums over all records, each query of the data in one account.

Names outside ``__all__`` are for other packages of deniable.
"""

from deniable.training.account import RecordTradeoffs
from deniable.training.base import Certified as Certified, PrivateModel as PrivateModel, estimator as estimator
from deniable.training.classifier import ClassifierFit as ClassifierFit, PrivateClassifier, labels_of
from deniable.training.column import TaskChoice, fit_column
from deniable.training.encoders import (
    Encoder as Encoder,
    Levels as Levels,
    Listed as Listed,
    Pair as Pair,
    Thermometer as Thermometer,
)
from deniable.training.features import (
    Declared as Declared,
    FeatureTable as FeatureTable,
    TableReader,
    declare as declare,
)
from deniable.training.fits import Fit as Fit, TrainingWarning
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
