"""How much data to hold back: planning the subsampling of a training set before DP-SGD (Thudi et al. §4).

A pool of N records is thinned: each enters the training set with probability T. An attacker who asks "was this record
trained on?" then starts from a prior of at most T (§4.2), and batches drawn from the training set at rate q are the
second amplification (§4.1), inside the accounting of the steps. Lowering T lowers the prior but also the number of
records, so that a batch of the same size has a higher rate q; what is best is a trade between data and noise, "left
for future work" in the paper and computed here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, integer, interval, number, numbers
from deniable.accounting import tradeoff
from deniable.curves import ApproximateTradeoff
from deniable.limits import Limit
from deniable.mechanisms import SubsampledGaussian
from deniable.planning.calibration import search


@dataclass(frozen=True, eq=False)
class SubsamplingPlan:
    """The least noise that keeps a precision target, for every rate T at which the pool may be thinned.

    All arrays have one entry for each rate. Where no noise in the range keeps the target, ``noise_multiplier`` is ∞,
    ``feasible`` is False and what depends on the noise is NaN.

    Attributes
    ----------
    rate
        T: probability that a record of the pool enters the training set; the attacker's prior is at most this.
    noise_multiplier
        Least noise multiplier in the range with which the target is kept, rounded up.
    expected_size
        T·N, the expected number of training records.
    sample_rate, steps
        Batch rate q = batch size/(T·N), at most 1, and the number of steps for the epochs asked for. Both are fixed
        from the *expected* size: computing them from the size that came out would itself tell about membership.
    precision
        Bound on P(in | accused) of every attack with false positive rate ``fpr`` or more, from the exact ROC of the
        steps and prior T: both amplifications together.
    precision_without_thinning
        The same run seen with an even prior, as if the training set were not secret: batches are the only
        amplification.
    precision_from_dp
        The bound with prior T from (``epsilon``, δ) alone, which is looser than the ROC (NaN if no δ was given).
    epsilon
        ε of the steps at δ, towards records of the training set (NaN if no δ was given).
    pool_epsilon
        log(1 + T(e^ε − 1)), the ε at T·δ towards records of the pool: amplification by subsampling answers another
        question ("was it in the pool?") and is not to be multiplied into ``precision``.
    """

    rate: FloatArray
    noise_multiplier: FloatArray
    expected_size: FloatArray
    sample_rate: FloatArray
    steps: FloatArray
    precision: FloatArray
    precision_without_thinning: FloatArray
    precision_from_dp: FloatArray
    epsilon: FloatArray
    pool_epsilon: FloatArray

    @property
    def feasible(self) -> np.ndarray:
        """Where some noise in the range keeps the target."""
        return np.isfinite(self.noise_multiplier)

    @property
    def efficient(self) -> np.ndarray:
        """The frontier: feasible rates of which no other one has as much data with less noise."""
        more_data = self.expected_size[None, :] >= self.expected_size[:, None]
        less_noise = self.noise_multiplier[None, :] < self.noise_multiplier[:, None]
        return np.asarray(self.feasible & ~(more_data & less_noise).any(axis=1))


def plan_subsampling(
    pool_size: float,
    precision: float,
    fpr: float,
    *,
    batch_size: float,
    epochs: float = 1.0,
    rates: ArrayLike | None = None,
    noise_multipliers: tuple[float, float] = (0.01, 1e6),
    delta: float | None = None,
    records_per_person: int = 1,
) -> SubsamplingPlan:
    """Return, for each rate at which the pool may be thinned, the least noise that keeps a precision target.

    Every attack on the training set with false positive rate ``fpr`` or more is then right with probability at most
    ``precision`` when it says "in"; rarer accusations have no bound below 1 (δ > 0, Thudi et al. §5.2).

    Parameters
    ----------
    pool_size
        N, the number of records held.
    precision
        Target in (0, 1). No rate T ≥ ``precision`` can work, since guessing already reaches T.
    fpr
        False positive rate in (0, 1] at which the precision is promised.
    batch_size, epochs
        Of DP-SGD with Poisson batches: rate q = batch_size/(T·N), at most 1, and ⌈epochs/q⌉ steps.
    rates
        Rates T in (0, 1) to consider; by default twelve from 2 % to 80 % of ``precision``.
    noise_multipliers
        Range (low, high) in which to look for the noise multiplier.
    delta
        If given, ε at this δ is reported as well, and what it says about precision.
    records_per_person
        If above 1, the pool is thinned by persons: a person's records, at most this many, are all held back or none is,
        the record asked about is a person, and batches draw that person's records one by one.

    Returns
    -------
    SubsamplingPlan
        An entry per rate: the noise multiplier that it needs, infinite if none in the range is enough.

    Raises
    ------
    InputError
        If a value is outside its range, or none of the rates is below ``precision``.

    Notes
    -----
    Guarantees assume that thinning is independent for each record and secret, and that all steps may be seen.

    Examples
    --------
    >>> import deniable as dn
    >>> plan = dn.planning.plan_subsampling(10_000, 0.6, 0.01, batch_size=100)
    """
    pool = number("pool_size", pool_size, at_least=1.0, below=math.inf)
    target = number("precision", precision, above=0.0, below=1.0, hint="it is P(in | accused), not a percentage")
    alpha = number("fpr", fpr, above=0.0, at_most=1.0, hint="at fpr 0 the precision of DP-SGD has no bound")
    batch = number("batch_size", batch_size, above=0.0, below=math.inf)
    passes = number("epochs", epochs, above=0.0, below=math.inf)
    low, high = interval("noise_multipliers", noise_multipliers, above=0.0)
    if delta is not None:
        number("delta", delta, above=0.0, below=1.0)
    tried = target * np.geomspace(0.02, 0.8, 12) if rates is None else rates
    person = integer("records_per_person", records_per_person, at_least=1)
    thinning = np.unique(
        numbers("rates", tried, above=0.0, below=1.0, hint="if the whole pool trains, membership is no secret")
    )
    if not np.any(thinning < target):
        raise InputError(
            f"rates must contain one below the precision {target:g}, got {thinning.min():g} as the smallest; "
            "guessing from the prior is already right that often"
        )
    sample_rate = np.minimum(batch / (thinning * pool), 1.0)
    steps = np.ceil(passes / sample_rate * (1 - 1e-12))
    rows = [
        _row(float(t), float(q), int(n), target, alpha, (low, high), delta, person)
        for t, q, n in zip(thinning, sample_rate, steps, strict=True)
    ]
    noise, kept, even, from_dp, epsilon = (np.array(column) for column in zip(*rows, strict=True))
    with np.errstate(over="ignore"):
        pool_epsilon = np.where(epsilon > 30, epsilon + np.log(thinning), np.log1p(thinning * np.expm1(epsilon)))
    return SubsamplingPlan(
        rate=thinning,
        noise_multiplier=noise,
        expected_size=thinning * pool,
        sample_rate=sample_rate,
        steps=steps,
        precision=kept,
        precision_without_thinning=even,
        precision_from_dp=from_dp,
        epsilon=epsilon,
        pool_epsilon=pool_epsilon,
    )


def _row(
    rate: float,
    sample_rate: float,
    steps: int,
    target: float,
    fpr: float,
    noise_multipliers: tuple[float, float],
    delta: float | None,
    records_per_person: int,
) -> tuple[float, float, float, float, float]:
    """Least noise, precision at prior T and ½, precision from (ε, δ), ε; (∞, NaN, …) if nothing in range will do."""
    nothing = (math.inf, math.nan, math.nan, math.nan, math.nan)
    # precision ≤ target at prior T  ⇔  TPR ≤ FPR · odds(target)/odds(T)
    allowed = fpr * target / (1 - target) * (1 - rate) / rate
    if allowed <= fpr:
        return nothing

    def make(sigma: float) -> SubsampledGaussian:
        return SubsampledGaussian(sigma, sample_rate, steps, records_per_person)

    low, high = noise_multipliers
    limit = min(allowed * (1 - 1e-12), 1.0)
    if tradeoff(make(high)).tpr(fpr) > limit:
        return nothing
    noise = low
    if limit < 1:
        sought = Limit(tpr=limit, fpr=fpr)
        noise = search(sought, make, (low, high), near=min(max(1.0, low), high), tolerance=1e-6).parameter
    curve = tradeoff(make(noise))
    precision, even = curve.precision(fpr, rate), curve.precision(fpr, 0.5)
    epsilon = math.nan if delta is None else max(curve.epsilon(delta), 0.0)
    from_dp = math.nan if delta is None else ApproximateTradeoff(epsilon, delta).precision(fpr, rate)
    return noise, precision, even, from_dp, epsilon
