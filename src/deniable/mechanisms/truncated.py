"""Poisson batches that are cut down to a largest size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from deniable._check import InputError
from deniable._checked import real
from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import Count, NoiseScale


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

    Examples
    --------
    See ``RandomAllocation``.
    """

    noise_multiplier: NoiseScale
    sample_rate: Annotated[float, real(above=0.0, below=1.0, hint="with 1 every batch is cut")]
    steps: Count
    max_batch: Count
    n_records: Count

    def _check_together(self) -> None:
        if not self.max_batch < self.n_records:
            raise InputError(
                f"max_batch must be below n_records, got {self.max_batch} and {self.n_records}; batches that are never "
                "cut are SubsampledGaussian"
            )
