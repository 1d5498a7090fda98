"""Statistics of a secret half: the same values as pandas, the other promise, and who decides between the two."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import deniable as dn
from deniable import InputError
from deniable.cli._app import run
from deniable.noise import Covariance, Mean, Quantile
from deniable.noise.tabulation import parse
from deniable.noise.tabulation.answers import Row
from deniable.noise.tabulation.halves import OfRecords, ReleasedMoments, better_of_a_half

RNG = np.random.default_rng(2)
FRAME = pd.DataFrame({"x": RNG.normal(50, 10, 200)})
FRAME["y"] = 0.5 * FRAME["x"] + RNG.normal(0, 5, 200)
FRAME["g"] = RNG.choice(["a", "b"], 200)
RANGES = {"x": (0, 1000), "y": (0, 1000), "g": ["a", "b"]}  # far wider than the data: noise on sums drowns them


def test_values_are_those_of_pandas():
    x, y = FRAME["x"], FRAME["y"]
    slope, intercept = np.polyfit(x, y, 1)
    expected = {
        "mean(x)": [x.mean()],
        "sum(x)": [x.sum()],
        "variance(x)": [x.var()],
        "sd(x)": [x.std()],
        "median(x)": [x.median()],
        "quantile(x, 0.1, 0.9)": x.quantile([0.1, 0.9]),
        "trimmed_mean(x, 0.1)": [x.sort_values()[20:180].mean()],
        "covariance(x, y)": [x.var(), x.cov(y), y.var()],
        "correlation(x, y)": [x.corr(y)],
        "regression(y ~ x)": [intercept, slope],
    }
    for text, value in expected.items():
        asked = parse(text)
        table = FRAME[list(asked.columns)].to_numpy()
        with_gaps = np.vstack([table, np.full((3, len(asked.columns)), np.nan)])
        np.testing.assert_allclose(OfRecords(asked)(with_gaps), value, rtol=1e-9, err_msg=text)
        assert len(OfRecords(asked).names) == len(value)


def test_auto_takes_a_half_where_noise_on_all_records_drowns_the_answer(tmp_path, capsys):
    made = dn.release_statistics(FRAME, "correlation(x, y)", eta=0.2, ranges=RANGES, bound="auto", rng=0)
    (row,) = made.rows[0]
    assert made.certificate.bound == "direct"
    assert made.certificate.eta <= 0.2
    assert abs(row.value - FRAME["x"].corr(FRAME["y"])) < 5 * row.noise < 0.5
    assert any("all records were first asked" in text for text in made.certificate.assumptions)
    assert "names a record's membership" in str(made)
    assert made.account[0].mu > 0
    FRAME.to_csv(tmp_path / "t.csv")
    words = ["release", str(tmp_path / "t.csv"), "--statistic", "sd(x)", "--bound", "direct", "--seed", "1", "--json"]
    assert run([*words, "--eta", "0.2"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["certificate"]["bound"] == "direct"
    assert told["statistics"][0]["value"] == pytest.approx(10, abs=5)


def test_only_ranges_that_were_given_are_published():
    def ranges(given):
        return dn.release_statistics(FRAME, "mean(x)", eta=0.2, ranges=given, bound="direct", rng=0).ranges

    assert ranges({"x": (0, 1000)}) == {"x": (0, 1000)}
    assert ranges(None) == {}  # the least and the largest value are single people's


def test_auto_stays_with_all_records_where_they_answer():
    for asked in ("mean(x)", ["mean(x)", "correlation(x, y)"], "correlation(x, y) by g"):
        wide = RANGES if asked != "mean(x)" else {"x": (20, 80)}
        assert dn.release_statistics(FRAME, asked, eta=0.3, ranges=wide, bound="auto").certificate.bound == "dp"
    mean, rest = parse("mean(x)"), [math.nan] * 4
    assert better_of_a_half(mean, [Row((), "", math.nan, math.nan, math.nan, *rest)], 1000, 0.1)
    assert not better_of_a_half(mean, [Row((), "", 1.0, 0.1, 1.0, *rest)], 1000, 0.1)
    noisy = [Row((), "", 1.0, 2.0, 1.0, *rest)]
    assert better_of_a_half(mean, noisy, 1000, 0.1)
    assert not better_of_a_half(mean, noisy, 1000, 0.01)  # a half would need as much


@pytest.mark.parametrize(
    ("asked", "bound", "message"),
    [
        ("mean(x)", "centre", "bound must be"),
        (["mean(x)", "sd(x)"], "direct", "one statistic at a time"),
        ("mean(x) by g", "direct", "without 'by'"),
        ("histogram(x)", "direct", "use bound='dp'"),
    ],
)
def test_what_a_half_cannot_answer_is_refused(asked, bound, message):
    with pytest.raises(InputError, match=message):
        dn.release_statistics(FRAME, asked, eta=0.1, ranges=RANGES, bound=bound)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--statistic", "mean(x)", "--bound", "swap"], "goes with models"),
        (["--target", "g", "--out", "m.skops", "--bound", "direct"], "goes with --statistic"),
    ],
)
def test_the_command_says_which_bound_goes_where(tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("t.csv")
    assert run(["release", "t.csv", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize(
    "asked", ["sum(x)", "variance(x)", "sd(x)", "covariance(x, y)", "quantile(x, 0.9)", "regression(y ~ x)"]
)
def test_closed_forms_of_a_half_answer_what_was_asked(asked, monkeypatch):
    """With noise of next to nothing: the numbers, their places and their errors; gaps go to the general way."""
    from deniable.noise.tabulation import halves

    ways = []

    def released(algorithm, data, *, eta, bound="auto", **options):
        ways.append(bound)
        return dn.release(algorithm, data, eta=0.49, bound="swap" if bound == "auto" else bound, n_resamples=512, rng=0)

    monkeypatch.setattr(halves, "release", released)
    exact = OfRecords(parse(asked))(FRAME[list(parse(asked).columns)].to_numpy())
    many = asked.startswith("regression")  # the intercept is far from the records, so it is not known so well
    made = dn.release_statistics(FRAME, asked, eta=0.3, ranges=RANGES, bound="direct", rng=0)
    assert len(made.rows[0]) == len(exact)
    for row, value in zip(made.rows[0], exact, strict=True):
        assert 0 < row.sampling <= row.noise  # noise and half together
        assert abs(row.value - value) < 6 * row.noise < (20 if many else 2) * abs(value)
    if many:
        return  # two numbers by runs take long
    gaps = FRAME.assign(x=FRAME["x"].where(FRAME.index > 2))
    dn.release_statistics(gaps, asked, eta=0.3, ranges=RANGES, bound="direct", rng=0)
    assert ways == ["auto", "direct"]


def test_what_a_half_costs_is_guessed_from_n_and_eta():
    """Normal columns: the guess is near what a release of that half needs, and never depends on the table."""
    from deniable.noise.tabulation.halves import _widened

    x = np.random.default_rng(0).normal(size=(569, 1))
    for asked, algorithm in {"mean(x)": Mean(), "quantile(x, 0.9)": Quantile(0.9), "variance(x)": Covariance()}.items():
        made = dn.release(algorithm, x, eta=0.02, bound="direct" if "quantile" in asked else "swap")
        truth = float((made.standard_error / made.sampling_error).ravel()[0])
        assert 0.7 * truth < _widened(parse(asked), 569, 0.02, 4.0) < 2.5 * truth, asked
    assert _widened(parse("quantile(x, 0.9)"), 10**7, 0.1, 4.0) < 1.001


def test_the_slope_of_many_records_with_heavy_tails_comes_from_the_swaps_of_a_half(monkeypatch):
    """Runs would take too long here; swaps bounded around one fit do not."""
    from deniable.noise.tabulation.halves import _widened

    monkeypatch.setattr("deniable.noise.known_swaps._SMALL", 10.0)  # the second proof takes seconds
    rng, n = np.random.default_rng(0), 6000
    x = np.minimum(rng.lognormal(10, 0.8, n), 399_999)
    frame = pd.DataFrame({"x": x, "y": x * rng.uniform(0.2, 0.6, n)})
    ends = {"x": (0, 4e5), "y": (0, 4e5)}
    asked, unit = parse("regression(y ~ x)"), frame["y"].std() / x.std()
    all_records = dn.release_statistics(frame, asked, eta=0.1, ranges=ends, rng=0).rows[0]
    assert better_of_a_half(asked, all_records, n, 0.1)
    made = dn.release_statistics(frame, asked, eta=0.1, ranges=ends, bound="auto", rng=0)
    row = made.rows[0][1]
    assert (made.certificate.bound, made.certificate.eta <= 0.1) == ("swap", True)
    assert abs(row.value - np.polyfit(x, frame["y"], 1)[0]) < 6 * row.noise < 6 * 0.06 * unit
    assert row.noise < all_records[1].noise / 2
    assert not better_of_a_half(asked, [Row((), "", 1.0, 0.9, 1.0, *[math.nan] * 4)], 50_000, 0.05)
    assert _widened(asked, 300, 0.1, 4.0) == _widened(parse("correlation(x, y)"), 300, 0.1, 4.0)  # runs need less


def _released(value, noise, mean=0.0, ends=(-10.0, 10.0)):
    """A column of variance ``value`` ± ``noise``, and the row of that variance as all of 442 records release it."""
    rest = [math.nan] * 4
    row = Row((), "", value, noise, value * math.sqrt(2 / 442), *rest)
    return ReleasedMoments(Row((), "", mean, 0.1, 0.05, *rest), row, *ends), [row]


def test_a_variance_that_is_mostly_noise_does_not_stay_because_it_came_out_large():
    """A release of 1.5 ± 0.5 where 1 is true: what stays would be those that err most, on one side."""
    for function in ("variance", "mean"):
        column, rows = _released(1.5, 0.5)
        rows = rows if function == "variance" else [replace(rows[0], noise=0.2, sampling=math.sqrt(1.5 / 442))]
        assert better_of_a_half(parse(f"{function}(x)"), rows, 442, 0.05, column), function
    column, rows = _released(1.5, 0.05)
    assert not better_of_a_half(parse("variance(x)"), rows, 442, 0.05, column)
    column, rows = _released(0.5, 0.5)  # not above 0 at its lower limit
    assert better_of_a_half(parse("sd(x)"), rows, 442, 0.05, column)


def test_most_releases_of_a_noisy_variance_turn_and_those_that_answer_stay(monkeypatch):
    """Normal and skewed records, drawn; without the released limit only half of the first turned."""
    from deniable.noise.tabulation import releasing

    turned = []
    monkeypatch.setattr(releasing, "_of_a_half", lambda *_: turned.append(1))
    rng = np.random.default_rng(0)
    for records, ends, eta, least, most in (
        (rng.normal(26, 4.4, 442), (10, 60), 0.1, 15, 20),
        (rng.normal(size=300), (-7, 7), 0.1, 15, 20),
        (np.minimum(rng.lognormal(0, 0.8, 2000), 12), (0, 12), 0.02, 15, 20),  # errs more alone, but they are joined
        (np.minimum(rng.lognormal(0, 0.8, 20_000), 12), (0, 12), 0.2, 0, 0),  # a half hides its largest record
        (rng.normal(size=2000), (-4, 4), 0.1, 0, 0),
    ):
        turned.clear()
        frame = pd.DataFrame({"x": records})
        for _ in range(20):
            dn.release_statistics(frame, "variance(x)", eta=eta, ranges={"x": ends}, bound="auto")
        assert least <= len(turned) <= most, (len(records), ends, len(turned))


@pytest.mark.parametrize(
    ("asked", "n"), [("mean(x)", 300), ("sd(x)", 300), ("sum(x)", 300), ("trimmed_mean(x, 0.1)", 200)]
)
def test_what_all_records_and_a_half_answered_is_joined(asked, n, monkeypatch):
    """Errors of the joined value are those it states, below those of either; the half is played by its noise."""
    from deniable.noise.tabulation import halves, releasing

    rng = np.random.default_rng(5)
    x = rng.normal(50, 10, n)
    algorithm = OfRecords(parse(asked)) if "trimmed" in asked else Mean() if asked != "sd(x)" else Covariance()
    truth = algorithm(x[:, None])
    error = 40.0 if asked == "sd(x)" else 0.8 if "trimmed" in asked else 2.0
    made = replace(dn.release(Mean(), x[:, None], eta=0.3, rng=0), sampling_error=np.zeros(truth.shape))

    def released(*_, **__):
        noise = np.full(truth.shape, error)
        return replace(made, value=truth + error * rng.normal(size=truth.shape), noise_scale=noise)

    monkeypatch.setattr(halves, "release", released)
    alone = []

    def better(statistic, rows, *_):
        alone.append(rows[0].noise)
        return True

    monkeypatch.setattr(releasing, "better_of_a_half", better)
    exact, times = OfRecords(parse(asked))(x[:, None])[0], n if asked == "sum(x)" else 1
    options = {"eta": 0.1, "ranges": {"x": (-40, 140)}, "bound": "auto"}
    rows = [dn.release_statistics(pd.DataFrame({"x": x}), asked, **options).rows[0][0] for _ in range(80)]
    off = np.array([(row.value - exact) / row.noise for row in rows])
    assert 0.7 < np.sqrt(np.mean(off**2)) < 1.35
    if asked != "sd(x)":  # whose error depends on its value
        assert rows[0].noise < 0.9 * times * min(error, alone[0])


def test_how_far_a_record_may_be_off_is_told_by_the_mean_and_the_ends():
    def farthest(mean, ends, n=2000):
        return _released(1.0, 0.01, mean, ends)[0].farthest(n, 1.0)

    assert farthest(0, (-100, 100)) == pytest.approx(2000**0.25)
    assert farthest(0, (-3, 3)) == 3  # nobody is beyond the end
    assert farthest(0, (-0.1, 0.1)) == 1
    assert farthest(0, (-1e300, 1e300)) == pytest.approx(2000**0.25)
    assert farthest(0.9, (1, 90)) == farthest(1, (1, 90)) >= farthest(1.1, (1, 90)) > 15  # at the end: a long tail
    assert farthest(1, (1, 10)) == 9
    shape, scale = 0.8, 1 / math.sqrt(math.expm1(0.64) * math.exp(0.64))  # of standard deviation 1
    mean = scale * math.exp(0.32)
    largest = np.median(np.random.default_rng(1).lognormal(math.log(scale), shape, (400, 2000)).max(axis=1))
    assert farthest(mean, (0, 100)) == pytest.approx(largest - mean, rel=0.1)


def test_the_error_of_a_chosen_quantile_is_that_of_releases():
    """A quantile near the end of few records often falls into the rest of the range; the rehearsal knows that."""
    from deniable.noise.tabulation.halves import _chosen

    x = ndtri((np.arange(200) + 0.5) / 200)
    for p, least, most in ((0.5, 0.9, 1.3), (0.9, 3.0, 30.0)):
        rows = [
            dn.release_statistics(pd.DataFrame({"x": x}), f"quantile(x, {p})", eta=0.05, ranges={"x": (-6, 6)}).rows[0][
                0
            ]
            for _ in range(60)
        ]
        truth = np.sqrt(np.mean([(row.value - ndtri(p)) ** 2 for row in rows]))
        sampling = np.sqrt(p * (1 - p) / 200) / (np.exp(-(ndtri(p) ** 2) / 2) / np.sqrt(2 * np.pi))
        ratio = rows[0].noise / rows[0].sampling
        assert 0.6 * truth < _chosen(p, 200, ratio) * sampling < 1.7 * truth
        assert least < _chosen(p, 200, ratio) / ratio < most


def test_auto_judges_a_sum_by_its_mean(monkeypatch):
    from deniable.noise.tabulation import releasing

    judged = []

    def better(statistic, rows, n, eta, column):
        judged.append((statistic.function, rows[0].value, rows[0].sampling > 0))
        return True

    monkeypatch.setattr(releasing, "better_of_a_half", better)
    made = dn.release_statistics(FRAME, "sum(x)", eta=0.4, ranges={"x": (0, 100)}, bound="auto", rng=0)
    assert judged[0][0] == "mean"
    assert judged[0][1] == pytest.approx(FRAME["x"].mean(), abs=3)
    assert judged[0][2]
    assert made.certificate.bound != "dp"
    assert made.rows[0][0].value == pytest.approx(FRAME["x"].sum(), rel=0.1)
