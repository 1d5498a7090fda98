"""Choosing what to run: limits, calibration to them, samplers, subsampling planner."""

from deniable.planning.calibration import (
    AsTellingAs,
    as_limit as as_limit,
    calibrate,
    domain as domain,
    search as search,
)
from deniable.planning.gaussian_budget import (
    Budget as Budget,
    budget as budget,
    failure_of as failure_of,
    largest_mu as largest_mu,
    squared_mu as squared_mu,
)
from deniable.planning.samplers import PROTECTS as PROTECTS, SamplerNoise, SamplerPlan, plan_samplers
from deniable.planning.subsampling import SubsamplingPlan as SubsamplingPlan, plan_subsampling

__all__ = ["AsTellingAs", "SamplerNoise", "SamplerPlan", "calibrate", "plan_samplers", "plan_subsampling"]
