"""Side by side: differences of measured numbers have intervals that hold; differences of bounds have none."""

import numpy as np
import pytest

import deniable as dn


def row_of(found, key):
    return next(row for row in found.rows if row.key == key)


def scores(shift, seed, n=150):
    rng = np.random.default_rng(seed)
    return dn.audit_scores(rng.normal(shift, 1, n), rng.normal(0, 1, n))


def test_intervals_of_the_difference_hold_and_tell_clear_cases():
    found = row_of(dn.compare(scores(0.0, 0), scores(2.0, 1)), "attack.advantage")
    low, high = found.differences[0]
    truth = 2 * 0.8413447460685429 - 1  # TV of N(0, 1) and N(2, 1) is 2Φ(1) − 1; of equal laws 0
    assert 0 < low <= truth <= high
    first, other = found.numbers
    assert (low, high) == (other.low - first.high, other.high - first.low)
    low, high = row_of(dn.compare(scores(1.0, 0), scores(1.0, 1)), "attack.advantage").differences[0]
    assert low < 0 < high


def test_bounds_have_no_interval_of_their_difference():
    found = dn.compare(dn.PureDP(0.5), dn.PureDP(1.0), dn.PureDP(0.5))
    assert row_of(found, "bound.advantage").differences == (None, None)
    assert found.decisions[0] == "does not meet"


def test_what_only_one_has_and_bad_input():
    found = dn.compare(dn.assess(dn.PureDP(1.0)), scores(1.0, 0))
    assert row_of(found, "bound.advantage").differences == (None,)
    with pytest.raises(dn.InputError, match="at least two"):
        dn.compare(dn.PureDP(1.0))
