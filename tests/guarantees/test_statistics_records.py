"""A record changes its own part of the sums alone: not how others are read, what is said, or how it ends."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, norm

import deniable as dn
from deniable.cli._app import run
from deniable.cli._options import Reading
from deniable.statistics import releasing
from deniable.statistics.queries import Categories
from deniable.statistics.releasing import numbers_of, read_columns
from guarantees.replay import Recorded, replayed

RNG = np.random.default_rng(8)
N = 60
MU = 2 * norm.ppf(0.6) * (1 + 1e-6)  # of advantage=0.2
SECRET = "see Mueller file 4711"
DAYS = pd.date_range("2021-01-01", periods=N).strftime("%Y-%m-%d")
PEOPLE = pd.DataFrame(
    {
        "x": [None, *np.round(RNG.normal(50, 9, N - 1), 2)],
        "whole": [None, *RNG.integers(0, 9, N - 1).tolist()],
        "text": ["", *(f"{i}.5" for i in range(N - 1))],
        "day": [None, *DAYS[1:]],
        "g": [None, *["a", "b", "1"] * 19, "a", "b"],
        "ill": [None, *["yes", "no"] * 29, "yes"],
    },
    dtype=object,
)
RANGES = {
    "x": (0, 100),
    "whole": (0, 9),
    "text": (0, 60),
    "day": ("2019-04-14", "2022-01-08"),
    "g": ["a", "b", "1"],
    "ill": (0, 1),
}
CELLS = [
    SECRET,
    "1,5",
    True,
    False,
    1,
    1.0,
    -0.0,
    "1",
    None,
    np.inf,
    -1e308,
    1 + 2j,
    [7],
    "9999-12-31",
    "0001-01-01",
    "€ 7",
]


def read(frame):
    """What the queries see of each record, column by column."""
    _, cells, _ = read_columns(frame, list(frame.columns), dn.Schema())
    numbers = {name: numbers_of(one, name == "day") for name, one in cells.items()}
    labels = {f"{name} as a category": Categories.of(one, ("a", "b", "1")).codes for name, one in cells.items()}
    return pd.DataFrame(numbers | labels)


def with_cell(column, cell, frame=PEOPLE):
    changed = frame.copy()
    cells = [cell if i == 17 else value for i, value in enumerate(frame[column])]
    changed[column] = pd.Series(cells, dtype=object)
    return changed


def test_a_cell_changes_no_other():
    kept, wrong = read(PEOPLE), {}
    for column in PEOPLE:
        for cell in CELLS:
            found = read(with_cell(column, cell))
            if not found.drop(index=17).equals(kept.drop(index=17)):
                wrong[column, str(cell)] = found
    assert wrong == {}


def test_shuffled_dropped_added_and_retyped_records_leave_the_rest():
    kept = read(PEOPLE)
    order = RNG.permutation(N)
    shuffled = read(PEOPLE.iloc[order]).set_index(order).loc[range(N)]
    pd.testing.assert_frame_equal(shuffled, kept, check_index_type=False)
    fewer = read(PEOPLE.drop(index=[3, 17]).reset_index(drop=True))
    pd.testing.assert_frame_equal(fewer, kept.drop(index=[3, 17]).reset_index(drop=True))
    more = read(pd.concat([PEOPLE, pd.DataFrame([dict.fromkeys(PEOPLE, SECRET)])], ignore_index=True))
    pd.testing.assert_frame_equal(more[:N], kept)
    typed = PEOPLE.assign(
        x=PEOPLE["x"].astype(float), whole=PEOPLE["whole"].astype(float), day=pd.to_datetime(PEOPLE["day"])
    )
    pd.testing.assert_frame_equal(read(typed), kept)


def test_a_decimal_comma_changes_no_other_cell():
    frame = PEOPLE.assign(x=[f"{i},234" for i in range(1, N + 1)])
    assert read(with_cell("x", "1,5", frame))["x"].tolist() == [1.5 if i == 17 else 1000.0 * i + 1234 for i in range(N)]


def test_a_missing_cell_adds_no_row():
    frame = PEOPLE.assign(g="a")
    for one in (frame, with_cell("g", None, frame)):
        made = dn.release_statistics(one, "count() by g", advantage=0.2, ranges=RANGES)
        assert [row.group[0] for row in made.rows[0]] == ["a", "b", "1", "(other)", "(missing)"]


def test_the_first_spelling_does_not_decide_the_text_of_all_records():
    """The attack that named hers in 60 of 60 releases and in none without: equal cells got the text of the first."""
    says, played, eta = [0, 0], 60, 0.1
    for hers in (False, True):
        frame = pd.DataFrame({"g": [True if hers else 1, *[1] * 39, *[2] * 20]}, dtype=object)
        for _ in range(played):
            made = dn.release_statistics(frame, "count() by g", advantage=2 * eta, ranges={"g": ["1", "2"]})
            says[hers] += made.rows[0][0].value < 20
    right = says[True] + played - says[False]
    assert beta.ppf(0.001, right, 2 * played - right + 1) <= 0.5 + eta  # Clopper-Pearson, lower limit
    assert beta.ppf(0.001, 2 * played, 1) > 0.5 + eta  # 60 of 60 against 0 of 60 would be seen


@pytest.mark.parametrize("cell", [1, 1.0, "1", "1.0", " 1", np.int64(1), np.float32(1)], ids=repr)
def test_a_category_has_one_number_however_it_is_written(cell):
    frame = pd.DataFrame({"g": [cell, *["2.0", 2, 2.0] * 4]}, dtype=object)
    made = dn.release_statistics(frame, "count() by g", advantage=0.9999998, ranges={"g": ["1", "2"]})
    assert [round(row.value) for row in made.rows[0]] == pytest.approx([1, 12, 0, 0], abs=3)


def said(asked, **options):
    """A release that returns everything that leaves."""

    def publish(frame):
        made = releasing.release_statistics(frame, asked, advantage=0.2, suppress_below=20, **options)
        return {"text": str(made), "json": made.to_json(), "csv": made.to_csv()}

    return publish


ASKED = ["mean(x)", "sd(whole)", "mean(text) by g", "median(day)", "mean(ill)", "count() by g"]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_all_that_leaves_is_the_same_but_for_the_sums(cell):
    """Every warning and word on the console, too, and no declared column makes a record end in an error."""
    neighbour, release = PEOPLE, said(ASKED, ranges=RANGES)
    for column in PEOPLE:
        neighbour = with_cell(column, cell, neighbour)
    recorded = Recorded(release, PEOPLE)
    assert "error" not in recorded.left
    found = recorded.replay(neighbour)
    assert found.differ == {}
    assert found.mu <= 2 * MU  # she left with one record and joined with another


def test_a_value_outside_a_declared_range_ends_no_release(tmp_path, capsys):
    """The 201st text made the column one of texts, and the command end with code 2: right in every play."""
    told = []
    for strange in (200, 201):
        cells = [*(f"{i}" for i in range(200)), *(f"{SECRET} {i}" for i in range(strange)), *[""] * (201 - strange)]
        path = tmp_path / "t.csv"
        pd.DataFrame({"age": cells, "g": "a"}).to_csv(path, index=False)
        (tmp_path / "s.toml").write_text("[columns.age]\nrange = [0, 200]\n")
        words = ["publish", str(path), "--statistic", "mean(age)", "--schema", str(tmp_path / "s.toml")]
        told.append((run(words), capsys.readouterr().err))
    assert told[0] == told[1]  # what is said next names the command alone
    assert (told[0][0], SECRET in told[0][1]) == (0, False)


@pytest.mark.parametrize("cell", [[SECRET], SECRET, {SECRET: 1}], ids=repr)
def test_cells_of_other_types_end_no_release_of_blocks(cell):
    blocks = [pd.DataFrame({"x": pd.Series([1.5] * 9 + [cell], dtype=object)})]
    made = dn.release_statistics(blocks, "mean(x)", advantage=0.2, ranges={"x": (0, 100)})
    assert "Mueller" not in str(made) + made.to_json()


def test_only_debug_shows_what_an_unforeseen_error_says(monkeypatch, tmp_path, capsys):
    def fails(*_, **__):
        float(SECRET)

    monkeypatch.setattr(Reading, "opened", fails)
    for more, shown in (([], False), (["--debug"], True)):
        assert run(["publish", "t.csv", "--statistic", "mean(x)", *more]) not in (0, 2)
        assert ("Mueller" in capsys.readouterr().err) == shown


SOME = [
    "mean(x) by g", "median(x)", "count() by g", "histogram(y)", "sd(y)", "ecdf(x, points=4)", "regression(y ~ x)"
]  # fmt: skip
PUBLIC = {"x": (-3, 3), "y": (0, 10), "g": ["a", "b"]}
FEW = pd.DataFrame({"x": RNG.normal(size=60), "y": RNG.uniform(0, 10, 60), "g": ["a", "b", "a"] * 20})


@pytest.mark.parametrize(
    ("record", "ranges"),
    [((1e6, 0.0, "a"), PUBLIC), ((-1e308, 1e308, "hers alone"), PUBLIC), ((1e6, -1e6, "b"), {}), ((0, 0, "b"), {})],
)
def test_after_the_noisy_answers_nothing_looks_at_the_records(record, ranges, monkeypatch):
    neighbour = FEW.copy()
    neighbour.loc[17] = record
    release = said(SOME, ranges=ranges)
    assert replayed(release, FEW, neighbour).differ == {}
    answered = releasing.rows_of_answer

    seen, records = [], releasing.Records

    def peeking(*arguments):
        return [replace(row, note=f"{seen[-1].numbers['x'].max():.3g}") for row in answered(*arguments)]

    monkeypatch.setattr(releasing, "Records", lambda *parts: seen.append(records(*parts)) or seen[-1])
    monkeypatch.setattr(releasing, "rows_of_answer", peeking)
    assert bool(replayed(release, FEW, neighbour).differ) == (FEW["x"].max() != neighbour["x"].max())


def test_a_person_with_many_records_is_hidden_as_a_whole():
    """Forty records at the ends of their ranges in one group; spelled in several ways, they are one person's."""
    hers = pd.DataFrame({"x": [3.0] * 40, "y": [10.0] * 40, "g": ["a"] * 40, "who": [7, "7.0", " 7", "007"] * 10})
    others = FEW.assign(who=[f"p{i // 2}" for i in range(60)])
    both = pd.concat([others, hers], ignore_index=True)
    wrong = []
    for ranges in (PUBLIC, {}):
        for options, most in (({"group": "who"}, MU), ({"schema": dn.Schema(person="who")}, MU), ({}, math.inf)):
            found = replayed(said(SOME, ranges=ranges, **options), both, others)
            if not (found.differ == {} or most == math.inf) or not found.mu <= most:
                wrong.append((ranges, options, found.mu))
            if most == math.inf and not found.mu > 5 * MU:  # negative control: as if nobody had named the persons
                wrong.append((ranges, "not seen", found.mu))
    assert wrong == []
    made = dn.release_statistics(both, ["count()", "mean(x)"], advantage=0.999, ranges=PUBLIC, group="who")
    assert made["count()"][0].value == pytest.approx(31, abs=4)  # persons, of whom she is one
    assert "whether a person is in the table" in str(made)
    assert made.certificate.unit == "person"
    assert "All persons; their number was declared, or counted with noise." in dn.assess(made).to_json()
    assert "all its records" in made.certificate.tradeoff.assumptions.adjacency


def test_a_record_that_names_nobody_counts_for_nothing():
    frame = FEW.assign(who=[None, "", "NA", *map(str, range(57))])
    made = dn.release_statistics(frame, "count()", advantage=0.9999, group="who")
    assert made.rows[0][0].value == pytest.approx(57, abs=3)
