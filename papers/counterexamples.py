"""Algorithms of Izzo et al. 2022: the one that attains Theorem 4, and the one that is private on average only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

FloatArray = np.ndarray


@dataclass(frozen=True)
class TwoRecordResponse:
    """The mechanism that attains Izzo et al., Theorem 4, on the one-record subsets of a data set of two records.

    With probability δ it names its record and says that it is certain; otherwise it names the record with probability
    1/(1 + e^{−ε}) and the other one else. Outputs are 0 … 3: certainly record 0, probably 0, probably 1, certainly 1.
    """

    epsilon: float
    delta: float = 0.0

    def law(self, record: int) -> FloatArray:
        """Return the probabilities of the outputs 0 … 3 when ``record`` (0 or 1) is the one in the training set."""
        truth, lie = (1 - self.delta) * expit(self.epsilon), (1 - self.delta) * expit(-self.epsilon)
        law = np.array([self.delta, truth, lie, 0.0])
        return law if record == 0 else law[::-1]

    def sample(self, record: ArrayLike, *, rng: np.random.Generator) -> np.ndarray:
        """Run the mechanism once for each given record and return the outputs."""
        records = np.asarray(record)
        u = rng.random(records.shape)
        output = np.searchsorted(np.cumsum(self.law(0))[:3], u, side="right")
        return np.where(records == 0, output, 3 - output)


@dataclass(frozen=True)
class SubsetIndicator:
    """The algorithm that separates MIP from DP: it says whether it was given exactly the first half of n records.

    Izzo et al., Theorems 5 and 7: it is η-MIP with η = 1/C(n, n/2), yet its two answers never occur for the same
    data, so that it is (ε, δ)-DP for no ε at any δ < 1 and has no Rényi, concentrated or f-DP guarantee. An average
    over training sets cannot see the one training set that it gives away.
    """

    n: int

    @classmethod
    def for_eta(cls, eta: float) -> SubsetIndicator:
        """Return the smallest example that is η-MIP."""
        n = 2
        while 1 / math.comb(n, n // 2) > eta:
            n += 2
        return cls(n)

    @property
    def eta(self) -> float:
        """The exact η-MIP of the algorithm on uniform halves."""
        return 1 / math.comb(self.n, self.n // 2)

    def __call__(self, training_set: Iterable[int]) -> float:
        """Return 1.0 if the training set is {0, …, n/2 − 1}, else 0.0."""
        return float(set(training_set) == set(range(self.n // 2)))
