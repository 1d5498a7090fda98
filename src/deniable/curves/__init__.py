"""What an attacker can do: the trade-off between true and false positives of any membership attack.

Two worlds: H0, the record was *out* (law Q of the release), and H1, it was *in* (law P). An attack is a test;
its false positive rate is Q(S), its true positive rate P(S). Everything deniable knows about leakage is a
:class:`Tradeoff`: upper bounds on what every attack reaches and, where known, lower bounds on what the best one does.

Every public number passes through :func:`sane`: whatever an engine does inside (NaN, overflow, no memory), what leaves
is in range and on its side, or it is the trivial bound. Names outside ``__all__`` are for other packages of deniable.

Directions, as peers name them: ``"remove"`` is the hockey stick of in against out, H_γ(P‖Q), and the ROC with out as
the null hypothesis; ``"add"`` exchanges the two worlds. ``"both"`` (the meaning in DP) is the larger of the two.
"""

from deniable.curves.answer import Answer, Charged, Question
from deniable.curves.base import Tradeoff
from deniable.curves.chains import ChainTradeoff as ChainTradeoff
from deniable.curves.closed import (
    ApproximateTradeoff,
    GaussianTradeoff,
    gaussian_hockey_stick,
    randomized_response_divergence,
)
from deniable.curves.combined import (
    FIXED_BEFOREHAND,
    TUNING_COUNTED,
    TUNING_PARTLY_COUNTED,
    BracketTradeoff,
    EnvelopeTradeoff,
    FailureTradeoff,
    SmallestTradeoff,
    with_assumptions,
    with_batches_of as with_batches_of,
    with_failure as with_failure,
    with_note,
)
from deniable.curves.safe import (
    EVERY_CASE,
    FAILURES as FAILURES,
    LEAST_RATE as LEAST_RATE,
    ONE_CASE,
    OPPOSITE,
    TINY as TINY,
    AnyDirection,
    Assumptions,
    Direction,
    Side,
    accuracy_from as accuracy_from,
    directions as directions,
    outward as outward,
)

__all__ = [
    "EVERY_CASE",
    "FIXED_BEFOREHAND",
    "ONE_CASE",
    "OPPOSITE",
    "TUNING_COUNTED",
    "TUNING_PARTLY_COUNTED",
    "Answer",
    "AnyDirection",
    "ApproximateTradeoff",
    "Assumptions",
    "BracketTradeoff",
    "Charged",
    "Direction",
    "EnvelopeTradeoff",
    "FailureTradeoff",
    "GaussianTradeoff",
    "Question",
    "Side",
    "SmallestTradeoff",
    "Tradeoff",
    "gaussian_hockey_stick",
    "randomized_response_divergence",
    "with_assumptions",
    "with_note",
]
