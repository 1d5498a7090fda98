"""Batches of a fixed size, drawn without replacement."""

from __future__ import annotations

from dataclasses import dataclass

from deniable._check import InputError
from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import Count, NoiseScale


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

    Examples
    --------
    See ``RandomAllocation``.
    """

    noise_multiplier: NoiseScale
    batch: Count
    n_records: Count
    steps: Count = 1

    adjacency = "replace"
    sampling = (
        "each batch is drawn afresh, of one size, without replacement; Poisson and shuffled batches are other runs"
    )

    def _check_together(self) -> None:
        if self.batch > self.n_records:
            raise InputError(
                f"batch must be at most n_records, got {self.batch:,} and {self.n_records:,}: without replacement no "
                "record is drawn twice"
            )
