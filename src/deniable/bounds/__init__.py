"""The papers' closed forms: what ε and δ mean for a membership attacker. One theorem, one function.

All functions are vectorised (arguments broadcast), return a float for scalars, and round upper bounds up.
"""

from deniable.bounds.inverse import epsilon_for_accuracy, epsilon_for_advantage, epsilon_for_positive_accuracy
from deniable.bounds.membership import (
    accuracy,
    advantage,
    negative_accuracy,
    positive_accuracy,
    positive_advantage,
    subsampled_epsilon,
)
from deniable.bounds.mip import (
    advantage_from_scaled_variation,
    epsilon_for_mip,
    mip_eta,
    mip_from_dp,
    scaled_total_variation,
    subsampled_variation,
    tpr_from_mip,
    tpr_from_scaled_variation,
)
from deniable.bounds.prior_work import (
    erlingsson,
    humphries,
    jayaraman,
    jayaraman_advantage,
    pinsker,
    sablayrolles,
    yeom,
)

__all__ = [
    "accuracy",
    "advantage",
    "advantage_from_scaled_variation",
    "epsilon_for_accuracy",
    "epsilon_for_advantage",
    "epsilon_for_mip",
    "epsilon_for_positive_accuracy",
    "erlingsson",
    "humphries",
    "jayaraman",
    "jayaraman_advantage",
    "mip_eta",
    "mip_from_dp",
    "negative_accuracy",
    "pinsker",
    "positive_accuracy",
    "positive_advantage",
    "sablayrolles",
    "scaled_total_variation",
    "subsampled_epsilon",
    "subsampled_variation",
    "tpr_from_mip",
    "tpr_from_scaled_variation",
    "yeom",
]
