"""Why a statistic is withheld is true: of texts, of constant columns, and of few records."""

import warnings

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.statistics.estimates import Limits

N = 20_000
RANGES = {"town": (0, 1), "x": (-4, 4), "still": (0, 10), "few": (-4, 4)}


def notes(table, query):
    ranges = {name: span for name, span in RANGES.items() if name in table}
    found = dn.release_statistics(table, [query], advantage=0.3, ranges=ranges)
    return {note for note in found.to_frame()["note"]}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    few = np.where(np.arange(N) < 3, x, np.nan)
    return pd.DataFrame({"town": rng.choice(["a", "b"], N), "x": x, "still": 5.0, "few": few})


@pytest.mark.parametrize("query", ["mean(town)", "median(town)", "ecdf(town)", "correlation(town, x)", "mean(few)"])
def test_a_column_without_numbers_is_not_said_to_have_too_few_records(table, query):
    assert any("too few numbers or dates in the column for the noise" in note for note in notes(table, query))
    assert not any("too few records" in note for note in notes(table, query))


def test_a_constant_column_is_said_to_vary_too_little(table):
    found = notes(table, "correlation(still, x)")
    assert found == {"a column varies too little for the noise"}


def test_few_records_are_few_numbers():
    assert notes(pd.DataFrame({"x": [1.0, 2.0, 0.5]}), "mean(x)") == {
        "too few numbers or dates in the column for the noise"
    }


def test_numbers_beyond_the_search_for_a_range_are_said_to_be():
    huge, old = pd.DataFrame({"x": np.full(2000, 3e200)}), pd.DataFrame({"x": ["1850-03-01"] * 2000})
    tiny = pd.DataFrame({"x": 1e-9 * np.arange(1.0, 2001.0)})
    for frame, query in ((huge, "mean(x)"), (-huge, "median(x)"), (old, "mean(x)"), (tiny, "mean(x)")):
        found = dn.release_statistics(frame, query, advantage=0.3)
        assert "where the search ends: declare its range" in str(found)
    for values in (np.arange(2000.0), np.zeros(2000), np.linspace(0, 1e-3, 2000)):
        plain = dn.release_statistics(pd.DataFrame({"x": values}), "mean(x)", advantage=0.3)
        assert "search ends" not in str(plain)


@pytest.mark.parametrize("scale", [1e-9, 1e12, 1.0])
def test_fits_and_made_up_tables_warn_of_numbers_beyond_the_search(scale):
    """Moles and milliseconds had models that guess, rows of one number, and not a word."""
    x = scale * (1 + np.random.default_rng(0).random(2000))
    table, y = pd.DataFrame({"x": x}), np.arange(2000) % 2
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dn.PrivateClassifier(advantage=0.5).fit(table, y)
        dn.PrivateRegressor(advantage=0.5).fit(pd.DataFrame({"y": y}), x)
        dn.PrivateSynthesizer(advantage=0.5).fit(table)
    found = {str(one.message).split(",")[0] for one in said if "where the search ends" in str(one.message)}
    far = {f"values may lie beyond the {what}" for what in ("range of x", "range of the target", "octaves of x")}
    assert found == (far if scale != 1 else set())


def test_a_range_whose_squares_are_no_numbers_is_refused():
    frame = pd.DataFrame({"x": np.full(2000, 3e200)})
    with pytest.raises(dn.InputError, match="range of 'x' must lie within ±1e\\+100"):
        dn.release_statistics(frame, "variance(x)", advantage=0.3, ranges={"x": (0, 1e308)})
    found = dn.release_statistics(frame, ["variance(x)", "sum(x)"], advantage=0.3, ranges={"x": (0, 1e100)})
    assert "e+103" in str(found)  # 1e100 of 2,000 records, as a power of ten


@pytest.mark.parametrize("value", [0.0, 1.0, 0.3])
def test_only_what_has_no_noise_is_declared(value):
    """Half of the records share a number: the points around its quantile are the same, and were called exact."""
    frame = pd.DataFrame({"x": np.where(np.arange(4000) % 5, value, 0.5)})
    found = dn.release_statistics(frame, "median(x)", advantage=0.3, ranges={"x": (0, 1)})
    (row,) = found["median(x)"]
    assert row.noise > 0
    assert "(declared)" not in row.shown()
    known = dn.release_statistics(frame, "count()", advantage=0.3, n=4000)
    assert known["count()"][0].shown() == "4000 (declared)"


@pytest.mark.parametrize(
    ("value", "within", "said", "population"),
    [(-24.0, (0.0, np.inf), "-24, so at most 18", "0.0 to 19.4"),
     (-1.0, (0.0, np.inf), "-1, so at most 18", "0.0 to 19.4"),
     (5.0, (0.0, np.inf), "5 ± 18", "0 to 25"), (102.0, (0.0, 100.0), "102, so at least 82", "80.6 to 100.0")],
)  # fmt: skip
def test_limits_of_an_impossible_value_are_never_cut_to_nothing(value, within, said, population):
    """-24 ± 18 records had the limits 0 to 0: nothing was possible, although nobody may be in that cell."""
    row = Limits(0.95).row((), "", value, 9.0, 4.0, within)
    assert (row.shown(), row.population) == (said, population)
    plain = Limits(0.95).row((), "", value, 9.0, 4.0)
    assert row.low <= max(plain.low, within[0])
    assert row.high >= min(plain.high, within[1])


def test_limits_of_an_empty_cell_cover_it_as_often_as_they_say():
    values, limits = 12.7 * np.random.default_rng(0).normal(size=4000), Limits(0.95)
    rows = [limits.row((), "", value, 12.7, within=(0.0, np.inf)) for value in values]
    assert np.mean([row.low <= 0 <= row.high for row in rows]) > 0.965  # 0.975, less three standard deviations
    assert min(row.high - row.low for row in rows) > 12.7


def test_the_advantage_of_each_line_is_rounded_up():
    made = dn.release_statistics(pd.DataFrame({"x": np.arange(1000.0)}), "count()", advantage=0.1)
    (line,) = made.records()
    assert made.certificate.advantage <= line["advantage"] <= made.certificate.advantage + 1e-4
    assert len(str(line["advantage"])) <= 6


def test_dates_among_several_columns_are_said_to_be_days():
    frame = pd.DataFrame({"x": np.arange(2000.0), "day": ["2020-05-01", "2021-07-01"] * 1000})
    found = dn.release_statistics(frame, ["regression(x ~ day)", "mean(day)"], advantage=0.3)
    assert "dates count in days since 1970-01-01" in found.estimands[0]
    assert "1970" not in found.estimands[1]
