"""One query to all columns: its price covers every record and person, its count is as noisy as is said."""

import numpy as np
import pytest

from deniable.noise.columns import COUNT_NOISE, ColumnKind, _kind_of_counts, ask_kinds
from deniable.noise.queries import Queries, QueryBudget, units_of
from deniable.tables import read_cells
from guarantees.replay import Tape

N = 60
RNG = np.random.default_rng(0)
COLUMNS = [
    [1, 2.5, "Ulm", None] * 15,
    ["yes", "no"] * 30,
    [f"street {i}" for i in range(N)],
    ["2024-01-02"] * N,
    [7] * N,
]
HERS = [[3], ["a word of her own"], ["hers"], ["odd"], [""]]


def sums(columns, owners=None, mu=0.3):
    """The counts, and the standard deviations of their noise."""
    source = Tape(0)
    look = (
        Queries(QueryBudget(1.0), source)
        if owners is None
        else Queries(QueryBudget(1.0), source, units_of(owners, "person", 1))
    )
    ask_kinds(look, [read_cells(column) for column in columns], len(columns[0]), mu)
    return source.sums("kinds")[0], source.sd("kinds")


def moved(extra, owners=None):
    """What a record (or a person) moves, in units of its price."""
    mine = None if owners is None else [*range(N), *["her"] * len(extra[0])]
    before, sd = sums(COLUMNS, None if owners is None else list(range(N)))
    after, _ = sums([[*one, *more] for one, more in zip(COLUMNS, extra, strict=True)], mine)
    return float(np.sqrt(np.sum(((after - before) / sd) ** 2))) / 0.3


def test_no_record_and_no_person_moves_it_by_more_than_it_costs():
    pool = [1, 2.5, None, "Ulm", "yes", "street 1", "2024-01-02", "own", True, "1,5"]
    alone = [moved([[pool[i]] for i in RNG.integers(0, len(pool), 5)]) for _ in range(60)]
    assert 0.9 < max(alone) <= 1
    assert moved([[f"own {j}"] for j in range(5)]) == pytest.approx(1, rel=1e-9)  # a new word in each column: all of it
    many = [[f"own {i}" for i in range(7)] for _ in range(5)]
    assert moved(many) > 5  # negative control: seven records that are not known to be one person's
    assert 0.9 < moved(many, "persons") <= 1
    assert moved([["same"] * 7] * 5, "persons") <= 1


def asked(columns, mu, seed=0):
    look = Queries(QueryBudget(100.0), Tape(seed))
    return ask_kinds(look, [read_cells(column) for column in columns], len(columns[0]), mu)


def test_the_number_of_records_is_unbiased_and_as_noisy_as_is_said():
    found = np.array([asked(COLUMNS, 0.1, seed)[0] for seed in range(400)])
    small = COUNT_NOISE / 0.1
    assert found.mean() == pytest.approx(N, abs=4 * small / 20)
    assert found.std() == pytest.approx(small, rel=0.15)
    assert asked([[1.0] * 50], 50.0)[0] == pytest.approx(50, abs=1)


def test_what_columns_hold_where_it_can_be_told_and_where_not():
    holds = {
        "whole": ([*range(N)], ColumnKind(kind="number", axis="number", whole=True)),
        "numbers": ([i / 7 for i in range(N)], ColumnKind(kind="number", axis="number")),
        "words": (["a", "b", "c"] * 20, ColumnKind(kind="category", words="many")),
        "flags": (["Yes", "no", "TRUE"] * 20, ColumnKind(kind="category", words="flags")),
        "names": ([f"n{i}" for i in range(N)], ColumnKind(kind="category", words="unique")),
        "dates": (["2024-01-02", "19.04.2021"] * 30, ColumnKind(kind="date", axis="date")),
        "both": ([1, 2, "a"] * 20, ColumnKind(kind="number", axis="number", words="many", whole=True)),
        "fewer numbers": ([1, "a", "b"] * 20, ColumnKind(kind="category", axis="number", words="many", whole=True)),
        "one odd text": ([*range(N - 1), "odd"], ColumnKind(kind="number", axis="number", whole=True)),
        "nothing": ([None] * N, ColumnKind()),
    }
    _, found = asked([cells for cells, _ in holds.values()], 5.0)
    told = dict(zip(holds, found, strict=True))
    assert {name: one for name, one in told.items() if one != holds[name][1]} == {}
    assert not any(one.sure for one in asked([cells for cells, _ in holds.values()], 0.05)[1][:3])
    assert str(told["both"]) == "whole numbers and words"


def test_a_column_of_yes_and_no_and_few_other_words_is_never_nearly_unique_words():
    # 126: the noise at n = 5,000, μ = .25 and twenty columns; as many words as two standard deviations allow for
    few = _kind_of_counts(np.array([0.0, 0, 0, 512, 4770, 0, 2 * 126 * 2.1]), 126.0)
    assert few == ColumnKind(kind="category", words="many", most="flag")
    names = _kind_of_counts(np.array([0.0, 0, 0, 5282, 0, 0, 5282]), 126.0)
    assert names.words == "unique"
