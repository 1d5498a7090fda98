"""Random allocation: every record enters a fixed number of batches an epoch, chosen at random."""

from __future__ import annotations

from dataclasses import dataclass

from deniable._check import InputError
from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import Count, NoiseScale


@dataclass(frozen=True)
class RandomAllocation(Mechanism):
    """DP-SGD in which each record goes into ``batches_per_record`` of ``batches`` batches in every epoch.

    Also known as balls in bins. The batches are chosen uniformly, afresh in every epoch, for each record independently;
    the sizes of the batches vary, and sums of clipped gradients are divided by a public constant.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise divided by the clipping norm; above 0 and finite.
    batches
        Number t of batches in an epoch, a whole number of at least 1.
    epochs
        Number of epochs, at least 1.
    batches_per_record
        How many different batches of an epoch a record enters, from 1 to ``batches``.

    Notes
    -----
    The record is *added or removed*: out, an epoch releases N(0, σ²I_t); in, the mixture of N(Σ_{i∈A} e_i, σ²I_t) over
    all sets A of ``batches_per_record`` batches. For one batch per record both bounds are certified and close; for
    more, the upper bound is that of a random partition of the batches into as many groups, one batch per group, which
    the attacker is given (joint convexity), and the lower one is what the sum of all batches, or the largest, reveals.
    Shuffling a data set and cutting it into batches of equal size is *not* this mechanism: there a removal moves other
    records.
    Source: Chua et al. 2024 (arXiv 2412.16802), Feldman and Shenfeld 2025 (arXiv 2502.08202).

    Examples
    --------
    >>> import deniable as dn
    >>> samplers = [
    ...     dn.RandomAllocation(2.0, batches=100), dn.ShuffledBatches(2.0, batches=100),
    ...     dn.TruncatedPoisson(2.0, 0.01, steps=100, max_batch=150, n_records=10_000),
    ...     dn.WithoutReplacement(2.0, batch=100, n_records=10_000, steps=100),
    ... ]
    >>> [round(dn.tradeoff(sampler).advantage(), 3) for sampler in samplers]
    [0.021, 0.197, 0.021, 0.066]
    """

    noise_multiplier: NoiseScale
    batches: Count
    epochs: Count = 1
    batches_per_record: Count = 1

    sampling = "each record joins batches of an epoch drawn for it alone (allocation); a shuffled loader is another run"

    def _check_together(self) -> None:
        if self.batches_per_record > self.batches:
            raise InputError(
                f"batches_per_record must be at most batches={self.batches}, got {self.batches_per_record}: "
                "a record enters a batch once"
            )
