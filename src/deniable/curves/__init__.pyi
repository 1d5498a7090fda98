from deniable.curves.answer import (
    Answer as Answer,
    Charged as Charged,
    Question as Question,
)
from deniable.curves.base import Tradeoff as Tradeoff
from deniable.curves.chains import ChainTradeoff as ChainTradeoff
from deniable.curves.closed import (
    ApproximateTradeoff as ApproximateTradeoff,
    GaussianTradeoff as GaussianTradeoff,
    gaussian_hockey_stick as gaussian_hockey_stick,
    randomized_response_divergence as randomized_response_divergence,
)
from deniable.curves.combined import (
    FIXED_BEFOREHAND as FIXED_BEFOREHAND,
    TUNING_COUNTED as TUNING_COUNTED,
    TUNING_PARTLY_COUNTED as TUNING_PARTLY_COUNTED,
    BracketTradeoff as BracketTradeoff,
    EnvelopeTradeoff as EnvelopeTradeoff,
    FailureTradeoff as FailureTradeoff,
    SmallestTradeoff as SmallestTradeoff,
    with_assumptions as with_assumptions,
    with_batches_of as with_batches_of,
    with_failure as with_failure,
    with_note as with_note,
)
from deniable.curves.nearest_gaussian import (
    GaussianFit as GaussianFit,
    gaussian_fit as gaussian_fit,
)
from deniable.curves.safe import (
    EVERY_CASE as EVERY_CASE,
    FAILURES as FAILURES,
    LEAST_RATE as LEAST_RATE,
    ONE_CASE as ONE_CASE,
    OPPOSITE as OPPOSITE,
    TINY as TINY,
    AnyDirection as AnyDirection,
    Assumptions as Assumptions,
    Direction as Direction,
    Side as Side,
    accuracy_from as accuracy_from,
    directions as directions,
    outward as outward,
)
