"""What every event of dp-accounting becomes, by class name: the table in the documentation."""

from __future__ import annotations

from typing import Literal, NamedTuple


class EventStatus(NamedTuple):
    """What an event becomes; ``status`` says how the curve relates to the event's own."""

    status: Literal["tight", "upper bound", "refused"]
    what: str


# every event of dp-accounting 0.6 and those only on its main branch, by class name
EVENTS: dict[str, EventStatus] = {
    "NoOpDpEvent": EventStatus("tight", "nothing leaks"),
    "NonPrivateDpEvent": EventStatus(
        "tight", "everything leaks: advantage 1, times the rate of a Poisson sample around it"
    ),
    "GaussianDpEvent": EventStatus("tight", "`SubsampledGaussian` at rate 1"),
    "LaplaceDpEvent": EventStatus("tight", "`Laplace`; of a vector, all its L1 sensitivity in one coordinate"),
    "SelfComposedDpEvent": EventStatus("tight", "composition of its parts, as tight as they are"),
    "ComposedDpEvent": EventStatus("tight", "composition of its parts, as tight as they are"),
    "PoissonSampledDpEvent": EventStatus(
        "tight",
        "Gaussians (several from one sample are one), one Laplace or discrete Laplace, a Poisson sample of these "
        "(rates multiply); an upper bound around (ε, δ) and randomised response, amplified; else refused",
    ),
    "ZCDpEvent": EventStatus("upper bound", "`ZeroConcentratedDP`, the best that follows from every order"),
    "EpsilonDeltaDpEvent": EventStatus(
        "upper bound", "`ApproximateDP`, exact for the worst mechanism with that guarantee"
    ),
    "RandomizedResponseDpEvent": EventStatus("tight", "`RandomizedResponse` with ε = log(1 + k(1 − p)/p)"),
    "DiscreteLaplaceDpEvent": EventStatus("tight", "`DiscreteLaplace` with scale 1/parameter"),
    "MixtureOfGaussiansDpEvent": EventStatus(
        "tight",
        "`SubsampledGaussian` where the sensitivities are 0 and one other, else a mixture of Gaussians; refused "
        "without sensitivity 0 or with sensitivities of both signs",
    ),
    "DiscreteGaussianDpEvent": EventStatus(
        "tight", "`DiscreteGaussian` in one dimension; of a vector an upper bound, `ZeroConcentratedDP(Δ²/2σ²)`"
    ),
    "ExponentialMechanismDpEvent": EventStatus(
        "upper bound", "`BoundedRange`, exact for the worst mechanism of that range"
    ),
    "PermuteAndFlipDpEvent": EventStatus("upper bound", "`PureDP`, the worst mechanism with its ε"),
    "SingleEpochTreeAggregationDpEvent": EventStatus(
        "tight", "`MatrixMechanism` with sensitivity √(nodes above a record); the adjacency is zeroing out one record"
    ),
    "SampledWithoutReplacementDpEvent": EventStatus(
        "upper bound",
        "`WithoutReplacement` around Gaussians (several from one sample are one), for replacing a record; the "
        "noise is in units of the norm of one record, so a replacement changes the sum by 2; else refused",
    ),
    "RandomAllocationDpEvent": EventStatus(
        "upper bound",
        "`RandomAllocation` around Gaussians (several on one batch are one), tight for one batch; else refused",
    ),
    "SampledWithReplacementDpEvent": EventStatus(
        "refused", "a record may enter a batch several times; no dominating pair is proven for this"
    ),
    "TruncatedSubsampledGaussianDpEvent": EventStatus(
        "upper bound",
        "above `TruncatedPoisson`, which is about one record removed: n is one of two neighbours' size, so that the "
        "record may also be one more; bounds both, n and n + 1 records; `SubsampledGaussian` if no batch is ever cut",
    ),
    "RepeatAndSelectDpEvent": EventStatus("upper bound", "`tuned`, from both Rényi directions of a run"),
    "UnsupportedDpEvent": EventStatus("refused", "nobody says what ran"),
}
