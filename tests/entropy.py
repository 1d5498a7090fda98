"""What stands for the operating system's entropy in tests: a stream for each test, so that a run can be repeated.

Private fits and releases draw from it whatever seeds a test gives; only the processes that a test starts do not.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


class Entropy:
    """Stands in for ``os.urandom``, and with it for ``secrets`` and for NumPy's unseeded generators."""

    def __init__(self, run: int) -> None:
        self._run = run
        self.begin("collection")

    def begin(self, name: str) -> None:
        """Start the stream of one test; NumPy's global state, which scikit-learn uses, too."""
        self._stream = random.Random(f"{self._run} {name}")
        np.random.seed(self._stream.getrandbits(32))  # noqa: NPY002

    @contextmanager
    def of_fixture(self, name: str) -> Iterator[None]:
        """Draw from a fixture's own stream, whichever test asks for it first, and go on with the test's."""
        test, state = self._stream, np.random.get_state()  # noqa: NPY002
        self.begin(name)
        try:
            yield
        finally:
            self._stream = test
            np.random.set_state(state)  # noqa: NPY002

    def __call__(self, count: int) -> bytes:
        return self._stream.randbytes(count)


def replace_entropy(run: int) -> Entropy:
    """Replace the operating system's entropy in this process by the streams of a run."""
    entropy = Entropy(run)
    os.urandom = entropy
    random._urandom = entropy  # what ``secrets`` and ``SystemRandom`` hold
    return entropy
