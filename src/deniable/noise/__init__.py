"""Release with a membership guarantee: couplings, noise laws, certificates."""

from deniable.noise.certificate import Alternative, Certificate, Release, ReleaseWarning
from deniable.noise.covariance import Covariance
from deniable.noise.evidence import ReleaseError
from deniable.noise.exact import ExactMembership, exact_membership
from deniable.noise.laws import GaussianNoise, NormLaplaceNoise
from deniable.noise.mechanism import release
from deniable.noise.statistics import Histogram, Mean, Quantile, SecondMoment

__all__ = [
    "Alternative",
    "Certificate",
    "Covariance",
    "ExactMembership",
    "GaussianNoise",
    "Histogram",
    "Mean",
    "NormLaplaceNoise",
    "Quantile",
    "Release",
    "ReleaseError",
    "ReleaseWarning",
    "SecondMoment",
    "exact_membership",
    "release",
]
