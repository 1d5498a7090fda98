"""Attacks on released tables: copies are found, honest samples show nothing, marginals are tested optimally."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import deniable as dn
from deniable.audit import synthetic_scores
from deniable.audit.synthetic import refuse_shared_records

METHODS = ("nearest", "density", "marginals")


def population(n, rng):
    age = rng.normal(45, 15, n).round()
    region = rng.choice(["north", "south", "east"], n, p=[0.6, 0.3, 0.1])
    income = np.exp(rng.normal(10 + age / 100, 0.5))
    return pd.DataFrame({"age": age, "region": region, "income": income, "ill": rng.random(n) < age / 200})


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    return {name: population(n, rng) for name, n in (("members", 600), ("nonmembers", 500), ("reference", 800))}


def noisy_copy(table, share, rng):
    """A generator that overfits: rows of the data, with numbers moved by a share of their spread."""
    rows = table.iloc[rng.integers(len(table), size=1200)].reset_index(drop=True)
    return rows.assign(income=rows["income"] * np.exp(share * rng.normal(size=len(rows))))


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_an_overfitted_table_is_found(tables, method):
    released = noisy_copy(tables["members"], 0.01, np.random.default_rng(1))
    found = dn.attack_synthetic(released, **tables, method=method, rng=0).audit()
    assert found.advantage().low > {"marginals": 0.0, "density": 0.1}.get(method, 0.4)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_an_independent_table_shows_nothing(tables, method):
    rng = np.random.default_rng(2)
    shown = [
        dn.attack_synthetic(population(1200, rng), **tables, method=method, rng=seed).audit().epsilon().low > 0
        for seed in range(12)
    ]
    assert np.sum(shown) <= stats.binom.ppf(1 - 1e-3, 12, 0.05)


def test_all_records_are_scored(tables):
    found = dn.attack_synthetic(noisy_copy(tables["members"], 0.01, np.random.default_rng(3)), **tables, rng=0)
    assert (len(found.member_scores), len(found.nonmember_scores)) == (600, 500)
    assert found.method == "nearest in a released table, with a reference"
    alone = dn.attack_synthetic(tables["members"], tables["members"], tables["nonmembers"])
    assert alone.method.startswith("nearest")
    assert alone.audit().advantage().low > 0.8


def test_a_reference_helps_where_records_differ_in_rarity():
    rng = np.random.default_rng(4)
    members, others, known = (rng.standard_t(2, size=(n, 3)) for n in (600, 600, 2000))
    released = members[rng.integers(600, size=1200)] + 0.2 * rng.normal(size=(1200, 3))
    auc = {}
    for name, reference in (("alone", None), ("compared", known)):
        scores = [synthetic_scores(released, side, reference) for side in (members, others)]
        auc[name] = stats.mannwhitneyu(*scores).statistic
    assert auc["compared"] > auc["alone"]


def test_nearest_is_what_its_definition_says():
    rng = np.random.default_rng(5)
    table, records = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    spread = np.concatenate([table, records]).std(axis=0)
    slow = [-np.log(min(np.linalg.norm((r - t) / spread) for t in table)) for r in records]
    np.testing.assert_allclose(synthetic_scores(table, records), slow)


def test_pairs_are_counted():
    table = np.array([[0, 0], [0, 0], [1, 1]])
    reference = np.array([[0, 0], [1, 1], [1, 1], [1, 0]])
    expected = [np.log(2.5 / 3.5) - np.log(1.5 / 4.5), np.log(0.5 / 3.5) - np.log(1.5 / 4.5)]
    found = synthetic_scores(table, np.array([[0, 0], [1, 0]]), reference, "marginals")
    np.testing.assert_allclose(found, expected)


def test_a_generator_is_judged_by_many_releases():
    """A generator that copies rows, asked with and without one record, by its nearest neighbour."""
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(30, 2))

    def generate(inside):
        kept = rows if inside else rows[:-1]
        return kept[rng.integers(len(kept), size=30)] + 0.01 * rng.normal(size=(30, 2))

    found = dn.audit.check_promise(
        generate, dn.PureDP(1.0), score=lambda table: float(synthetic_scores(table, rows[-1:])[0]), trials=300
    )
    assert found.verdict.violated


def with_copies(table, k, rng):
    return pd.concat([table[:k], population(len(table) - k, rng)], ignore_index=True)


@pytest.mark.parametrize("k", [10, 15, 100])
def test_a_few_exact_copies_are_found_whatever_else_is_known(tables, k):
    """15 copies among 1,000 rows: "no leakage"; with a reference the same of 100."""
    released = with_copies(tables["members"], k, np.random.default_rng(7))
    sides = {name: tables[name] for name in ("members", "nonmembers")}
    alone, more = dn.attack_synthetic(released, **sides).audit(), dn.attack_synthetic(released, **tables).audit()
    for found in (alone, more):
        assert found.shows
        assert str(found.copies).startswith(f"Exact copies: {k} released rows equal a member, 0 equal a non-member")
        assert found.advantage().low <= k / 600 <= found.advantage().high
        assert "Leaks at least this" in dn.assess(found).headline
    assert more.epsilon().low >= alone.epsilon().low
    assert more.advantage().low >= alone.advantage().low


def test_to_know_more_never_weakens_a_verdict(tables):
    """The limits without a reference are among those with one, at the same share of the error."""
    rng = np.random.default_rng(8)
    sides = {name: tables[name] for name in ("members", "nonmembers")}
    for released in (
        with_copies(tables["members"], 5, rng),
        noisy_copy(tables["members"], 0.3, rng),
        population(400, rng),
    ):
        alone, more = dn.attack_synthetic(released, **sides).audit(), dn.attack_synthetic(released, **tables).audit()
        assert more.epsilon().low >= alone.epsilon().low
        assert more.mu().low >= alone.mu().low
        assert more.advantage().low >= alone.advantage().low


def test_a_reference_does_not_silence_the_attack_without_one(tables):
    """One row in eight is a member with another age: "not decided", and with a reference "no leakage"."""
    sides = {name: tables[name] for name in ("members", "nonmembers")}
    changed = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        near = tables["members"][:12].copy()
        number = near.select_dtypes("number").columns[0]
        near[number] = near[number].to_numpy() + rng.normal(0, 0.05, len(near))
        released = pd.concat([near, population(400, rng)], ignore_index=True)
        alone, more = (dn.attack_synthetic(released, **given).audit() for given in (sides, tables))
        if alone.shows or alone.excluding():
            assert more.shows or more.excluding()
            changed.append(more.advantage().low == 0)
    assert any(changed)


def test_common_rows_are_no_evidence():
    """Tables of three yes-or-no columns: everybody equals a released row."""
    rng = np.random.default_rng(9)
    found = []
    for _ in range(20):
        released, members, others = (pd.DataFrame(rng.random((n, 3)) < 0.4) for n in (300, 400, 400))
        audit = dn.attack_synthetic(released, members, others).audit()
        found.append(audit.shows)
        assert audit.copies.copied_members > 390
    assert sum(found) <= 4


@pytest.mark.parametrize("share", [0.1, 1.0])
@pytest.mark.parametrize("other", ["nonmembers", "reference"])
def test_tables_that_share_records_are_refused(tables, share, other):
    """Members among the non-members hide a leak; non-members that are the reference make one up."""
    cut = int(share * len(tables["members"]))
    given = tables | {other: pd.concat([tables["members"][:cut], tables[other]])[: len(tables[other])]}
    released = population(300, np.random.default_rng(5))
    with pytest.raises(dn.InputError, match=rf"members and {other} must hold different records, and \d+ rows"):
        dn.attack_synthetic(released, **given)
    with pytest.raises(dn.InputError, match="nonmembers and reference must hold different records"):
        dn.attack_synthetic(released, tables["members"], tables["nonmembers"], reference=tables["nonmembers"][:100])


def test_one_record_many_times_is_refused(tables):
    """200 copies of one record have one score, and count as 200 independent ones: "leaks at least 40 %"."""
    one = pd.concat([tables["members"][:1]] * 200)
    with pytest.raises(dn.InputError, match="rows stand up to 200 times in it and never in nonmembers"):
        dn.attack_synthetic(population(300, np.random.default_rng(6)), one, tables["nonmembers"])


@pytest.mark.parametrize("times", [2, 4])
def test_records_that_all_stand_several_times_are_refused(tables, times):
    """Four equal rows of each of 100 people count as 400 independent ones: 32 % of honest promises were violated."""
    sides = [pd.concat([tables[side][:100]] * times) for side in ("members", "nonmembers")]
    with pytest.raises(dn.InputError, match=f"rows stand up to {times} times in it and never in nonmembers"):
        dn.attack_synthetic(population(300, np.random.default_rng(6)), *sides)


@pytest.mark.parametrize("values", [1, 3, 40, 2_000])
@pytest.mark.parametrize(("n", "m"), [(300, 300), (900, 100), (30, 500), (1, 1)])
def test_equal_rows_of_independent_records_are_no_reason_to_refuse(values, n, m):
    rng, refused = np.random.default_rng(values + n), 0
    for _ in range(500):
        row = (values * rng.random(n + m) ** 2).astype(np.int64)
        try:
            refuse_shared_records(row, {"members": slice(0, n), "nonmembers": slice(n, n + m)})
        except dn.InputError:
            refused += 1
    assert refused <= stats.binom.ppf(1 - 1e-4, 500, 5e-3)  # five tests at 0.1 %


@pytest.mark.parametrize(
    ("times", "distinct", "n", "m"), [(3, 300, 90, 910), (2, 500, 20, 1000), (5, 100, 100, 400), (2, 500, 500, 500)]
)
def test_rows_that_all_stand_several_times_are_no_reason_to_refuse(times, distinct, n, m):
    """Only rows of which the smaller table had most were counted: 19 % of independent draws were refused."""
    rng, sides = np.random.default_rng(times), {"members": slice(0, n), "nonmembers": slice(n, n + m)}
    rows = np.concatenate([np.repeat(np.arange(distinct), times), distinct + np.arange(n + m)])[: n + m]
    refused = 0
    for _ in range(1000):
        try:
            refuse_shared_records(rng.permutation(rows), sides)
        except dn.InputError:
            refused += 1
    assert refused <= stats.binom.ppf(1 - 1e-4, 1000, 5e-3)  # five tests at 0.1 %


def test_a_released_column_without_a_filled_cell_is_as_good_as_none(tables):
    members, others = tables["members"], tables["nonmembers"]
    bare, blank = members.drop(columns="income"), members.assign(income=np.nan)
    first, second = (synthetic_scores(released, members) for released in (bare, blank))
    np.testing.assert_array_equal(first, second)
    with pytest.raises(dn.InputError, match="synthetic must have a filled cell"):
        synthetic_scores(members.assign(age=np.nan, region=None, income=np.nan, ill=None), members)
    for given in (
        {"members": blank, "nonmembers": others},
        {"members": members, "nonmembers": others[:0].reindex(range(50))},
    ):
        with pytest.raises(dn.InputError, match=r"column '\w+' is empty in (non)?members and not in the others"):
            dn.attack_synthetic(population(300, np.random.default_rng(7)), **given)
