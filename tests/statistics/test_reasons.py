"""Why a statistic is withheld is true: of texts, of constant columns, and of few records."""

import numpy as np
import pandas as pd
import pytest

import deniable as dn

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
