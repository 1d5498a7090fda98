"""Choosing what to run: calibration to any target, subsampling planner, comparison of bounds."""

from deniable.planning.calibration import calibrate
from deniable.planning.subsampling import plan_subsampling

__all__ = ["calibrate", "plan_subsampling"]
