"""A person weighs one, however many records she has, and nobody else's weights depend on her."""

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable._shown import plural
from deniable.noise.queries import Queries, QueryBudget, units_of
from deniable.statistics import releasing
from deniable.synthesis import SynthesisWarning
from guarantees.replay import Tape

SEVERAL = (1, 2, 7, 400, 721, 5041, 12_000)  # records of one person
RNG = np.random.default_rng(5)


def owners(several, rng=RNG):
    return rng.permutation(np.repeat(np.arange(len(several)), several)).tolist()


@pytest.mark.parametrize(("heaviest", "records"), [(1, 1), *product((720, 5040), (1, 7, 11))])
def test_who_has_as_many_records_as_are_foreseen_weighs_exactly_one(heaviest, records):
    who = owners(SEVERAL)
    units = units_of(who, "person", records, heaviest)
    total = np.bincount(np.array(units.labels, dtype=int)[units.owners], units.weights)
    many = np.array(SEVERAL) >= records
    assert (total[many] == heaviest).all()
    assert (total[~many] <= heaviest).all()
    for person in range(len(SEVERAL)):
        hers = units.weights[np.array(who) == person]
        assert np.ptp(hers) <= 1  # equal but for a remainder,
        assert (np.diff(hers) <= 0).all()  # which her first records have
    assert units.total(len(who)) == total.sum()


def test_who_leaves_changes_no_other_weight():
    who = owners(SEVERAL)
    whole = units_of(who, "person", 1, 720).weights
    for person in range(len(SEVERAL)):
        left = np.array(who) != person
        assert (units_of(np.array(who)[left].tolist(), "person", 1, 720).weights == whole[left]).all()
    assert units_of([None, None], "person").weights.tolist() == [0, 0]
    assert units_of([], "person").total(0) == 0


def test_a_person_whose_records_lie_in_several_blocks_is_one():
    table = pd.DataFrame({"who": owners((3, 400, 721, 5)), "x": 1.0})
    blocks = [table[begin : begin + 100] for begin in range(0, len(table), 100)]
    whole, cut = (releasing.read_columns(source, ["x"], dn.Schema(person="who"))[2] for source in (table, blocks))
    assert whole.weights.tolist() == cut.weights.tolist()
    assert cut.total(len(table)) == 4 * 720


def test_words_and_cells_of_one_person_add_up_to_one():
    who, seen = owners(SEVERAL), Tape(0)
    look = Queries(QueryBudget(9.0, 0.1), seen, units_of(who, "person", 1, 720))
    words = [f"word {i % 3}" for i in range(len(who))]
    look.words("job", words, 5.0, 0.01)
    look.histogram("cells", "", 5.0, slice(None), np.array([int(word[-1]) for word in words]), 3)
    for counts in (seen.sums("categories of job")[0], seen.sums("cells")[0]):
        assert counts.sum() == 720 * len(SEVERAL)


@pytest.mark.parametrize(("several", "persons"), [(400, 300), (721, 100)])
def test_persons_are_counted_whatever_they_have(several, persons):
    """300 persons of 400 records each were released as 163 persons, 100 of 721 as 1."""
    table = pd.DataFrame({"who": np.repeat(np.arange(persons), several), "x": 1.0})
    found = dn.release_statistics(table, "count()", limit=dn.GaussianDP(20.0), group="who")
    assert found.n_records == pytest.approx(persons, abs=6 * 0.5)  # the noise has a standard deviation of ½


def test_limits_for_the_population_hold_where_persons_have_many_records(monkeypatch):
    """Their share of all was taken of too few: limits at 95 % held 2 times in 10."""
    monkeypatch.setattr(releasing, "HEAVIEST", 6)  # persons of 7 records are then many
    rng, held = np.random.default_rng(0), Counter()
    for several in (1, 11):
        for _ in range(100):
            town = np.where(rng.random(100) < 0.3, "A", "B")
            table = pd.DataFrame({"who": np.arange(100), "town": town}).loc[np.repeat(np.arange(100), several)]
            limit, towns = dn.GaussianDP(1.0), {"town": ["A", "B"]}
            found = dn.release_statistics(table, "count() by town", limit=limit, group="who", ranges=towns)
            row = found.rows[0][0]
            held[several] += row.population_low <= 30 <= row.population_high
    assert min(held.values()) >= 84  # of 100, at 95 %: fewer with chance 1e-5


def test_records_per_person_that_would_weigh_nothing_or_be_ignored_are_refused():
    """Above 5040 every record weighed 0, without persons the option was ignored, both in silence."""
    assert units_of(np.arange(5), "p", 5040).weights.tolist() == [1.0] * 5
    with pytest.raises(dn.InputError, match="records_per_person must be at most 5040, got 5041"):
        units_of(np.arange(5), "p", 5041)
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    with pytest.raises(dn.InputError, match="records_per_person must be 1 without persons, got 7"):
        dn.PrivateClassifier(records_per_person=7).fit(X, y)


@pytest.mark.parametrize("noun", ["record", "line of the file"])
def test_units_have_one_plural(noun, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "1\n" * 50)
    table = path if noun != "record" else pd.read_csv(path)
    assert f"all {plural(noun)}" in str(dn.release_statistics(table, "count()", advantage=0.5))
    with pytest.warns(SynthesisWarning, match=f"about .* {plural(noun)} at"):
        dn.PrivateSynthesizer(advantage=0.1).fit(table)


@pytest.mark.parametrize("name", ["record", "line of the file"])
def test_a_column_of_persons_is_not_called_as_another_unit(name):
    """Persons of a column "record" and records of theirs were added up as if both hid records."""
    with pytest.raises(dn.InputError, match="the name of another unit; rename it"):
        units_of(np.arange(5), name)
