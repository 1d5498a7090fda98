"""What a notebook shows: the numbers of the result, and nothing of a text that is not escaped."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd

import deniable as dn
from deniable._shown import shown
from deniable.curves import with_note
from deniable.releases import Mean

BAD = '<img src=x onerror="alert(1)">&'


class Reader(HTMLParser):
    """Collects tags and text, and checks that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert set(reader.tags) <= {"pre"}
    return reader.text


def test_a_curve_shows_its_upper_bounds():
    t = dn.tradeoff(dn.GaussianDP(1.0))
    text = read(t._repr_html_())
    for value in (t.advantage(), *t.tpr(np.array([0.1, 0.01, 0.001]))):
        assert shown(float(value), "rate", "upper") in text
    hostile = with_note(t, BAD)
    assert "<img" not in hostile._repr_html_()


def test_a_shell_tells_what_a_notebook_shows():
    rng = np.random.default_rng(0)
    t, audit = dn.tradeoff(dn.GaussianDP(1.0)), dn.audit_scores(rng.normal(1, 1, 200), rng.normal(0, 1, 200))
    running = dn.SequentialAudit(t)
    release = dn.release(Mean(bounds=(0, 1)), rng.random((300, 2)), advantage=0.4, rng=0)
    for result in (
        t, t.explain(fpr=1e-3), release, audit.compare(t), audit.advantage(), running, running.verdict(), dn.assess(t),
    ):  # fmt: skip
        told, seen = str(result), read(result._repr_html_())
        numbers = re.findall(r"\d+\.\d+", told)
        assert [number for number in numbers if number not in seen] == [], type(result)
    assert str(t).splitlines()[1].split() == ["Advantage", "≤", "38.3", "%"]


def test_the_text_of_a_report_is_a_text_in_a_notebook_too(monkeypatch):
    """Rich would display it there, and leave the text empty."""
    assessment = dn.assess(dn.GaussianDP(1.0))
    in_a_shell = str(assessment)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(assessment) == in_a_shell
    assert "DOES NOT MEET" in in_a_shell


def test_names_of_columns_reach_a_notebook_escaped():
    frame = pd.DataFrame({BAD: np.linspace(0, 1, 200)})
    r = dn.release(Mean(bounds=(0, 1)), frame, advantage=0.4, rng=0)
    assert "<img" not in r._repr_html_()


def test_a_private_model_shows_its_promise_above_the_diagram():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), BAD: rng.normal(size=300)})
    model = dn.PrivateClassifier(advantage=0.3, ranges={"a": (-4, 4), BAD: (-4, 4)})
    assert "TPR at FPR" not in model._repr_mimebundle_()["text/html"]
    model.fit(frame, frame["a"] > 0)
    html = model._repr_mimebundle_()["text/html"]
    assert shown(model.tradeoff_.advantage(), "rate", "upper") in html
    assert "sk-top-container" in html
    assert "<img src=x" not in html
    assert "was in the data" in read(model.certificate_._repr_html_())


def test_assessment_audit_and_profile():
    a = dn.assess(dn.GaussianDP(1.0), title=BAD)
    text = read(a._repr_html_())
    assert BAD in text
    assert "DOES NOT MEET THE POLICY" in text
    said = [" ".join(rule.why.split()) for rule in a.decision.rules if rule.outcome != "not asked"]
    assert all(why in " ".join(text.split()) for why in said)
    rng = np.random.default_rng(0)
    audit = dn.audit_scores(rng.normal(1, 1, 200), rng.normal(0, 1, 200))
    assert str(audit.advantage()).partition(": ")[2] in read(audit._repr_html_())
    X = rng.normal(size=(40, 2)) / 10
    y, mechanism = np.where(rng.random(40) > 0.5, 1, -1), dn.OutputPerturbation(epsilon=1.0)
    p = dn.privacy_profile(X, y, regularization=0.1, mechanism=mechanism)
    shows = read(p._repr_html_())
    assert p.warning in shows
    assert shown(float(p.advantage().max()), "rate", "upper") in shows
