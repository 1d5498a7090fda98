"""Release with a membership guarantee: couplings, noise laws, certificates."""

from deniable.noise.certificate import Certificate
from deniable.noise.evidence import ReleaseError
from deniable.noise.half import Alternative, HalfCertificate, Release, ReleaseWarning
from deniable.noise.laws import GaussianNoise, NormLaplaceNoise
from deniable.noise.mechanism import release
from deniable.noise.statistics import Histogram, Mean, SecondMoment

__all__ = [
    "Alternative",
    "Certificate",
    "GaussianNoise",
    "HalfCertificate",
    "Histogram",
    "Mean",
    "NormLaplaceNoise",
    "Release",
    "ReleaseError",
    "ReleaseWarning",
    "SecondMoment",
    "release",
]
