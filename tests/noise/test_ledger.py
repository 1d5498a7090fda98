"""One budget: what fits is counted before it is answered, what does not is refused and leaves no trace."""

import math

import numpy as np
import pytest

from deniable import InputError
from deniable._floats import MANY_ROUNDINGS
from deniable.noise.queries import QueryBudget, SumNoise, total_delta, total_mu


def test_equal_parts_of_a_budget_fit_whatever_their_number():
    """Fifteen equal parts of δ once did not: their sum was rounded up, and charged as much as each had been reduced."""
    for parts in range(1, 200):
        ledger = QueryBudget(0.25, 1e-6)
        ledger.spend("count", "", 0.025)
        each = ledger.left / math.sqrt(parts) * (1 - MANY_ROUNDINGS)
        for _ in range(parts):
            ledger.spend("part", "", each, 1e-6 / parts * (1 - MANY_ROUNDINGS))
        assert total_mu(ledger.uses) == pytest.approx(0.25)
        assert math.fsum(use.delta for use in ledger.uses) <= total_delta(ledger.uses) <= 1e-6
        assert ledger.left < 1e-5


@pytest.mark.parametrize("cost", [(0.2, 0.0), (0.0, 2e-6), (math.nan, 0.0), (0.0, math.nan)])
def test_what_does_not_fit_is_refused_and_not_counted(cost):
    ledger = QueryBudget(0.25, 1e-6)
    ledger.spend("first", "", 0.2)
    with pytest.raises(InputError, match="does not cover second"):
        ledger.spend("second", "", *cost)
    assert [use.name for use in ledger.uses] == ["first"]
    ledger.spend("third", "", 0.1)


def test_a_channel_answers_as_often_as_was_paid_for():
    channel = SumNoise().channel("sums", np.ones(3), 2)
    for _ in range(2):
        assert channel(np.zeros(3, dtype=np.int64)).shape == (3,)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="answered every question"):
            channel(np.zeros(3, dtype=np.int64))
