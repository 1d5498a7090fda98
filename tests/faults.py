"""Engines that fail, seen: a curve answers with the trivial bound where one does, and a test would not notice."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import deniable.accounting.curve
import deniable.curves.base
import deniable.curves.safe


@contextmanager
def faults_shown() -> Iterator[None]:
    """Within, an engine that fails raises.

    Running out of memory stays quiet: that is how engines say that something does not fit.
    """
    with ExitStack() as stack:
        for module in (deniable.curves.base, deniable.curves.safe, deniable.accounting.curve):
            stack.enter_context(patch.object(module, "FAILURES", (MemoryError,)))
        yield
