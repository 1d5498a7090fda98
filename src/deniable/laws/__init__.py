"""What a noisy vector tells about the distance of two means: laws of the loss, for noise on models."""

from deniable.laws.gaussian import GaussianLaw as GaussianLaw
from deniable.laws.loss_law import LossLaw as LossLaw, in_chunks as in_chunks
from deniable.laws.norm_laplace import (
    NormLaplaceLaw as NormLaplaceLaw,
    NormLaplaceTradeoff as NormLaplaceTradeoff,
    hockey_stick_at_most as hockey_stick_at_most,
)
