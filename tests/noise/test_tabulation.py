"""Statistics under one budget: the grammar, what a replaced record can move, and estimates against pandas."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import deniable as dn
from deniable import InputError
from deniable.noise.tabulation import Statistic, parse, releasing
from deniable.noise.tabulation.answers import Limits
from deniable.noise.tabulation.distribution import _LEAVES, _least_squares
from deniable.noise.tabulation.queries import DEPTH, CellCounts, Moments, Products, Tree
from deniable.noise.tabulation.records import Categories, ColumnScale, Records, group_sums
from deniable.testing import insecure_noise

RNG = np.random.default_rng(1)
N = 4000
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "region": RNG.choice(["E", "N", "S"], N, p=[0.2, 0.5, 0.3]),
        "sex": RNG.choice(["F", "M"], N),
        "time": RNG.exponential(5, N),
        "event": (RNG.random(N) < 0.7).astype(int),
    }
)
FRAME["income"] = np.minimum(RNG.lognormal(10, 0.5, N) + 100 * FRAME["age"], 119_000)
RANGES = {
    "age": (18, 90), "income": (0, 120_000), "time": (0, 20), "region": ["E", "N", "S"], "sex": ["F", "M"]
}  # fmt: skip


@pytest.fixture
def no_noise(monkeypatch):
    """A budget at which all noise is below a millionth."""
    certified = releasing._budget(0.1, 0.0)[1]
    monkeypatch.setattr(releasing, "_budget", lambda eta, delta: (1e9, certified))


@pytest.mark.parametrize(
    "text",
    [
        "count()",
        "count() by region, sex",
        "mean(income) by region",
        "quantile(income, 0.1, 0.9)",
        "histogram(age, edges=0:18:65)",
        "histogram(age, bins=5) by sex",
        "ecdf(age, points=32)",
        "regression(income ~ age + time) by sex",
        "survival(time, event, bins=8)",
        'mean("yearly income, gross") by "federal state"',
        'mean("by")',
        "mean(hours-per-week) by marital-status",
        'mean("a - b")',
    ],
)
def test_a_statistic_is_read_and_written_alike(text):
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)
    assert parse(parse(text)) == parse(text)


def test_what_is_read():
    assert parse(" regression( y~x+`a b` )by g ") == Statistic("regression", ("y", "x", "a b"), ("g",))
    assert parse("histogram(x, edges=-1:0.5:2e3)") == Statistic(
        "histogram", ("x",), options=(("edges", (-1, 0.5, 2e3)),)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("maen(income)", "did you mean 'mean'"),
        ("mean(income", r"expected ',' or '\)', found the end"),
        ("mean income", r"expected '\('"),
        ("mean()", "takes 1 columns, got 0"),
        ("mean(a, b)", "takes 1 columns, got 2"),
        ("mean(income) per region", "expected 'by'"),
        ("mean(income) by", "expected the name of a column"),
        ("mean(income) by region sex", "expected ',' or the end"),
        ("mean(a$b)", "double quotes"),
        ("mean(a - b)", "double quotes"),
        ("quantile(income)", "1 to 99 numbers"),
        ("quantile(income, 1)", "below 1"),
        ("trimmed_mean(income, 0.5)", "below 0.5"),
        ("histogram(age, bin=5)", "did you mean 'bins'"),
        ("histogram(age, bins=5, edges=1:2)", "not both"),
        ("histogram(age, edges=2:1)", "increasing"),
        ("ecdf(age, points=10)", "power of two"),
        ("covariance(age, age)", "different columns"),
        ("regression(age)", "expected '~'"),
        ("", "expected a function"),
        (3, "must be a text"),
    ],
)
def test_what_cannot_be_read_is_said(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("asked", "options", "message"),
    [
        ("mean(incom)", {}, "no column 'incom'; did you mean 'income'"),
        ("mean(region)", {}, "holds categories"),
        ("count() by age", {}, "holds numbers; to group by it"),
        ("mean(age)", {"eta": 0.5}, "eta must be above 0 and below 0.5"),
        ("mean(age)", {"eta": math.nan}, "eta"),
        ("mean(age)", {"ranges": {"age": (90, 18)}}, "low < high"),
        ("mean(age)", {"ranges": {"age": (1, 2, 3)}}, "two numbers"),
        ("count() by sex", {"ranges": {"sex": ["F", "F"]}}, "different texts"),
        ("mean(age)", {"ranges": {"agge": (0, 1)}}, "did you mean 'age'"),
        ([], {}, "at least one"),
        ("mean(age)", {"confidence": 1.0}, "confidence"),
        ("count()", {"suppress_below": -1}, "suppress_below"),
        ("mean(age)", {"eta": 1e-9}, "leaves too little"),
    ],
)
def test_bad_questions_are_refused(asked, options, message):
    with pytest.raises(InputError, match=message):
        dn.release_statistics(FRAME, asked, **{"eta": 0.1} | options)


def single(values, group, fixed):
    """One record with these numbers, in one of three groups, or in the only one."""
    complete = fixed
    scales = {name: ColumnScale(-1.0, 1.0, complete) for name in values}
    labels = Categories(("a", "b", "c"), np.array([group]))
    return Records(1, {name: np.array([v]) for name, v in values.items()}, scales, {"g": labels})


def largest_distance(query, fixed):
    """The largest ‖(φ − φ′)/w‖ over pairs of records on a grid, from the sums of tables of one record."""
    grid = [-1.0, -0.62, -0.3, 0.0, 0.2, 0.62, 0.999999, 1.0, *([] if fixed else [math.nan])]
    points = itertools.product(grid, repeat=max(len(query.columns), 1))
    vectors = []
    for point in points:
        for group in range(3 if query.by else 1):
            record = single(dict(zip(query.columns, point, strict=False)), group, fixed)
            vectors.append(query.sums(record).ravel() / query.unit)
    weights = query.weights(record)
    sums = np.array(vectors).reshape(len(vectors), -1, len(weights))
    public = weights == 0
    assert np.ptp(sums[..., public], axis=0).max(initial=0.0) == 0  # what gets no noise is the same for every record
    white = (sums[..., ~public] / weights[~public]).reshape(len(sums), -1)
    square = (white**2).sum(axis=1)
    return math.sqrt((square[:, None] + square - 2 * white @ white.T).max()), query.sensitivity(record)


@pytest.mark.parametrize("by", [(), ("g",)])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("make", "tight"),
    [
        (lambda by: CellCounts(by, "x", (-1.0, 0.0, 0.5, 1.0)), 0.999),
        (lambda by: CellCounts(by, "x", (-1.0, 1.0)), 0.7),  # a single interval: the record can only leave it
        (lambda by: CellCounts(by, "x", (-0.5, 0.5), "y"), 0.999),
        (lambda by: Moments(by, "x"), 0.7),
        (lambda by: Moments(by, "x", True), 0.7),
        (lambda by: Tree(by, "x"), 0.94),
        (lambda by: Products(by, ("x", "y")), 0.7),
        (lambda by: Products(by, ("x", "y", "z")), 0.7),
    ],
)
def test_no_replaced_record_moves_the_sums_further_than_is_charged(make, tight, fixed, by):
    query = make(by)
    found, charged = largest_distance(query, fixed)
    assert found <= charged
    if by or (isinstance(query, Moments) and fixed):
        assert found >= tight * charged  # and the charge is not idle: where it is sharp, it is reached


def test_moments_with_public_n_and_in_groups_are_charged_sharply():
    for fixed, by in ((True, ()), (True, ("g",))):
        for squares in (False, True):
            found, charged = largest_distance(Moments(by, "x", squares), fixed)
            assert 0.9999 * charged <= found <= charged


def test_a_lone_cell_is_public_only_if_it_holds_everybody():
    record = single({"x": 0.3}, 0, True)
    assert CellCounts(()).sensitivity(record) == 0
    assert CellCounts((), "x", (-0.5, 0.5)).sensitivity(record) > 1.4  # the record may lie outside of it


def test_sums_in_groups_are_exact():
    values = RNG.integers(-(2**20), 2**20, 1000)
    codes = RNG.integers(-1, 4, 1000)
    expected = [values[codes == g].sum() for g in range(4)]
    np.testing.assert_array_equal(group_sums(values, codes, 4), expected)


@pytest.mark.parametrize("fixed", [True, False])
def test_the_fit_of_a_tree_is_least_squares(fixed):
    """Against the normal equations of the tree written node by node; a fixed root is met exactly."""
    fit, covariance = _least_squares(fixed)
    leaves = RNG.integers(0, 50, _LEAVES).astype(float)
    nodes = [leaves.reshape(2**level, -1).sum(axis=1) for level in range(DEPTH + 1)]
    np.testing.assert_allclose(fit @ np.concatenate(nodes), leaves, atol=1e-9)
    noisy = np.concatenate(nodes) + RNG.normal(size=2 * _LEAVES - 1) * (np.arange(2 * _LEAVES - 1) >= fixed)
    rows = [np.repeat(np.eye(2**level), _LEAVES // 2**level, axis=1) for level in range(DEPTH + 1)]
    weight = np.where((np.arange(2 * _LEAVES - 1) == 0) & fixed, 1e5, 1.0)
    expected = np.linalg.lstsq(np.vstack(rows) * weight[:, None], noisy * weight, rcond=None)[0]
    np.testing.assert_allclose(fit @ noisy, expected, atol=1e-4)
    spread = fit[:, fixed:] @ fit[:, fixed:].T
    np.testing.assert_allclose(covariance, spread, atol=1e-9)


def truth():
    """Each statistic as pandas and NumPy compute it on all records, in the order of the rows."""
    F = FRAME
    groups = F.groupby("region")["income"]
    cut = F["income"].sort_values().to_numpy()[int(0.1 * N) : N - int(0.1 * N)]
    cov = np.cov(F["age"], F["income"])
    at = np.linspace(18, 90, 9)
    slope, intercept = np.polyfit(F["age"], F["income"], 1)
    up = np.ceil(F["time"].clip(upper=20) / 2.5) * 2.5
    observed = F["event"].astype(bool) & (F["time"] <= 20)
    risk = [(up >= t).sum() for t in np.arange(2.5, 21, 2.5)]
    dead = [((up == t) & observed).sum() for t in np.arange(2.5, 21, 2.5)]
    return {
        "count() by region, sex": F.groupby(["region", "sex"]).size().to_numpy(),
        "count()": [N],
        "share(region)": F["region"].value_counts(normalize=True).sort_index().to_numpy(),
        "share(sex) by region": pd.crosstab(F["region"], F["sex"], normalize="index").to_numpy().ravel(),
        "sum(income)": [F["income"].sum()],
        "sum(income) by region": groups.sum().to_numpy(),
        "mean(income)": [F["income"].mean()],
        "mean(income) by region": groups.mean().to_numpy(),
        "sd(income)": [F["income"].std()],
        "variance(income) by region": groups.var().to_numpy(),
        "histogram(age, edges=18:30:60:90)": np.histogram(F["age"], [18, 30, 60, 90])[0],
        "median(income)": [F["income"].median()],
        "quantile(income, 0.1, 0.9)": np.quantile(F["income"], [0.1, 0.9]),
        "trimmed_mean(income, 0.1)": [cut.mean()],
        "ecdf(age, points=8)": [(F["age"] < t).mean() if t < 90 else 1.0 for t in at],
        "covariance(age, income)": cov[np.triu_indices(2)],
        "correlation(age, income) by sex": [part["age"].corr(part["income"]) for _, part in F.groupby("sex")],
        "regression(income ~ age)": [intercept, slope],
        "survival(time, event, bins=8)": np.cumprod(1 - np.array(dead) / risk),
    }


TRUTH = truth()
LEAF = 120_000 / 256


@pytest.mark.usefixtures("no_noise")
def test_without_noise_every_statistic_is_what_pandas_says():
    made = dn.release_statistics(FRAME, list(TRUTH), eta=0.1, ranges=RANGES)
    for text, expected in TRUTH.items():
        rows = made[text]
        loose = {"median": LEAF, "quantile": LEAF, "trimmed_mean": 60.0}.get(parse(text).function, 0.0)
        np.testing.assert_allclose([row.value for row in rows], expected, rtol=2e-6, atol=loose + 1e-6, err_msg=text)


def test_errors_are_as_large_as_stated():
    """Over 25 releases the mean square of (value − truth)/noise is 1, for every statistic, and limits cover."""
    scores = {text: [] for text in TRUTH}
    for _ in range(25):
        made = dn.release_statistics(FRAME, list(TRUTH), eta=0.4, ranges=RANGES)
        for text, expected in TRUTH.items():
            for row, right in zip(made[text], expected, strict=True):
                assert row.low <= row.value <= row.high or row.value < 0
                if row.noise > 0:
                    scores[text].append((row.value - right) / row.noise)
    for text, found in scores.items():
        if text == "count()":
            assert found == []
        elif parse(text).function in ("median", "quantile", "trimmed_mean"):  # leaves have a width of their own
            assert 0.2 < np.sqrt(np.mean(np.square(found))) < 1.6, text
        else:
            assert 0.6 < np.sqrt(np.mean(np.square(found))) < 1.4, text


def test_one_budget_is_shared_and_kept():
    made = dn.release_statistics(FRAME, ["mean(age)", "sd(age)", "count() by sex"], eta=0.1, ranges=RANGES)
    assert len(made.account) == 2  # mean and standard deviation come from the same sums
    assert made.account[0].serves == ("mean(age)", "sd(age)")
    mu = math.sqrt(sum(look.mu**2 for look in made.account))
    assert made.certificate.tradeoff.advantage() / 2 <= 0.1
    assert mu <= 2 * norm.ppf(0.6)
    assert mu == pytest.approx(2 * norm.ppf(0.6), rel=1e-9)
    alone = dn.release_statistics(FRAME, "mean(age)", eta=0.1, ranges=RANGES)
    assert made["mean(age)"][0].noise == pytest.approx(math.sqrt(2) * alone["mean(age)"][0].noise, rel=0.02)


def test_counts_come_with_the_means_of_the_same_groups():
    made = dn.release_statistics(FRAME, ["count() by region", "mean(age) by region"], eta=0.1, ranges=RANGES)
    assert len(made.account) == 1
    assert made["count() by region"][1].value == pytest.approx(2000, abs=200)


def test_what_is_not_public_is_found_and_paid_for():
    frame = FRAME.assign(town=np.where(np.arange(N) < 3, [f"village {i}" for i in range(N)], FRAME["region"]))
    made = dn.release_statistics(frame, ["mean(income) by town"], eta=0.2, ranges={})
    assert made.found == ("income", "town")
    assert made.ranges["town"] == ("E", "N", "S", "(other)")  # those of single records are not named
    low, high = made.ranges["income"]
    assert low <= 20_000 < 100_000 <= high <= 262_144
    parts = {look.name: look for look in made.account}
    assert parts["categories of town"].delta == 1e-6
    whole = made.certificate.tradeoff
    assert whole.advantage() / 2 <= 0.2
    spent = math.sqrt(sum(look.mu**2 for look in made.account))
    assert whole.advantage() == pytest.approx(1e-6 + (1 - 1e-6) * (2 * norm.cdf(spent / 2) - 1), rel=1e-6)
    assert any("(other)" in row.group for row in made["mean(income) by town"])


def test_a_category_of_one_record_is_named_no_more_often_than_delta_says():
    spending = releasing._Spending(0.2, 1.0, 0.1)
    texts = pd.Series(["a"] + ["b"] * 50)
    with insecure_noise(np.random.default_rng(3)):
        named = sum("a" in releasing._categories(texts, 0.5, 0.1, spending) for _ in range(600))
    assert named / 600 <= 0.1 + 3 * math.sqrt(0.09 / 600)
    assert named / 600 >= 0.04  # and the threshold is not idle


@pytest.mark.usefixtures("no_noise")
def test_missing_cells_and_foreign_categories():
    frame = FRAME.copy()
    frame.loc[:399, "income"] = np.nan
    frame.loc[:99, "region"] = None
    ranges = RANGES | {"region": ["N", "S"]}
    asked = ["mean(income)", "count() by region", "share(region)"]
    made = dn.release_statistics(frame, asked, eta=0.1, ranges=ranges)
    assert made["mean(income)"][0].value == pytest.approx(frame["income"].mean(), rel=1e-3)
    labels = [row.group[0] for row in made["count() by region"]]
    assert labels == ["N", "S", "(missing)"]  # records of E are counted nowhere
    values = [row.value for row in made["share(region)"]]
    expected = [(frame["region"] == "N").mean(), (frame["region"] == "S").mean(), 100 / N]
    np.testing.assert_allclose(values, expected, atol=1e-3)


@pytest.mark.usefixtures("no_noise")
def test_yes_no_columns_need_no_range():
    frame = FRAME.assign(smokes=np.where(FRAME["age"] > 50, "yes", "no"))
    made = dn.release_statistics(frame, ["mean(smokes)", "count() by smokes"], eta=0.1)
    assert made.found == ()
    assert [row.group for row in made["count() by smokes"]] == [("no",), ("yes",)]
    assert made["mean(smokes)"][0].value == pytest.approx((FRAME["age"] > 50).mean(), rel=1e-3)


def test_small_cells_and_hopeless_questions_are_withheld_with_a_reason():
    frame = FRAME.assign(region=np.where(np.arange(N) < 4, "E", "N"))
    asked = ["count() by region", "mean(age) by region", "correlation(age, time) by region", "median(age) by region"]
    asked += ["regression(age ~ time) by region", "survival(time, event) by region", "variance(age) by region"]
    made = dn.release_statistics(frame, asked, eta=0.1, ranges=RANGES, suppress_below=100)
    for text in asked:
        few = [row for row in made[text] if row.group[0] == "E"]
        assert all(math.isnan(row.value) and row.note for row in few), text
    assert made[asked[0]][1].value > 3000
    assert made.to_frame()["value"].isna().sum() > 5


def test_outputs(tmp_path):
    made = dn.release_statistics(FRAME, ["mean(age) by region", "ecdf(age)", "count()"], eta=0.1, ranges=RANGES)
    frame = made.to_frame()
    assert list(frame.columns[:4]) == ["statistic", "region", "item", "value"]
    assert len(frame) == 3 + 17 + 1
    read = pd.read_csv(tmp_path / "t.csv") if made.to_csv(tmp_path / "t.csv") else None
    np.testing.assert_allclose(read["value"], frame["value"])
    told = json.loads(made.to_json(tmp_path / "t.json"))
    assert told["certificate"]["advantage"] <= told["certificate"]["target"] == 0.2
    assert told["certificate"]["bound"] == "dp"
    assert len(told["statistics"]) == 21
    assert sum(look["mu"] ** 2 for look in told["account"]) <= (2 * norm.ppf(0.6)) ** 2
    text = str(made)
    assert "advantage ≤ 0.2 (exact) for everything" in text
    assert "% of the budget" in text
    made.plot().savefig(tmp_path / "t.svg")
    assert (tmp_path / "t.svg").stat().st_size > 1000
    with pytest.raises(InputError, match="was not released"):
        made["mean(income)"]
    report = dn.assess(made)
    assert str(report) == str(dn.assess(made.certificate))
    assert "All records." in report.to_json()


def test_limits_are_cut_to_what_is_possible_and_values_are_not():
    row = Limits(0.95).row((), "", -3.0, 2.0, within=(0.0, math.inf))
    assert (row.value, row.low) == (-3.0, 0.0)
    assert row.high == pytest.approx(-3 + 1.96 * 2, abs=0.01)
    assert math.isnan(row.population_low)


def test_single_quantiles_are_chosen_by_rank_and_many_read_off_a_tree():
    asked = [
        "median(income)",
        "quantile(income, 0.25, 0.75)",
        "quantile(age, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1e-3)",
    ]
    made = dn.release_statistics(FRAME, asked, eta=0.2, ranges=RANGES)
    ranks = [look for look in made.account if look.name.startswith("ranks")]
    assert [look.serves for look in ranks] == [("median(income)", "quantile(income, 0.25, 0.75)")]
    assert math.sqrt(sum(look.mu**2 for look in made.account)) == pytest.approx(2 * norm.ppf(0.7), rel=1e-9)
    for row, p in zip((*made[asked[0]], *made[asked[1]]), (0.5, 0.25, 0.75), strict=True):
        rank = (FRAME["income"] < row.value).mean()
        assert abs(rank - p) < 0.02
        assert row.low <= FRAME["income"].quantile(p) <= row.high


def test_a_range_lost_in_the_noise_is_told_with_every_value():
    few = FRAME[:12]
    with insecure_noise(np.random.default_rng(0)):
        lost = dn.release_statistics(few, "mean(age)", eta=0.02)
    assert "range of age was lost in the noise" in lost.rows[0][0].note
    assert "give --range" in str(lost)
    for wish in ({"ranges": {"age": (0, 120)}, "eta": 0.02}, {"eta": 0.49}):
        with insecure_noise(np.random.default_rng(0)):
            kept = dn.release_statistics(few, "mean(age)", **wish)
        assert "lost" not in str(kept)
    with pytest.raises(InputError, match="at least 4 records, got 3"):
        dn.release_statistics(FRAME[:3], "mean(age)", eta=0.1)
