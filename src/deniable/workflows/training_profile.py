"""DP-SGD, record by record: from recorded gradient norms to a profile like that of a linear model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, integer, number
from deniable._optional import require
from deniable.accounting import individual_tradeoffs, tradeoff
from deniable.accounting.gradient_norms import NormRecorder
from deniable.accounting.individual import IndividualTradeoffs
from deniable.curves import SmallestTradeoff, Tradeoff
from deniable.mechanisms import Mechanism

if TYPE_CHECKING:
    import pandas as pd

WARNING = (
    "This profile was computed from the records' own gradients: it is sensitive. It is an assessment for the owner of "
    "the data, not a guarantee, and must not be published with the model."
)


@dataclass(frozen=True)
class TrainingProfile:
    """What an attacker could do against each record, given how large its gradients were in a DP-SGD run.

    Attributes
    ----------
    curves
        One trade-off per record: upper bounds on every attack.
    bound
        The run's own trade-off, which holds for any record whatever its gradients.
    """

    curves: IndividualTradeoffs = field(repr=False)
    bound: Tradeoff
    warning: str = WARNING

    def __len__(self) -> int:
        return len(self.curves)

    def advantage(self) -> FloatArray:
        """Upper bound of each record's advantage, never above the run's, (n,)."""
        return np.minimum(self.curves.advantage(), self.bound.advantage())

    def tpr(self, fpr: float) -> FloatArray:
        """Largest true positive rate against each record at ``fpr``, never above the run's, (n,)."""
        rate = number("fpr", fpr, at_least=0.0, at_most=1.0)
        return np.minimum(self.curves.tpr(rate), self.bound.tpr(rate))

    def ranking(self) -> NDArray[np.intp]:
        """Record indices, most exposed first."""
        return np.argsort(-self.advantage(), kind="stable")

    def tradeoff(self, record: int) -> Tradeoff:
        """The attack curve against one record: its own, never above the run's."""
        i = integer("record", record)
        if not -len(self) <= i < len(self):
            raise InputError(f"record must be between 0 and {len(self) - 1}, got {i}")
        own = self.curves[i]
        return SmallestTradeoff(
            (own, self.bound),
            method=own.method,
            assumptions=own.assumptions,
            confidence=own.confidence,
            holds_for=own.holds_for,
        )

    def to_frame(self, fpr: float = 0.001) -> pd.DataFrame:
        """One row per record, most exposed first. The frame is as sensitive as the data."""
        pandas = require("pandas", purpose="a data frame")
        order = self.ranking()
        frame: pd.DataFrame = pandas.DataFrame(
            {"record": order, "advantage": self.advantage()[order], f"tpr_at_fpr_{fpr:g}": self.tpr(fpr)[order]}
        )
        frame.attrs["warning"] = self.warning
        return frame


def profile_training(gradient_norms: ArrayLike | NormRecorder, clip: float, mechanism: Mechanism) -> TrainingProfile:
    """Return the profile of a DP-SGD run from its recorded gradient norms.

    Parameters
    ----------
    gradient_norms
        (records, steps), NaN where unknown (counts as ``clip``), or a recorder:
        :class:`deniable.integrations.opacus.GradientNorms` fills one while Opacus trains.
    clip
        Clipping norm of the run.
    mechanism
        The run: ``SubsampledGaussian`` or a ``Composition`` of them.
    """
    return TrainingProfile(individual_tradeoffs(gradient_norms, clip, mechanism), tradeoff(mechanism))
