import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable._search import bisect, bisect_integers, false_position

FLOATS = st.floats(-1e300, 1e300)


@given(st.lists(FLOATS, min_size=1, max_size=5), FLOATS, FLOATS)
def test_ends_are_neighbours_around_the_boundary(borders, low, high):
    border = np.array(borders)
    low, high = np.minimum(border, min(low, high)), np.maximum(np.nextafter(border, np.inf), max(low, high))
    good, bad = bisect(lambda x: x <= border, low, high)
    np.testing.assert_array_equal(good, border)
    np.testing.assert_array_equal(bad, np.nextafter(border, np.inf))
    good, bad = bisect(lambda x: x > border, high, low)  # the other way round
    np.testing.assert_array_equal(bad, border)
    np.testing.assert_array_equal(good, np.nextafter(border, np.inf))


def test_the_good_end_was_seen_to_hold_even_if_the_condition_wavers():
    seen = {}

    def wavering(x):
        seen[float(x)] = bool(np.sin(1e6 * x) > 0) if 0.4 < x < 0.6 else bool(x < 0.5)
        return seen[float(x)]

    good, bad = bisect(wavering, 0.0, 1.0)
    assert seen[float(good)]
    assert not seen[float(bad)]


def test_stops_at_the_relative_width_and_stays_inside():
    asked = []
    good, bad = bisect(lambda x: asked.append(float(x)) or x < 3.0, 1.0, 8.0, relative=1e-3)
    assert good < 3.0 <= bad
    assert bad - good <= 1e-3 * bad
    assert len(asked) < 15
    assert all(1.0 < x < 8.0 for x in asked)


@pytest.mark.parametrize("root", [1e-9, 0.3, 1.0, 62.9])
@pytest.mark.parametrize(
    "function", [np.arctan, np.sign, np.cbrt, lambda x: x**3, lambda x: np.expm1(np.clip(9 * x, -1e3, 600))]
)
@pytest.mark.parametrize("way", [1, -1])
def test_false_position_keeps_what_it_saw_and_asks_little(function, root, way):
    asked = {}

    def excess(x):
        asked[x] = float(function(way * (x - root)))
        return asked[x]

    good, bad = false_position(excess, *(0.0, 64.0)[::way], relative=1e-7)
    assert asked[good] <= 0 < asked[bad]
    assert abs(bad - good) <= 1e-7 * max(good, bad)
    assert way * good <= way * root <= way * bad
    assert len(asked) <= (0.6 if function is np.arctan else 3.0) * np.log2(64 / (1e-7 * root)) + 4
    assert all(0 <= x <= 64 for x in asked)


def test_false_position_where_no_bracket_is_known():
    assert false_position(lambda x: 1.0, 2.0, 5.0, relative=1e-7) == (2.0, 5.0)
    assert false_position(lambda x: np.nan, 2.0, 5.0, relative=1e-7) == (2.0, 5.0)
    good, bad = false_position(lambda x: -1.0 if x <= 3 else np.inf, 0.0, 5.0, relative=0.0)
    assert (good, bad) == (3.0, np.nextafter(3.0, 5.0))
    good, bad = false_position(lambda x: -np.inf if x <= 3 else 1.0, 0.0, 5.0, relative=1e-7)
    assert good <= 3 < bad <= good * (1 + 2e-7)


@given(st.lists(st.integers(-9, 99), min_size=1, max_size=5), st.integers(0, 50), st.integers(1, 50))
def test_whole_numbers_are_parted_at_the_boundary(borders, below, above):
    border = np.array(borders)
    low, high = np.full_like(border, border.min() - below), border.max() + above
    asked = []
    good, bad = bisect_integers(lambda x: asked.append(x) or x <= border, low, high)
    np.testing.assert_array_equal(good, border)
    np.testing.assert_array_equal(bad, border + 1)
    np.testing.assert_array_equal(bisect_integers(lambda x: x > border, high, low)[0], border + 1)
    assert all(((low <= x) & (x <= high)).all() for x in asked)
    assert len(asked) <= int(high - low[0]).bit_length()
