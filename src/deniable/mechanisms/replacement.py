"""Batches of a fixed size, drawn without replacement."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deniable._check import InputError, integer, number
from deniable.mechanisms.core import Mechanism


@dataclass(frozen=True)
class WithoutReplacement(Mechanism):
    """Gaussian steps on batches of a fixed size, each drawn afresh and uniformly without replacement.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise on a batch's sum divided by the clipping norm (of **one** record: a replacement
        moves the sum by up to two such norms, which is counted here); above 0 and finite.
    batch
        Records in every batch, at least 1 and at most ``n_records``.
    n_records
        Number of records; it is the same in both worlds, and public.
    steps
        Number of steps, at least 1.

    Notes
    -----
    The two worlds differ in the **content of one record** (``"replace"``). The curve is an upper bound: it holds under
    composition, adaptive queries included (Dong, Roth & Su 2022), and is not tight. A batch that is drawn once and then
    reused, or cut from a shuffled data set (:class:`~deniable.ShuffledBatches`), is another mechanism.
    """

    noise_multiplier: float
    batch: int
    n_records: int
    steps: int = 1

    adjacency = "replace"

    def __post_init__(self) -> None:
        sigma = number(
            "noise_multiplier",
            self.noise_multiplier,
            above=0.0,
            below=math.inf,
            hint="training without noise has no membership bound",
        )
        object.__setattr__(self, "noise_multiplier", sigma)
        for name in ("batch", "n_records", "steps"):
            object.__setattr__(self, name, integer(name, getattr(self, name), at_least=1))
        if self.batch > self.n_records:
            raise InputError(
                f"batch must be at most n_records, got {self.batch:,} and {self.n_records:,}: without replacement no "
                "record is drawn twice"
            )
