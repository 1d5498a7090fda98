"""The junction tree: its fit against brute force and against plain scaling, and draws that follow its law."""

import math
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import deniable as dn
from deniable.synthesis import SynthesisWarning, pairs
from deniable.synthesis.columns import _smoothed, project_to_counts
from deniable.synthesis.junction import JunctionTree, cells_of, draw_stratified, members, neighbours, triangulate
from deniable.synthesis.pairs import spanning
from deniable.testing import insecure_noise


def full_table(tree):
    """The law of all columns as one table, from the cliques: product of cliques over product of separators."""
    out = np.ones(tree.sizes)
    for j, clique in enumerate(tree.cliques):
        shape = [tree.sizes[i] if i in clique else 1 for i in range(len(tree.sizes))]
        out = out * tree.laws[j].reshape(shape)
        if j in tree.separator:
            known = tree.separator[j]
            below = tree.laws[j].sum(axis=tuple(k for k, i in enumerate(clique) if i not in known))
            out = out / below.reshape([tree.sizes[i] if i in known else 1 for i in range(len(tree.sizes))])
    return out


def margin(table, columns):
    return table.sum(axis=tuple(i for i in range(table.ndim) if i not in columns))


def scaled(sizes, margins, aims, rounds=2000):
    """The law of largest entropy by iterative proportional fitting: the slow oracle."""
    table = np.full(sizes, 1 / math.prod(sizes))
    for _ in range(rounds):
        for columns, aim in zip(margins, aims, strict=True):
            shape = [sizes[i] if i in columns else 1 for i in range(len(sizes))]
            table = table * (aim / np.maximum(margin(table, columns), 1e-300)).reshape(shape)
    return table


MARGINS = {
    "a chain": [(0, 1), (1, 2), (2, 3)],
    "a cycle": [(0, 1), (1, 2), (2, 3), (0, 3)],
    "a star and one alone": [(0, 1), (0, 2), (3,)],
    "two parts": [(0, 1), (2, 3)],
    "all pairs": list(combinations(range(4), 2)),
}


@pytest.mark.parametrize("kind", MARGINS)
def test_a_fit_to_exact_counts_is_the_law_of_largest_entropy(kind):
    rng, sizes = np.random.default_rng(1), (2, 3, 4, 2)
    truth = rng.dirichlet(np.ones(math.prod(sizes))).reshape(sizes)
    margins = [*MARGINS[kind], (0,), (1,), (2,), (3,)]
    aims = [margin(truth, columns) for columns in margins]
    tree = JunctionTree(sizes, margins)
    tree.fit([1e6 * aim for aim in aims], [1e-3] * len(margins), 1e6, 2000)
    table = full_table(tree)
    assert table.sum() == pytest.approx(1)
    for columns, aim in zip(margins, aims, strict=True):
        np.testing.assert_allclose(margin(table, columns), aim, atol=1e-4)
    np.testing.assert_allclose(table, scaled(sizes, margins, aims), atol=2e-4)


def test_cliques_hold_every_margin_and_hang_together():
    rng = np.random.default_rng(2)
    for _ in range(20):
        d = int(rng.integers(2, 12))
        pairs = [p for p in combinations(range(d), 2) if rng.random() < 0.3]
        tree = JunctionTree([2] * d, [*pairs, *((i,) for i in range(d))])
        assert all(any({*pair} <= {*clique} for clique in tree.cliques) for pair in pairs)
        for i in range(d):  # the running intersection property: the cliques of a column are connected
            own = [j for j, clique in enumerate(tree.cliques) if i in clique]
            assert sum(i in tree.separator.get(j, ()) for j in own) == len(own) - 1


def test_bit_masks_and_sizes():
    assert list(members(0b101001)) == [0, 3, 5]
    assert neighbours(4, [(0, 1), (1, 3)]) == [0b10, 0b1001, 0, 0b10]
    assert triangulate(neighbours(4, [(0, 1), (1, 2), (2, 3), (0, 3)]), [2] * 4) == [(0, 1, 3), (1, 2, 3)]
    assert cells_of([(0, 1), (1, 2)], [2, 3, 4]) == 18


def test_draws_follow_the_law_and_children_of_one_parent_are_independent():
    """Given its parent, a child says nothing about another child: equal ranks would tie them (TV .5 and more)."""
    sizes, law = (2, 8, 8), np.full((2, 8), 1 / 16)
    tree = JunctionTree(sizes, [(0, 1), (0, 2)])
    tree.fit([1e6 * law, 1e6 * law], [1.0, 1.0], 1e6, 50)
    n = 40_000
    rows = tree.draw(n, np.random.default_rng(3))
    for parent in range(2):
        own = rows[rows[:, 0] == parent]
        assert len(own) == pytest.approx(n / 2, abs=1)  # stratified
        joint = np.histogram2d(own[:, 1], own[:, 2], bins=8)[0] / len(own)
        assert np.abs(joint - np.outer(joint.sum(1), joint.sum(0))).sum() / 2 < 0.05
        np.testing.assert_allclose(np.bincount(own[:, 1], minlength=8) / len(own), 1 / 8, atol=1e-3)


def test_negative_control_equal_ranks_tie_children():
    """What the test above would see: both children drawn by one order of the rows."""
    law, rows = np.full((1, 8), 1 / 8), np.zeros(4000, dtype=np.int64)
    one, other = (draw_stratified(law, rows, np.random.default_rng(4)) for _ in range(2))  # one seed: the same order
    joint = np.histogram2d(one, other, bins=8)[0] / 4000
    assert np.abs(joint - np.outer(joint.sum(1), joint.sum(0))).sum() / 2 > 0.5


@pytest.mark.parametrize("n", [0, 1, 7])
def test_few_rows_are_drawn(n):
    tree = JunctionTree((2, 3), [(0, 1)])
    tree.fit([np.ones((2, 3))], [1.0], 6, 10)
    assert tree.draw(n, np.random.default_rng(0)).shape == (n, 2)


def test_projected_counts_are_the_closest_that_sum_up():
    rng = np.random.default_rng(5)
    for _ in range(20):
        counts, total = rng.normal(0, 5, 6), float(rng.uniform(0.1, 30))
        found = project_to_counts(counts, total)
        assert found.sum() == pytest.approx(total, abs=1e-6)
        assert found.min() >= 0
        others = rng.dirichlet(np.ones(6), 200) * total
        assert np.sum((found - counts) ** 2) <= np.sum((others - counts) ** 2, axis=1).min() + 1e-6


def test_a_spanning_forest_is_of_largest_score():
    rng = np.random.default_rng(6)
    pairs = list(combinations(range(5), 2))
    scores = {pair: float(rng.uniform(0.1, 1)) for pair in pairs}
    found = spanning(scores, 5, ())

    def connected(edges):
        part = list(range(5))
        for a, b in edges:
            part = [part[a] if one == part[b] else one for one in part]
        return len(set(part)) == 1

    best = max(sum(scores[e] for e in edges) for edges in combinations(pairs, 4) if connected(edges))
    assert sum(scores[e] for e in found) == pytest.approx(best)
    assert not any(0 in edge for edge in spanning(scores, 5, [0]))


def test_counts_are_even_where_noise_explains_them_and_stay_where_it_does_not():
    rng, widths = np.random.default_rng(0), np.array([1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0])
    even = _smoothed(rng.normal(100 * widths, 5.0), widths, np.full(7, 50.0), 1800.0)
    np.testing.assert_allclose(even, 100 * widths, rtol=0.02)  # what sums lack is shared evenly
    known = np.array([5.0, 900.0, 3.0, 0.0, 400.0, 0.0, 492.0])
    np.testing.assert_allclose(_smoothed(known, widths, np.full(7, 1e-6), 1800.0), known, atol=1e-3)
    some = _smoothed(known + rng.normal(0, 9.0, 7), widths, np.full(7, 9.0), 1800.0)
    assert some.min() >= 0
    assert some.sum() == pytest.approx(1800.0)


def test_a_full_model_ends_the_search_for_pairs(monkeypatch):
    """Each block of eight that did not fit was taken apart: 367 triangulations; 300 columns did not end in minutes."""
    rng, tried = np.random.default_rng(0), []
    scores = dict(zip(combinations(range(61), 2), rng.exponential(3000, 1830).tolist(), strict=True))
    column = SimpleNamespace(size=12, shares=np.full(12, 1 / 12))
    counts = pairs.PairCounts(None, [column] * 61, [], 45_000.0, 20_000)
    monkeypatch.setattr(pairs, "triangulate", lambda *given: tried.append(1) or triangulate(*given))
    chosen = counts._choose_pairs(scores, 1.0)
    assert len(tried) < 150
    assert len(chosen) > 50
    assert cells_of(triangulate(neighbours(61, chosen), counts.sizes), counts.sizes) <= 20_000


def test_few_records_of_many_columns_choose_no_pairs_by_noise():
    """Scores whose noise is larger than the number of records chose pairs of independent columns: as many as fit."""
    table = np.random.default_rng(0).normal(size=(300, 40))
    with insecure_noise(np.random.default_rng(0)), pytest.warns(SynthesisWarning, match="little more than noise"):
        made = dn.PrivateSynthesizer(advantage=0.1).fit(table)
    assert len(made.pairs_) < 40  # a tree
