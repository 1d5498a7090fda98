"""Choosing what to run: calibration to any target, subsampling planner, bounds proven again."""

from deniable.planning.calibration import calibrate
from deniable.planning.proof import Proof, ProvenNumber, prove
from deniable.planning.samplers import SamplerNoise, SamplerPlan, plan_samplers
from deniable.planning.subsampling import plan_subsampling

__all__ = [
    "Proof",
    "ProvenNumber",
    "SamplerNoise",
    "SamplerPlan",
    "calibrate",
    "plan_samplers",
    "plan_subsampling",
    "prove",
]
