"""Statistics of columns of dates: asked and answered in dates, computed on days since 1970-01-01."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from deniable.statistics import release_statistics
from deniable.statistics.grammar import Day, parse
from deniable.testing import insecure_noise

N = 4000
RANGE = {"admitted": ("2019-01-01", "2025-01-01")}


@pytest.fixture(scope="module")
def visits():
    days = np.random.default_rng(0).integers(18262, 19762, N)
    when = pd.Timestamp("1970-01-01") + pd.to_timedelta(days, "D")
    return pd.DataFrame(
        {"admitted": when.strftime("%Y-%m-%d"), "stamp": when, "day": days, "ward": ["A", "B"] * (N // 2)}
    )


def released(frame, statistic, ranges=None, **options):
    ranges = RANGE if ranges is None else ranges
    with insecure_noise(np.random.default_rng(1)):
        return release_statistics(frame, statistic, ranges=ranges, **{"advantage": 0.2} | options)


@pytest.mark.parametrize("function", ["mean({})", "median({})", "quantile({}, 0.1, 0.9)", "sd({})"])
def test_answers_are_those_of_the_days(visits, function):
    ends = tuple(float(Day.of(end)) for end in RANGE["admitted"])
    dates = released(visits, function.format("admitted"))
    days = released(visits, function.format("day"), {"day": ends})
    assert [row.value for row in dates.rows[0]] == [row.value for row in days.rows[0]]
    for row, line in zip(dates.rows[0], dates.records(), strict=True):
        if function == "sd({})":
            assert row.note == "in days"
            assert "date" not in line
        else:
            first, value, last = (date.fromisoformat(line[key]) for key in ("date_low", "date", "date_high"))
            assert first <= value <= last
            assert (value - date(1970, 1, 1)).days == np.floor(row.value)
            assert f": {value} ± " in str(dates)


def test_timestamps_and_ranges_of_date_objects(visits):
    given = {"stamp": (date(2019, 1, 1), pd.Timestamp("2025-01-01"))}
    found = released(visits, "mean(stamp)", given)
    assert found["mean(stamp)"][0].value == released(visits, "mean(admitted)")["mean(admitted)"][0].value
    assert found.ranges == {"stamp": ("2019-01-01", "2025-01-01")}
    assert found.to_frame()["date"].tolist()[0].startswith("2022-0")


def test_edges_are_dates_too(visits):
    asked = "histogram(admitted, edges=2020-01-01:2021-01-01:2025-01-01)"
    assert str(parse(asked)) == asked
    found = released(visits, asked)
    assert [row.item for row in found.rows[0]] == ["2020-01-01 to 2021-01-01", "2021-01-01 to 2025-01-01"]
    truth = np.histogram(visits["day"], [18262, 18628, 20089])[0]
    assert [row.value for row in found.rows[0]] == pytest.approx(truth, abs=50)
    steps = released(visits, "ecdf(admitted, points=4)")
    assert [row.item for row in steps.rows[0]] == ["2019-01-01", "2020-07-02", "2022-01-01", "2023-07-03", "2025-01-01"]


def test_dates_as_categories_stay_categories(visits):
    few = visits.assign(wave=np.where(visits["day"] < 19000, "2021-12-31", "2024-12-31"))
    found = released(few, "count() by wave", {"wave": ("2021-12-31", "2024-12-31")})
    assert [row.group[0] for row in found.rows[0]] == ["2021-12-31", "2024-12-31", "(other)", "(missing)"]
    assert found.rows[0][0].value + found.rows[0][1].value == pytest.approx(N, abs=50)


def test_days_far_from_the_calendar_are_numbers():
    assert str(Day(1e9)) == "day 1e+09"
    assert str(Day(-1.0)) == "1969-12-31"
    assert str(Day(0.99)) == "1970-01-01"
