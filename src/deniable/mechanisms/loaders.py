"""Batches as loaders draw them without Poisson sampling."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import Count, NoiseScale


@dataclass(frozen=True)
class ShuffledBatches(Mechanism):
    """Training on shuffled data: every epoch a fresh permutation, cut into ``batches`` noisy sums of clipped gradients.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise on a batch's sum divided by the clipping norm; above 0 and finite.
    batches
        Batches per epoch.
    epochs
        Passes over the data.

    Notes
    -----
    Its curve is a bracket, not a value: no tight pair is known. The two worlds differ in **what one record
    contributes** (``"zero-out"``): it takes its place in the permutation and contributes a gradient of 0, or its own.
    Removing it from the data is another question, since every later batch shifts: that bound is refused.
    ``adjacency="replace"`` is served.

    Examples
    --------
    See ``RandomAllocation``.
    """

    noise_multiplier: NoiseScale
    batches: Count
    epochs: Count = 1

    adjacency = "zero-out"
    sampling = "the records are shuffled in each epoch and cut into batches; Poisson batches are another run"
