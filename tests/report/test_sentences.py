"""Every sentence of every kind of report exists in German and French with its numbers; people's texts stay."""

from __future__ import annotations

import re
import string
import tomllib
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import deniable as dn
from deniable.report.html import TEXTS_IN
from deniable.report.risk_table import risk_table
from deniable.report.sentences import number_in, translate, translator
from deniable.report.text import threat_model
from deniable.report.words import LANGUAGES

CATALOGUE = tomllib.loads(resources.files("deniable.report").joinpath("sentences.toml").read_text("utf-8"))["sentence"]
# left in English: how numbers were computed, verdicts, names of settings and of people's columns
KEPT = re.compile(
    r"(Verdict: |Against the exact curve|sampled certificate|exact certificate|.* noise; |\d+$|[εΛμ]$|deniable$|python$"
    r"|numpy$|x\d$)"
)


@pytest.fixture(scope="module")
def reports():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    many = rng.normal(size=(1000, 2))  # with few records the noisy count may fall below what is warned of
    model = dn.PrivateClassifier(advantage=0.1, model="linear", ranges={0: (-4, 4), 1: (-4, 4)})
    model.fit(many, (many[:, 0] > 0).astype(int))
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    audit = dn.audit_scores(rng.normal(1, 1, 200), rng.normal(0, 1, 200))
    run = dn.assess(dn.SubsampledGaussian(1.0, 0.01, 1000), prior=0.1)
    made = [
        run,
        dn.assess(dn.GaussianDP(0.2)).with_history(run),
        dn.assess(model, X, y),
        dn.assess((X / 4, y), epsilon=1.0, rng=0, n_samples=200),
        dn.assess(tree, X, y, n_shadows=8, n_targets=2, rng=0),
        dn.assess(dn.release(dn.noise.Mean(), X[:, 0], eta=0.2, rng=0)),
        dn.assess(dn.release_statistics(pd.DataFrame({"x": X[:, 0]}), ["mean(x)", "count()"], eta=0.1)),
        dn.assess(audit, bound=dn.GaussianDP(0.1)),
        dn.assess(dn.tuned(dn.NoisyGradientDescent(20.0, 100, 0.05, 1.0, 0.5), trials=5)),
        dn.assess(dn.tuned(dn.GaussianDP(0.1), trials=5) + dn.NoisyGradientDescent(20.0, 100, 0.05, 1.0, 0.5)),
        dn.assess(dn.ApproximateDP(1.0, 0.5), policy=dn.Policy(require=("attack", "records", "utility"))),
    ]
    return [(report, list(spoken(report))) for report in made]


def spoken(report):
    """Every text of a report that the library wrote, as the page shows it."""
    decision = report.decision
    yield from (report.headline, report.alert, decision.policy.name, decision.reason)
    yield from (*decision.changes, *decision.relation, *report.not_covered, *report.warnings, *report.reproduction)
    yield from (text for rule in decision.rules for text in (rule.label, rule.why))
    yield from (text for pair in threat_model(report) for text in pair)
    grids = [grid for section in report.sections for grid in section.grids]
    for section in report.sections:
        yield from (section.title, section.summary, *section.notes)
        yield from (text for number in section.numbers for text in (number.label, number.kind, number.meaning))
        yield from (text for series in section.series for text in (series.title, series.x_label, series.y_label))
        yield from (series.alt for series in section.series)
    for grid in [*grids, risk_table(report)] if risk_table(report) else grids:
        yield from (grid.title, *grid.columns)


@pytest.mark.parametrize("language", ["de", "fr"])
def test_no_sentence_of_any_report_is_missing(reports, language):
    missing = {
        text
        for _, texts in reports
        for text in texts
        if text and not KEPT.match(text) and not translate(text, language)
    }
    assert not missing
    for _, texts in reports:  # nor a half: every sentence of a longer text
        for text in texts:
            left = [
                part for part in re.split(r"(?<=[.!?]) (?=[A-Z])", text) if part in (translate(text, language) or "")
            ]
            assert not [part for part in left if len(part) > 40 and not KEPT.match(text)]


def test_every_entry_has_every_language_and_the_same_holes():
    for entry in CATALOGUE:
        holes = len(re.findall(r"\{[tv]?\}", entry["en"]))
        assert set(entry) == set(LANGUAGES)
        for language in ("de", "fr"):
            named = {field for _, field, _, _ in string.Formatter().parse(entry[language]) if field is not None}
            assert named == {str(i) for i in range(holes)}, entry
    assert len({entry["en"] for entry in CATALOGUE}) == len(CATALOGUE)
    assert len({frozenset(words) for words in LANGUAGES.values()}) == 1  # the headings' catalogue, too


def test_numbers_survive(reports):
    said, number = translator("de"), number_in("de")
    for report, texts in reports:
        for text in texts:
            digits = sorted(re.findall(r"\d+", text))
            assert sorted(re.findall(r"\d+", said(text))) == digits, text
        for found in report.numbers.values():
            assert re.sub(r"\D", "", number(found.shown)) == re.sub(r"\D", "", found.shown)
    assert number("1,234.5\u00a0%") == "1\u202f234,5\u00a0%"
    assert number("≤ 0.1\u00a0%") == "≤ 0,1\u00a0%"
    assert number("3.11.7") == "3.11.7"  # a version is no number
    assert number_in("en")("1,234.5") == "1,234.5"
    command = "Promise: fit again with advantage=0.0999 (--advantage 0.0999); more records keep the model useful."
    assert said(command).count("0.0999") == 2  # what is pasted into a shell keeps its point


def test_texts_of_people_stay(reports):
    rng = np.random.default_rng(0)
    import pandas as pd

    frame = pd.DataFrame({"row": rng.normal(size=300), "guessing": rng.normal(size=300)})
    ranges = {"row": (-4, 4), "guessing": (-4, 4)}
    model = dn.PrivateClassifier(advantage=0.3, ranges=ranges).fit(frame, rng.integers(0, 2, 300))
    page = dn.assess(model, title="Advantage", meta={"author": "Records"}).to_html(language="de")
    assert "<td>row</td>" in page
    assert "<td>guessing</td>" in page
    assert "<h1>Advantage</h1>" in page
    assert "<dt>Verfasst von</dt><dd>Records</dd>" in page
    assert "columns" in TEXTS_IN


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_the_page_speaks_one_language(reports, language):
    for report, _ in reports[:3]:
        page = report.to_html(language=language)
        assert ("The bound (" in page.partition("<script")[0]) is (language == "en")
        assert f'<html lang="{language}">' in page
