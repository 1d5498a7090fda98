"""Every number says what it is of: limited values, records or persons; sums by person; parts of the budget."""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import deniable as dn
from deniable import InputError
from deniable.statistics import releasing
from guarantees.replay import replayed

RNG = np.random.default_rng(5)
VISITS = pd.DataFrame({"who": np.repeat(np.arange(300), RNG.integers(1, 12, 300)), "spend": 0.0, "town": "Ulm"})
VISITS["spend"] = np.round(RNG.lognormal(3, 1, len(VISITS)), 2)
VISITS["town"] = RNG.choice(["Ulm", "Rome"], len(VISITS))
PUBLIC = {"spend": (0, 500), "town": ["Ulm", "Rome"]}


@pytest.fixture
def no_noise(monkeypatch):
    """A budget at which all noise is below a millionth."""
    allowed = releasing.budget(dn.Limit(advantage=0.2))
    monkeypatch.setattr(releasing, "budget", lambda *_, **__: replace(allowed, mu=1e9))


def test_text_csv_json_and_certificate_name_what_a_number_is_of():
    asked = ["mean(spend) by town", "count()", "correlation(spend, days)", "median(spend)", "mean(spend)"]
    asked += ["ecdf(days)", "median(days)"]
    frame, whole = VISITS.assign(days=1.0), dn.Schema({"days": {"kind": "whole", "range": (0, 2)}})
    made = dn.release_statistics(frame, asked, advantage=0.9, schema=whole, ranges=PUBLIC, n=7)
    named = {
        asked[0]: "mean of values limited to (0, 500)",
        asked[1]: "number of records",
        asked[2]: "correlation of spend limited to (0, 500), days limited to (0, 2); "
        "limits for the population as for normal records",
        asked[3]: "median of values limited to (0, 500); limits as for values without gaps (of whole numbers: declare "
        "them as such)",
        asked[5]: "share below each point of values limited to (0, 2)",
        asked[6]: "median of values limited to (0, 2)",
    }
    for text, estimand in named.items():
        assert made.estimands[asked.index(text)] == estimand
        assert f"\n{text}: {estimand}\n" in str(made)
        rows = [line for line in csv.DictReader(io.StringIO(made.to_csv())) if line["statistic"] == text]
        assert {line["estimand"] for line in rows} == {estimand}
        rows = [line for line in json.loads(made.to_json())["statistics"] if line["statistic"] == text]
        assert {line["estimand"] for line in rows} == {estimand}
        page = dn.assess(made)
        assert f"{text} is the {estimand}" in page.to_json()
        assert f"Released: {text}, the {estimand}." in " ".join(str(page).split())
        shown = [row.shown() for row in made.rows[asked.index(text)] if text != "count()"]
        assert all(one.endswith(f" ({estimand})") for one in shown)
    assert "all records: 7 (declared)" in str(made)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("asked", "releases"), [("0.9", 20), ("0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9", 2)])
def test_limits_of_quantiles_of_whole_numbers_cover_them(known, asked, releases):
    """A choice between two ages is of neither: limits around it held the .9 quantile in 11 of 30 releases."""
    schema = dn.Schema({"age": {"kind": "whole", "range": (0, 120)}}) if known else None
    inside = 0
    for _ in range(releases):
        age = np.clip(RNG.normal(45, 17, 3000).round(), 18, 90)
        table = pd.DataFrame({"age": age})
        made = dn.release_statistics(table, f"quantile(age, {asked})", advantage=0.2, schema=schema)
        row = made.rows[0][-1]
        inside += row.low <= np.quantile(age, 0.9, method="inverted_cdf") <= row.high
        assert {row.low, row.high, row.population_low, row.population_high} <= set(range(129))
        assert row.high - row.low < 12
    assert inside >= 0.75 * releases  # at 95 % 14 of 20 are rarer than 1 in 3,000


def test_limits_of_a_found_range_are_of_the_values_limited_to_it():
    """Limits covered the mean of 2,000 log-normal amounts in 12 of 30 releases, and named nothing else."""
    inside = {"limited": 0, "not limited": 0}
    for _ in range(30):
        x = RNG.lognormal(10, 1, 2000)
        made = dn.release_statistics(pd.DataFrame({"x": x}), "mean(x)", advantage=0.2)
        low, high = made.ranges["x"]
        assert made.estimands[0] == f"mean of values limited to ({low:.15g}, {high:.15g})"
        assert made.estimands[0] in repr(made.rows[0][0])
        assert all(made.estimands[0] in text for text in (str(made), made.to_csv(), str(made.to_dict())))
        row = made.rows[0][0]
        inside["limited"] += row.low <= np.clip(x, low, high).mean() <= row.high
        inside["not limited"] += row.low <= x.mean() <= row.high
    assert inside["limited"] >= 25  # 0.2 % of seven or more misses at 95 %
    assert inside["not limited"] < inside["limited"]


@pytest.mark.usefixtures("no_noise")
def test_a_sum_of_persons_is_of_their_sums_up_to_a_bound():
    """The sum of each person's mean was 124,757 where amounts added up to 248,724, and called that of all records."""
    hers = VISITS.groupby("who")["spend"].sum()
    asked = ["sum(spend, per_person=5000)", "sum(spend, per_person=100)", "sum(spend, per_person=100) by town"]
    made = dn.release_statistics(VISITS, asked, advantage=0.2, ranges=PUBLIC, group="who")
    assert made[asked[0]][0].value == pytest.approx(VISITS["spend"].sum(), rel=1e-5)
    assert made[asked[1]][0].value == pytest.approx(hers.clip(upper=100).sum(), rel=1e-5)
    both = VISITS.pivot_table(index="who", columns="town", values="spend", aggfunc="sum", fill_value=0.0)
    scaled = both.mul(np.minimum(1, 100 / np.hypot(both["Rome"], both["Ulm"])), axis=0).sum()
    assert [row.value for row in made[asked[2]][:2]] == pytest.approx([scaled["Ulm"], scaled["Rome"]], rel=1e-5)
    assert "all persons: " in str(made)
    assert "all records: " not in str(made)
    assert made.estimands[1] == ("sum of values limited to (0, 500), what one person adds in all limited to ±100")


def test_a_sum_of_persons_without_a_bound_is_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"how much one may add in all, as in sum\(spend, per_person=5000\)"):
        dn.release_statistics(VISITS, "sum(spend)", advantage=0.2, ranges=PUBLIC, group="who")
    with pytest.raises(InputError, match="name the column of persons"):
        dn.release_statistics(VISITS, "sum(spend, per_person=9)", advantage=0.2, ranges=PUBLIC)
    for bound in ("0", "-1", "1:2"):
        with pytest.raises(InputError, match="per_person must be one number above 0"):
            dn.release_statistics(VISITS, f"sum(spend, per_person={bound})", advantage=0.2, group="who")


@pytest.mark.usefixtures("no_noise")
def test_a_person_counts_once_however_many_records_she_has():
    """Equal whole parts of 720 lost a hundredth of a person with 7 records, 4/9 of one with 400, all beyond 720."""
    sizes = {1: 9, 7: 30, 400: 5, 800: 2}
    owners = np.repeat(np.arange(sum(sizes.values())), np.repeat(list(sizes), list(sizes.values())))
    frame = pd.DataFrame({"who": owners, "x": 1.0 * (owners % 2), "g": np.where(owners < 9, "a", "b")})
    asked = ["count()", "count() by g", "mean(x)", "histogram(x, edges=0:0.5:1)", "median(x)"]
    made = dn.release_statistics(frame, asked, advantage=0.2, ranges={"x": (0, 1), "g": ["a", "b"]}, group="who")
    assert made["count()"][0].value == pytest.approx(46, abs=1e-3)
    assert [row.value for row in made[asked[1]][:2]] == pytest.approx([9, 37], abs=1e-3)
    assert made["mean(x)"][0].value == pytest.approx(0.5, abs=1e-3)
    assert [row.value for row in made[asked[3]]] == pytest.approx([23, 23], abs=1e-3)
    assert made.estimands[:3] == (
        "number of persons; each person's records count as one together",
        "number of persons; each person's records count as one together",
        "mean of values limited to (0, 1); each person's records count as one together",
    )


@pytest.mark.parametrize("ranges", [PUBLIC, {"town": ["Ulm", "Rome"]}], ids=["range", "bound alone"])
def test_a_person_moves_sums_by_her_bound_and_no_further(ranges):
    """All her amounts in one town, or spread; with a negative control of somebody whom nobody named."""
    asked = ["sum(spend, per_person=100) by town", "mean(spend) by town", "count() by town"]
    for towns in (["Ulm"] * 900, ["Ulm", "Rome"] * 450):
        hers = pd.DataFrame({"who": -1, "spend": [499.0, -3.0, 1e300] * 300, "town": towns})
        both = pd.concat([hers, VISITS.assign(who=np.where(VISITS["who"] == 7, None, VISITS["who"]))])

        def run(frame):
            made = dn.release_statistics(frame, asked, advantage=0.2, ranges={"spend": (0, 500)} | ranges, group="who")
            return {"all": made.to_json()}

        found = replayed(run, both, both[both["who"] != -1])
        assert found.differ == {}
        assert found.mu <= 2 * norm.ppf(0.6)
        assert replayed(run, both.assign(who=np.arange(len(both))), both[both["who"] != -1]).mu > 2


def test_counts_beside_means_are_as_exact_as_with_a_part_of_their_own():
    """They shared the part of the means, at 1.8 times the noise of one part of two."""
    for more in ([], ["mean(age) by town"], ["median(spend)", "sd(age) by town", "mean(age) by town"]):
        asked = ["count() by town", "mean(spend) by town", *more]
        frame = VISITS.assign(age=30.0)
        made = dn.release_statistics(frame, asked, advantage=0.2, ranges=PUBLIC | {"age": (0, 90)}, n=1000)
        mu = 2 * norm.ppf(0.6)
        spent = math.hypot(*(use.mu for use in made.certificate.uses))
        assert mu * (1 - 1e-8) <= spent <= mu
        parts = 2 + (len(more) > 0) + (len(more) > 1)
        assert made[asked[0]][0].noise <= math.sqrt(parts) / mu * (1 + 1e-6)


def test_a_total_has_no_population_and_its_parts_have():
    table = pd.DataFrame({"town": ["a", "b"] * 1000})
    made = dn.release_statistics(table, ["count()", "count() by town"], advantage=0.2)
    total, first, *_ = made.rows[0][0], *made.rows[1]
    assert total.population == ""
    assert first.population


def test_an_argument_that_is_none_is_named():
    with pytest.raises(TypeError, match="unexpected keyword argument 'person'"):
        dn.release_statistics(pd.DataFrame({"a": [1.0]}), ["count()"], advantage=0.2, person="a")
