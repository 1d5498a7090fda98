"""Composed privacy losses: from a mechanism to its trade-off."""

from deniable.accounting.calibration import calibrate
from deniable.accounting.dispatch import tradeoff

__all__ = ["calibrate", "tradeoff"]
