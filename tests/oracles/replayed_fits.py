"""Sources of noise for tests: one that writes down what passes through it, one that answers from such a record."""

from collections import defaultdict

import numpy as np


class Recording:
    """Adds rounded noise from a NumPy generator and keeps, by label, sums, standard deviations and answers."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.sums: dict[str, list] = defaultdict(list)
        self.released: dict[str, list] = defaultdict(list)
        self.sd: dict[str, np.ndarray] = {}

    def channel(self, label, sd, times):
        self.sd[label] = np.asarray(sd)

        def answer(sums):
            assert sums.dtype == np.int64
            self.sums[label].append(sums.copy())
            self.released[label].append(sums + np.rint(self.rng.normal(size=sums.shape) * sd).astype(np.int64))
            return self.released[label][-1]

        return answer


class Replay:
    """Gives the answers of a recorded fit to another data set and keeps the sums of that data set along the way."""

    def __init__(self, recorded: Recording) -> None:
        self.recorded = recorded
        self.sums: dict[str, list] = defaultdict(list)

    def channel(self, label, sd, times):
        np.testing.assert_array_equal(sd, self.recorded.sd[label])

        def answer(sums):
            self.sums[label].append(sums.copy())
            return self.recorded.released[label][len(self.sums[label]) - 1]

        return answer


def squared_shift(recorded: Recording, other: Replay) -> dict[str, float]:
    """Return by label Σ ((sum − other sum) / sd)²: the squared Gaussian DP parameter that this pair of data needs."""
    return {
        label: float(
            sum((((a - b) / recorded.sd[label]) ** 2).sum() for a, b in zip(sums, other.sums[label], strict=True))
        )
        for label, sums in recorded.sums.items()
    }
