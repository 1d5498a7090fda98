"""How runs train: batches that are not drawn by Poisson sampling, and descent whose last iterate alone is released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from deniable._check import InputError
from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import Count, NoiseScale, Positive, real


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
    Two dominating pairs, of which the better one is asked: the attacker learns how many other records are in each
    batch, which costs next to nothing where batches are rarely truncated. The record is added or removed.

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


@dataclass(frozen=True)
class NoisyGradientDescent(Mechanism):
    """w ← w − step_size·(∇J(w) + N(0, σ²I)) on the whole data set, **only the last iterate is released**.

    The bound does not hold for anybody who sees an intermediate iterate, a loss curve or a checkpoint.

    Parameters
    ----------
    noise_multiplier
        σ/s: standard deviation of the noise that is added to the gradient, divided by how far one record can move the
        gradient of J (in Euclidean norm, at any w). For noise added outside the bracket, divide s by the step size.
    steps
        Number of steps, fixed beforehand.
    strong_convexity
        m > 0 with ∇²J ⪰ m·I for **both** data sets: the ridge penalty, for a convex loss with every weight penalised.
    smoothness
        M ≥ m with ∇²J ⪯ M·I for both data sets.
    step_size
        Constant, in (0, 2/M).

    Raises
    ------
    InputError
        Where a condition of the theorem fails: m = 0 (an unpenalised intercept is enough), M < m, step size ≥ 2/M.

    Notes
    -----
    Gaussian DP with μ = (s/σ)·√[(1 − c^t)(1 + c)/((1 + c^t)(1 − c))], c = max(|1 − ηm|, |1 − ηM|): bounded in t, and
    attained by a quadratic J (Bok, Su & Altschuler 2024, arXiv:2403.00278). The start must not depend on the data. For
    J = Σ loss/N + m‖w‖²/2 with a *public* N and gradients of norm at most R: s = R/N; with the data's own n, s = 2R/n.

    Examples
    --------
    See ``MatrixMechanism``.
    """

    noise_multiplier: NoiseScale
    steps: Count
    strong_convexity: Annotated[
        float,
        real(above=0.0, below=math.inf, hint="without it the iterates do not contract: penalise every weight"),
    ]
    smoothness: Positive
    step_size: Positive

    hidden = ("every iterate before the last one, with checkpoints, loss curves and scores computed from them",)

    def _check_together(self) -> None:
        if self.smoothness < self.strong_convexity:
            raise InputError(
                f"smoothness must be at least strong_convexity, got {self.smoothness:g} < {self.strong_convexity:g}"
            )
        if not self.step_size * self.smoothness < 2:
            raise InputError(
                f"step_size must be below 2/smoothness = {2 / self.smoothness:g}, got {self.step_size:g}: "
                "larger steps do not contract"
            )
