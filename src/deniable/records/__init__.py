"""Record by record: leave-one-out optima, ex-post privacy loss, privacy profiles."""

from deniable.records.mechanisms import OutputPerturbation
from deniable.records.objective import ObjectivePerturbation
from deniable.records.profile import PrivacyProfile, privacy_profile
from deniable.records.transition import Transition

__all__ = ["ObjectivePerturbation", "OutputPerturbation", "PrivacyProfile", "Transition", "privacy_profile"]
