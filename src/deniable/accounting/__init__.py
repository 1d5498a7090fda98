"""Composed privacy losses: from a mechanism to its trade-off."""

from deniable.accounting.calibration import calibrate
from deniable.accounting.dispatch import tradeoff
from deniable.accounting.individual import IndividualTradeoffs, NormRecorder, individual_tradeoffs
from deniable.accounting.planning import plan_subsampling

__all__ = ["IndividualTradeoffs", "NormRecorder", "calibrate", "individual_tradeoffs", "plan_subsampling", "tradeoff"]
