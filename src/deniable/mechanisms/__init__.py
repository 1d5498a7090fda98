"""What ran: the mechanisms whose leakage deniable knows how to bound.

A mechanism is a frozen, validated description of a randomised algorithm seen by one record that is either in or
out of its input. It computes nothing: ``deniable.curves`` turns it into what an attacker can do.
"""

from deniable.mechanisms.core import (
    ADJACENCIES,
    ApproximateDP,
    Composition,
    GaussianDP,
    Grouped,
    Mechanism,
    PureDP,
    SubsampledGaussian,
    leaves_of as leaves_of,
    parts_of as parts_of,
    sampling_of as sampling_of,
)
from deniable.mechanisms.fields import Count as Count, Rate as Rate
from deniable.mechanisms.guarantees import RenyiDP, ZeroConcentratedDP
from deniable.mechanisms.holders import (
    Receipt as Receipt,
    entered as entered,
    fields_of as fields_of,
    held as held,
    together as together,
)
from deniable.mechanisms.laws import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    FinitePair,
    Laplace,
    RandomizedResponse,
)
from deniable.mechanisms.matrix import MatrixMechanism, bands as bands, toeplitz_sensitivity
from deniable.mechanisms.plain import from_plain as from_plain, to_plain as to_plain
from deniable.mechanisms.training import (
    NoisyGradientDescent,
    RandomAllocation,
    ShuffledBatches,
    TruncatedPoisson,
    WithoutReplacement,
)
from deniable.mechanisms.tuning import Tuned, tuned

__all__ = [
    "ADJACENCIES",
    "ApproximateDP",
    "BoundedRange",
    "Composition",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FinitePair",
    "GaussianDP",
    "Grouped",
    "Laplace",
    "MatrixMechanism",
    "Mechanism",
    "NoisyGradientDescent",
    "PureDP",
    "RandomAllocation",
    "RandomizedResponse",
    "RenyiDP",
    "ShuffledBatches",
    "SubsampledGaussian",
    "TruncatedPoisson",
    "Tuned",
    "WithoutReplacement",
    "ZeroConcentratedDP",
    "toeplitz_sensitivity",
    "tuned",
]
