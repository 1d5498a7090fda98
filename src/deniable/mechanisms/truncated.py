"""Poisson batches that are cut down to a largest size."""

from __future__ import annotations

from dataclasses import dataclass

from deniable._check import InputError, integer, number
from deniable.mechanisms.core import Mechanism


@dataclass(frozen=True)
class TruncatedPoisson(Mechanism):
    """Poisson-subsampled Gaussian steps whose batches hold at most ``max_batch`` records.

    Compiled training (fixed shapes) cuts larger batches down to ``max_batch`` of their records, drawn at random.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise divided by the clipping norm; above 0 and finite.
    sample_rate
        Probability with which each record enters each batch before it is truncated, in (0, 1).
    steps
        Number of steps, at least 1.
    max_batch
        Largest batch B, a whole number of at least 1 and below ``n_records``.
    n_records
        Number of records n, the one in question included; it is taken as public.

    Notes
    -----
    Exact domination: the attacker learns whether at least B other records were drawn, which costs next to
    nothing where batches are rarely truncated. The record is added or removed.
    """

    noise_multiplier: float
    sample_rate: float
    steps: int
    max_batch: int
    n_records: int

    def __post_init__(self) -> None:
        sigma = number(
            "noise_multiplier",
            self.noise_multiplier,
            above=0.0,
            below=float("inf"),
            hint="training without noise has no membership bound",
        )
        object.__setattr__(self, "noise_multiplier", sigma)
        rate = number("sample_rate", self.sample_rate, above=0.0, below=1.0, hint="with 1 every batch is cut")
        object.__setattr__(self, "sample_rate", rate)
        for name in ("steps", "max_batch", "n_records"):
            object.__setattr__(self, name, integer(name, getattr(self, name), at_least=1))
        if not self.max_batch < self.n_records:
            raise InputError(
                f"max_batch must be below n_records, got {self.max_batch} and {self.n_records}; batches that are never "
                "cut are SubsampledGaussian"
            )
