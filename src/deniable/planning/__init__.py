"""Choosing what to run: calibration to any target, subsampling planner, comparison of bounds, bounds proven again."""

from deniable.planning.calibration import calibrate
from deniable.planning.proof import Proof, ProvenNumber, prove
from deniable.planning.subsampling import plan_subsampling

__all__ = ["Proof", "ProvenNumber", "calibrate", "plan_subsampling", "prove"]
