"""Choosing what to run: limits, calibration to them, subsampling planner, bounds proven again."""

from deniable.planning.calibration import AsTellingAs, calibrate
from deniable.planning.proof import Proof, ProvenNumber, prove
from deniable.planning.samplers import SamplerNoise, SamplerPlan, plan_samplers
from deniable.planning.subsampling import plan_subsampling

__all__ = [
    "AsTellingAs",
    "Proof",
    "ProvenNumber",
    "SamplerNoise",
    "SamplerPlan",
    "calibrate",
    "plan_samplers",
    "plan_subsampling",
    "prove",
]
