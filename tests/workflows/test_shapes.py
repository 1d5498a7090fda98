"""What a page and a picture say that a column does is what the model's own scores do, for every kind of column."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.training.encoders import Levels
from deniable.workflows import private_model

mpl.use("Agg")

WORDS = {"three": ["a", "b", "c"], "text": ["u", "v", "w"]}
TWO = {"smoker": ["no", "yes"], "flag": [False, True], "sex": ["f", "m"], "told": ["no", "yes"]}
KINDS = {**TWO, **WORDS}
SPELLED = {False: "no", True: "yes"}
NUMBERS = ("age", "visits", "bit", "seen", "mixed")


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.choice(values, n) for name, values in KINDS.items()})
    table["age"], table["visits"], table["bit"] = rng.normal(50, 10, n), rng.integers(0, 5, n), rng.integers(0, 2, n)
    table["seen"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    table["mixed"] = np.where(rng.random(n) < 0.7, rng.normal(5, 1, n).round(2).astype(object), "unknown")
    effect = 3.0 * (table["smoker"] == "yes") + 2.0 * table["flag"] + 2.0 * (table["sex"] == "m")
    effect = effect + (table["told"] == "no") + (table["three"] == "a") + (table["text"] == "u") + table["bit"]
    return table, effect + (table["age"] - 50) / 10 + rng.logistic(size=n)


def fitted(kind):
    table, score = people()
    schema = dn.Schema({"told": {"kind": "yes/no"}})
    options = {"advantage": 0.95, "categories": {"sex": ["f", "m"], "three": ["a", "b", "c"]}, "schema": schema}
    if kind == "regressor":
        return dn.PrivateRegressor(**options).fit(table, score)
    if kind == "three classes":
        return dn.PrivateClassifier(**options).fit(table, np.digitize(score, np.quantile(score, [0.3, 0.7])))
    if kind == "a pair":
        score = score + 3 * np.where(table["age"] > 50, 1, -1) * np.where(table["visits"] > 1, 1, -1)
    options |= {"interactions": 1} if kind == "a pair" else {"model": kind}
    return dn.PrivateClassifier(**options).fit(table, score > np.median(score))


@pytest.fixture(scope="module", params=["additive", "linear", "a pair", "regressor", "three classes"])
def model(request):
    return fitted(request.param)


def scores(model, table):
    """The scores as the model predicts them, of the last class."""
    if hasattr(model, "decision_function"):
        found = model.decision_function(table)
        return found if found.ndim == 1 else found[:, -1]
    return (model.predict(table) - model.centre_) / model.spread_


def values_of(model, name):
    """Values of one column in every cell that it is drawn in."""
    if name not in NUMBERS:
        return KINDS[name]
    number = next(e for e in model.model_.encoders if e.name == name).number
    if isinstance(number, Levels):
        inside = np.linspace(number.low, number.high, number.size - 1)
    else:
        inside = np.concatenate(([number.edges[0] - 1], number.edges))
    return pd.to_datetime(inside, unit="D") if name == "seen" else inside


def moved(model, name):
    """The scores of one person whose value in one column goes through all of them."""
    values = values_of(model, name)
    table, _ = people()
    rows = pd.concat([table.head(1)] * len(values), ignore_index=True)
    rows[name] = pd.Series(list(values), dtype=None if name in ("flag", "seen") else object)
    return dict(zip(values, scores(model, rows), strict=True))


def alone(model):
    """The columns that no pair draws on, too."""
    paired = {name for pair in model.model_.pairs for name in pair.names}
    return [name for name in (*KINDS, *NUMBERS) if name not in paired]


@pytest.fixture
def table_of_columns(model, monkeypatch):
    monkeypatch.setattr(private_model, "LISTED", 100)
    monkeypatch.setattr(private_model, "_MOST_SHAPES", 100)
    return dn.assess(model).section("shapes")


def test_the_table_says_how_far_each_column_moves_the_score(model, table_of_columns):
    rows = {row[0]: row[1:] for row in table_of_columns.grids[0].rows}
    assert set(rows) >= {*KINDS, *NUMBERS}
    for name in alone(model):
        found = moved(model, name)
        assert rows[name][0] == pytest.approx(np.ptp(list(found.values())), rel=1e-6, abs=1e-6), name
    assert rows["smoker"][0] > 0.5
    assert rows["flag"][0] > 0.2
    assert rows["sex"][0] > 0.2


def test_the_pictures_of_the_page_are_as_high(model, table_of_columns):
    drawn = {name: lines for series in table_of_columns.series for name, lines in series.lines.items()}
    assert set(drawn) == set(NUMBERS)
    for name in {*NUMBERS} & {*alone(model)}:
        assert np.ptp(drawn[name]) == pytest.approx(np.ptp(list(moved(model, name).values())), rel=1e-6, abs=1e-6)


def test_the_plot_draws_the_differences_of_the_scores(model):
    names = [name for name in alone(model) if name != "text"]  # its texts are kept as a hash
    figure = model.plot(names)
    for name, ax in zip(names, figure.axes, strict=False):
        found = moved(model, name)
        if name in NUMBERS:
            heights = ax.lines[0].get_ydata() if model.model == "linear" else ax.patches[0].get_data().values
            assert np.ptp(heights) == pytest.approx(np.ptp(list(found.values())), rel=1e-6, abs=1e-6), name
            continue
        labels = [tick.get_text() for tick in ax.get_yticklabels()]
        bars = dict(zip(labels, (bar.get_width() for bar in ax.patches), strict=True))
        shown = np.array([bars[SPELLED.get(value, value)] for value in found])
        assert np.ptp(shown - list(found.values())) == pytest.approx(0, abs=1e-6), name
        assert shown.mean() == pytest.approx(0, abs=1e-9)  # bars start at the column's middle
    mpl.pyplot.close(figure)


def test_a_pair_is_drawn_and_listed_over_the_cells_in_which_both_values_are():
    model = fitted("a pair")
    (pair,) = model.model_.pairs
    place = len(model.model_.encoders)
    values = model.model_.block(place)[:, -1].reshape(9, 9)[:8, :8]
    rows = {row[0]: row[1:] for row in dn.assess(model).section("shapes").grids[0].rows}
    assert model.model_.spread(place) == pytest.approx(np.ptp(values), rel=1e-12)
    joint = dn.assess(model).section("shapes").grids[1]
    np.testing.assert_allclose([row[1:] for row in joint.rows], values)
    if pair.name in rows:
        assert rows[pair.name][0] == pytest.approx(np.ptp(values))


def test_the_table_says_what_a_missing_value_moves():
    """Columns in which only being absent says something stood there with 0.2 where the model moves by 4."""
    rng, n = np.random.default_rng(1), 4000
    gone = rng.random((4, n)) < 0.4
    table = pd.DataFrame({"lab": rng.uniform(0, 10, n), "told": rng.choice(["no", "yes"], n)})
    table["three"], table["seen"] = rng.choice(["a", "b", "c"], n), pd.Timestamp("2024-01-01")
    table["seen"] += pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    table = table.mask(gone.T)
    schema = dn.Schema({"lab": {"range": (0, 10)}, "three": {"categories": ["a", "b", "c"]}})
    model = dn.PrivateClassifier(advantage=0.7, schema=schema).fit(table, gone.sum(axis=0) + rng.logistic(size=n) > 1.5)
    rows = {row[0]: row[1:] for row in dn.assess(model).section("shapes").grids[0].rows}
    for j, encoder in enumerate(model.model_.encoders):
        lone = table.head(1).copy()
        usual = {"lab": list(np.linspace(0, 10, 2001)), "told": ["no", "yes"], "three": ["a", "b", "c"]}
        values = usual.get(encoder.name) or list(pd.date_range("2020-01-01", "2028-01-01"))
        rows_of = pd.concat([lone] * (len(values) + 1), ignore_index=True)
        rows_of[encoder.name] = [*values, None]
        found = model.decision_function(rows_of)
        block = model.model_.block(j)[:, -1]
        spread, missing = rows[encoder.name]
        cells = model.model_.occupied(j)
        if (
            cells[np.argmax(block[cells])] != len(block) - 1
        ):  # of a list whose noisy counts stand out it is one of the cells
            assert missing == pytest.approx(block[-1], abs=1e-9), encoder.name
            spread = max(spread, missing - block[model.model_.occupied(j)].min())
        assert spread == pytest.approx(np.ptp(found), rel=1e-6), encoder.name
        assert spread > 0.5
