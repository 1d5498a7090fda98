"""The ledger: what it adds up, what it refuses, what it keeps whatever happens."""

import copy
import json
import math
import pickle
import sqlite3
from contextlib import closing, contextmanager
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import deniable as dn
from deniable._shown import shown
from deniable.cli.run import read_run
from deniable.ledger import Entry, LedgerError
from deniable.ledger.admission import beside
from deniable.ledger.file import first_head
from deniable.mechanisms import parts_of
from deniable.mechanisms.core import A_LINE


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.ledger"


def test_what_was_entered_adds_up_to_the_composition(path):
    ledger = dn.Ledger(path)
    parts = [dn.GaussianDP(0.3), dn.SubsampledGaussian(1.0, 0.01, 100), dn.GaussianDP(0.4), dn.PureDP(0.1)]
    for number, part in enumerate(parts, 1):
        assert ledger.add(part).number == number
    alone = dn.tradeoff(dn.Composition(parts))
    assert ledger.tradeoff().advantage() == pytest.approx(alone.advantage(), abs=1e-9)
    assert ledger.tradeoff().epsilon(1e-5) == pytest.approx(alone.epsilon(1e-5), abs=1e-6)
    assert any("no limit was fixed" in note for note in ledger.tradeoff().assumptions.notes)


def test_releases_that_are_alike_are_composed_as_one(path):
    ledger = dn.Ledger(path)
    for _ in range(3):
        ledger.add(dn.SubsampledGaussian(1.0, 0.01, 100))
    assert ledger.tradeoff().tpr(1e-3) == dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 300)).tpr(1e-3)


@pytest.mark.parametrize("release", [dn.GaussianDP(1e200), dn.SubsampledGaussian(1e-200, 1.0, 5)])
def test_a_budget_beyond_a_double_is_refused_in_words(path, release):
    with pytest.raises(LedgerError, match="too little"):
        dn.Ledger(path, limit=dn.Limit(advantage=0.5)).add(release)


def test_the_limit_holds_for_all_that_is_ever_admitted(path):
    limit = dn.Limit(advantage=0.2)
    ledger = dn.Ledger(path, limit=limit)
    while True:
        try:
            ledger.add(dn.Composition([dn.GaussianDP(0.1), dn.ApproximateDP(0.0, 1e-7)]))
        except LedgerError:
            break
    assert len(ledger.entries) == math.floor(ledger.tradeoff().advantage() and (0.5066 / 0.1) ** 2)
    assert limit.is_met(ledger.tradeoff())
    assert limit.is_met(dn.tradeoff(ledger.mechanism()))
    assert ledger.verify().holds


@pytest.mark.parametrize(
    "release", [dn.SubsampledGaussian(1.0, 0.01, 10), dn.Laplace(1.0), (0.1, 1e-9), dn.PureDP(0.01)]
)
def test_what_is_not_gaussian_and_was_not_reserved_is_refused_and_nothing_is_written(path, release):
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.5))
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="reserve"):
        ledger.add(release)
    assert path.read_bytes() == before


def test_what_was_reserved_can_be_used_once_in_parts_with_more_noise_and_smaller_rates(path):
    reserve = dn.SubsampledGaussian(1.0, 0.02, 100) + dn.Laplace(2.0)
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.6), reserve=reserve)
    ledger.add(dn.SubsampledGaussian(1.5, 0.01, 60))
    for too_much in (dn.SubsampledGaussian(1.0, 0.02, 41), dn.SubsampledGaussian(0.9, 0.02, 1),
                     dn.SubsampledGaussian(1.0, 0.03, 1), dn.SubsampledGaussian(1.0, 0.02, 1, 2)):  # fmt: skip
        with pytest.raises(LedgerError):
            ledger.add(too_much)
    ledger.add(dn.SubsampledGaussian(1.0, 0.02, 40))
    ledger.add(dn.Laplace(2.0))
    with pytest.raises(LedgerError):
        ledger.add(dn.Laplace(2.0))
    assert dn.Limit(advantage=0.6).is_met(ledger.tradeoff())


def test_a_reserve_of_a_run_names_the_filter_and_how_failures_are_reserved(path, capsys):
    """The page said that no release may be chosen from earlier ones, which the limit allows; the cure was not named."""
    from deniable.cli._app import run

    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.3), reserve=dn.SubsampledGaussian(5.0, 0.01, 1000))
    ledger.add(dn.GaussianDP(0.7))
    assert "as for 1 release of advantage 0.1; δ 0 to find categories" in ledger.lines()[-1]
    notes = dn.assess(ledger).assumptions.notes
    assert any("may be chosen from what earlier ones show" in note for note in notes)
    assert not any("fixed beforehand" in note for note in notes)
    assert run(["ledger", "add", str(path), "epsilon,0,1e-6"]) == 2
    assert "--reserve 'dpsgd,4,0.01,1000 + epsilon,0,1e-5'" in capsys.readouterr().err
    assert len(ledger.entries) == 1


def test_failures_are_pooled(path):
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.5))  # 1e-5 is reserved
    fails = dn.Composition([dn.GaussianDP(0.01), dn.ApproximateDP(0.0, 4e-6)])
    ledger.add(fails)
    ledger.add(fails)
    with pytest.raises(LedgerError, match="declare"):
        ledger.add(fails)


def test_remaining_counts_releases_that_then_fit(path):
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.3))
    ledger.add(dn.GaussianDP(0.2))
    many = ledger.remaining(advantage=0.1)
    each = dn.calibrate(dn.GaussianDP, (1e-3, 5), advantage=0.1)
    for _ in range(int(many)):
        ledger.add(dn.GaussianDP(each))
    assert ledger.remaining(advantage=0.1) == 0
    with pytest.raises(LedgerError):
        ledger.add(dn.GaussianDP(each))


def test_an_entry_is_read_once_however_many_follow(path, monkeypatch):
    read, of = [], Entry.read
    monkeypatch.setattr(Entry, "read", lambda row: read.append(row[0]) or of(row))
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.2))
    whole = ledger.remaining()
    for _ in range(8):
        ledger.add(dn.GaussianDP(0.01))
    assert read == [1, 2, 3, 4, 5, 6, 7]
    dn.Ledger(path).add(dn.GaussianDP(0.02))  # somebody else's
    assert ledger.remaining() ** 2 == pytest.approx(whole**2 - 12e-4, abs=1e-9)


def test_a_plan_enters_nothing(path):
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.3))
    ledger.add(dn.GaussianDP(0.2))
    assert ledger.plan(dn.GaussianDP(0.1)).advantage() == pytest.approx(
        dn.tradeoff(dn.GaussianDP(math.hypot(0.2, 0.1))).advantage(), rel=1e-9
    )
    with pytest.raises(LedgerError):
        ledger.plan(dn.GaussianDP(2.0))
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("limit", [None, dn.Limit(advantage=0.3)])
def test_a_sum_of_entries_says_for_whom_it_holds_and_a_limit_holds_for_all(path, limit, capsys):
    """A plan's curve, and that of what was entered, named no condition: an adaptive analyst passes both."""
    from deniable.cli._app import run

    ledger = dn.Ledger(path, limit=limit)
    ledger.add(dn.GaussianDP(0.2))
    for curve in (ledger.plan(dn.GaussianDP(0.1)), dn.tradeoff(ledger.mechanism())):
        assert "planned by looking at an earlier one" in curve.assumptions.notes[0]
        assert ("no limit" in curve.assumptions.notes[0]) == (limit is None)
    assert ("planned by looking" in str(ledger.tradeoff().assumptions.notes)) == (limit is None)
    assert run(["ledger", "plan", str(path), "gaussian,0.1"]) == 0
    assert "planned by looking at an earlier one" in capsys.readouterr().out


class TestUnits:
    def test_records_do_not_enter_a_ledger_of_persons_unless_converted(self, path):
        ledger = dn.Ledger(path, unit="patient")
        with pytest.raises(LedgerError, match="records_per_person"):
            ledger.add(dn.GaussianDP(0.1))
        ledger.add(dn.GaussianDP(0.1), records_per_person=3)
        ledger.add(dn.SubsampledGaussian(1.0, 0.01, 10), records_per_person=3)
        ledger.add(dn.GaussianDP(0.1), unit="patient")
        gaussian = dn.GaussianDP(math.hypot(0.3, 0.1))
        own = dn.tradeoff(dn.Composition([gaussian, dn.SubsampledGaussian(1.0, 0.01, 10, 3)]))
        assert ledger.tradeoff().advantage() == pytest.approx(own.advantage(), abs=1e-9)

    @pytest.mark.parametrize(("epsilon", "delta", "k"), [(0.5, 1e-6, 2), (1.0, 1e-3, 5), (0.1, 0.0, 4)])
    def test_a_group_of_an_epsilon_delta_release_is_at_least_the_exact_one(self, path, epsilon, delta, k):
        entry = dn.Ledger(path, unit="p").add((epsilon, delta), records_per_person=k)
        exact = delta * math.expm1(k * epsilon) / math.expm1(epsilon)
        assert entry.mechanism.epsilon >= k * epsilon
        assert entry.mechanism.delta >= exact * (1 - 1e-12)

    def test_persons_do_not_enter_a_ledger_of_records(self, path):
        with pytest.raises(LedgerError, match="persons"):
            dn.Ledger(path).add(dn.GaussianDP(0.1), unit="patient")

    def test_a_unit_that_contradicts_the_certificate_is_refused(self, tmp_path):
        fitted = dn.PrivateClassifier().fit(*table())
        with pytest.raises(LedgerError, match="unit must be"):
            dn.Ledger(tmp_path / "p", unit="patient").add(fitted, unit="patient")

    @pytest.mark.parametrize("unit", ["records", "Record", " record", "line of the file", "Rows", "recod"])
    def test_what_is_nearly_record_is_no_column_of_persons(self, path, unit):
        """It became a column of that name, silently."""
        with pytest.raises(LedgerError, match="write 'record'"):
            dn.Ledger(path, unit=unit)
        assert not path.exists()
        ledger = dn.Ledger(path, unit=" record_id ")  # is a column
        assert ledger.unit == "record_id"
        with pytest.raises(LedgerError, match="unit must be"):
            ledger.add(dn.GaussianDP(0.1), unit="Records")

    def test_the_way_out_is_one_for_each_release(self, path):
        """unit='patient' was suggested for a release that hides doctors, and then refused."""
        ledger, doctors = dn.Ledger(path, unit="patient"), SimpleNamespace(mechanism=dn.GaussianDP(0.1), unit="doctor")
        for release, unit, rule in (
            (doctors, None, "in a ledger of 'doctor'$"), (dn.GaussianDP(0.1), "doctor", "in a ledger of 'doctor'$"),
            (dn.GaussianDP(0.1), "record", "give records_per_person=k"),
            (dn.GaussianDP(0.1), None, "give unit='patient'"),
        ):  # fmt: skip
            with pytest.raises(LedgerError, match=rule):
                ledger.add(release, unit=unit)

    def test_replacing_is_another_adjacency(self, path):
        with pytest.raises(LedgerError, match="adding or removing"):
            dn.Ledger(path).add(dn.WithoutReplacement(1.0, 10, 100))

    def test_a_secret_half_is_listed_apart(self, path):
        ledger = dn.Ledger(path)
        ledger.add(dn.GaussianDP(0.1))
        half = dn.release(np.mean, np.arange(100.0), advantage=0.3)
        assert "uniform random subset" in ledger.add(half).apart
        assert ledger.tradeoff().advantage() == pytest.approx(dn.tradeoff(dn.GaussianDP(0.1)).advantage(), rel=1e-9)
        with pytest.raises(LedgerError):
            ledger.plan(half)


def table(n=400):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    return X, X.a > 0


class TestWhatFitsEnter:
    def test_a_fit_and_a_table_are_entered_before_noise_is_drawn(self, path):
        X, y = table()
        ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.2))
        fitted = dn.PrivateClassifier(advantage=0.1, ledger=ledger.named("model", "risk", "customers")).fit(X, y)
        entry = ledger.entries[0]
        assert (entry.name, entry.purpose, entry.source) == ("model", "risk", "customers")
        assert entry.mechanism == fitted.certificate_.mechanism
        assert fitted.certificate_.entry == (1, entry.head)
        assert entry.head in str(fitted.certificate_)
        made = dn.release_statistics(X, ["mean(a)"], advantage=0.1, ledger=ledger)
        assert made.certificate.entry == (2, ledger.head)
        assert entry.head != ledger.head

    def test_its_page_says_where_the_ledger_stood_at_its_entry(self, path):
        X, y = table()
        ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.4), reserve=dn.Laplace(9.0))
        whole = ledger.remaining()
        fitted = dn.PrivateClassifier(advantage=0.1, ledger=ledger).fit(X, y)
        left = math.sqrt(whole**2 - fitted.certificate_.mu**2)
        made = dn.release_statistics(X, ["mean(a)"], advantage=0.1, ledger=ledger)
        after = math.sqrt(whole**2 - fitted.certificate_.mu**2 - made.certificate.mu**2)
        for certificate, mu in ((fitted.certificate_, left), (made.certificate, after)):
            said = f"remaining: μ {shown(mu, 'number', 'lower')} of {shown(whole, 'number', 'lower')}"
            assert said in certificate.standing
            assert "still reserved: Laplace" in certificate.standing
            assert said in str(certificate)
            assert said in certificate.to_dict()["standing"]
        for release, mu in ((fitted, left), (made, after)):
            assert f"remaining: μ {shown(mu, 'number', 'lower')} of" in dn.assess(release).to_html()
        assert f"Entry 2 of a ledger, head of its chain {ledger.head}; ledger of records" in dn.assess(made).annex(
            "edpb"
        )
        assert ledger.remaining() == pytest.approx(after, rel=1e-9)

    def test_without_a_limit_it_says_what_all_come_to(self, path):
        X, y = table()
        ledger = dn.Ledger(path)
        ledger.add(dn.SubsampledGaussian(1.0, 0.01, 500))
        fitted = dn.PrivateClassifier(advantage=0.1, ledger=ledger).fit(X, y)
        said = shown(ledger.tradeoff().advantage(), "rate", "upper")
        ledger.add(dn.GaussianDP(3.0))
        assert f"together: advantage at even odds at most {said}; no limit" in fitted.certificate_.standing

    def test_what_does_not_fit_is_refused_before_any_query(self, path, monkeypatch):
        X, y = table()
        ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.01))
        monkeypatch.setattr("deniable.noise.queries.SumNoise.channel", lambda *_: pytest.fail("noise was drawn"))
        for fit in (dn.PrivateClassifier(ledger=ledger).fit, dn.PrivateRegressor(ledger=ledger).fit):
            with pytest.raises(LedgerError, match="do not make it"):
                fit(X, y.astype(float) if "Regressor" in str(fit) else y)
        with pytest.raises(LedgerError):
            dn.release_statistics(X, ["mean(a)"], advantage=0.1, ledger=ledger)
        assert ledger.entries == ()

    def test_an_entry_stays_where_the_fit_fails(self, path, monkeypatch):
        X, y = table()
        ledger = dn.Ledger(path)
        monkeypatch.setattr("deniable.noise.queries.SumNoise.channel", lambda *_: 1 / 0)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            dn.PrivateClassifier(ledger=ledger).fit(X, y)
        assert len(ledger.entries) == 1

    def test_persons_by_their_column(self, path):
        X, y = table()
        X["patient"] = np.arange(400) // 2
        ledger = dn.Ledger(path, unit="patient")
        dn.PrivateClassifier(group="patient", ledger=ledger).fit(X, y)
        dn.release_statistics(X, ["mean(a)"], advantage=0.1, group="patient", ledger=ledger)
        with pytest.raises(LedgerError):
            dn.PrivateClassifier(ledger=ledger).fit(X[["a", "b"]], y)
        assert len(ledger.entries) == 2

    def test_a_saved_model_does_not_say_where_the_ledger_lies(self, path):
        fitted = dn.PrivateClassifier(ledger=dn.Ledger(path)).fit(*table())
        content = pickle.dumps(fitted)
        assert b"people.ledger" not in content
        assert pickle.loads(content).certificate_.entry == fitted.certificate_.entry


class TestTheFile:
    def test_an_existing_file_keeps_what_it_was_made_with(self, path):
        dn.Ledger(path, unit="patient", limit=dn.Limit(advantage=0.2))
        again = dn.Ledger(path)
        assert (again.unit, again.limit) == ("patient", dn.Limit(advantage=0.2))
        for other in ({"unit": "record"}, {"limit": dn.Limit(advantage=0.3)}, {"reserve": dn.Laplace(1.0)}):
            with pytest.raises(LedgerError, match=r"for good|cannot be changed"):
                dn.Ledger(path, **other)

    @pytest.mark.parametrize(
        "reserve",
        [
            dn.MatrixMechanism(5.0, np.eye(3) + 0.5 * np.eye(3, k=-1), sample_rate=0.1) + dn.Laplace(50.0),
            dn.mechanisms.Tuned(dn.SubsampledGaussian(5.0, 0.01, 10), 2.0)
            + dn.mechanisms.FinitePair([0.5, 0.5], [0.4, 0.6]),
            dn.RenyiDP([2.0, math.inf], [0.01, 0.2]) + dn.PureDP(0.01),
        ],
    )
    def test_it_is_opened_again_with_what_it_was_made_with(self, path, reserve):
        limit = dn.Limit(advantage=0.9)
        dn.Ledger(path, limit=limit, reserve=reserve)
        again = dn.Ledger(path, limit=limit, reserve=reserve)
        for part in parts_of(reserve):
            again.add(part)
        with pytest.raises(LedgerError, match="reserve"):
            again.add(parts_of(reserve)[0])

    @pytest.mark.parametrize("content", [b"", b"no ledger at all", b"SQLite format 3\0" + bytes(100)])
    def test_a_file_that_is_no_ledger_is_refused_and_left_alone(self, path, content):
        path.write_bytes(content)
        with pytest.raises(LedgerError):
            dn.Ledger(path)
        assert path.read_bytes() == content

    def test_another_database_and_a_newer_format(self, path):
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE t (x)")
        with pytest.raises(LedgerError, match="no ledger"):
            dn.Ledger(path)
        path.unlink()
        dn.Ledger(path)
        with sqlite3.connect(path) as file:
            file.execute("PRAGMA user_version = 7")
        with pytest.raises(LedgerError, match="newer"):
            dn.Ledger(path)

    def test_a_ledger_that_vanished_is_not_made_anew(self, path):
        ledger = dn.Ledger(path)
        path.unlink()
        with pytest.raises(LedgerError, match="does not exist"):
            ledger.add(dn.GaussianDP(0.1))
        assert not path.exists()

    def test_no_data_and_no_digest_of_data_are_in_it(self, path):
        X, y = table()
        X.columns = ["secret_column", "b"]
        dn.PrivateClassifier(ledger=dn.Ledger(path)).fit(X, y)
        assert b"secret_column" not in path.read_bytes()


@contextmanager
def every_connection(pragma):
    """Give each connection of the block a pragma."""
    real = sqlite3.connect

    def connect(*args, **kwargs):
        file = real(*args, **kwargs)
        file.execute(f"PRAGMA {pragma}")
        return file

    with mock.patch("sqlite3.connect", connect):
        yield


@contextmanager
def held_by_another(path):
    with sqlite3.connect(path, isolation_level=None) as other, mock.patch("deniable.ledger.file._PATIENCE", 0.05):
        other.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def holding(path, content):
    """Put something else in the place of the file."""
    aside = path.rename(path.with_suffix(".aside"))
    if content is not None:
        path.write_bytes(content)
    yield
    path.unlink(missing_ok=True)
    aside.rename(path)


@contextmanager
def of_version(path, version):
    for number in (version, 1):
        with closing(sqlite3.connect(path)) as file:
            file.execute(f"PRAGMA user_version = {number}")
        if number == version:
            yield


BAD_DAYS = {
    "full disk": (lambda path: every_connection("max_page_count = 1"), "full.*release nothing"),
    "read-only": (lambda path: every_connection("query_only = ON"), "readonly.*release nothing"),
    "locked": (held_by_another, "locked.*release nothing"),
    "newer format": (lambda path: of_version(path, 7), "newer deniable"),
    "network folder": (
        lambda path: mock.patch(
            "deniable.ledger.file.Path.read_text", return_value=f"server:/ {path.parent} nfs4 rw 0 0"
        ),
        "network folder",
    ),
    "gone": (lambda path: holding(path, None), "does not exist"),
    "a text": (lambda path: holding(path, b"no ledger"), "release nothing"),
}


@pytest.mark.parametrize("day", BAD_DAYS)
def test_on_a_bad_day_nothing_is_entered_and_nothing_released(path, day, monkeypatch):
    """Each kind of release ends in one line before noise is drawn; the next day everything is as it was."""
    bad, rule = BAD_DAYS[day]
    X, y = table()
    ledger = dn.Ledger(path)
    ledger.add(dn.GaussianDP(0.1), name="x" * 3600)  # no page has room for another entry
    monkeypatch.setattr("deniable.noise.queries.SumNoise.channel", lambda *_: pytest.fail("noise was drawn"))
    with bad(path):
        for release in (
            lambda: ledger.add(dn.GaussianDP(0.1), name="y" * 600),
            lambda: dn.PrivateClassifier(ledger=ledger.named("y" * 600)).fit(X, y),
            lambda: dn.release_statistics(X, ["mean(a)"], advantage=0.1, ledger=ledger.named("y" * 600)),
            lambda: dn.PrivateSynthesizer(ledger=ledger.named("y" * 600)).fit(X),
        ):
            with pytest.raises(LedgerError, match=rule) as caught:
                release()
            assert "\n" not in str(caught.value)
    assert len(ledger.entries) == 1
    assert ledger.verify().holds


class TestVerify:
    @pytest.fixture
    def ledger(self, path):
        ledger = dn.Ledger(path)
        for i in range(4):
            ledger.add(dn.GaussianDP(0.1 + i / 100), name=f"n{i}")
        return ledger

    @pytest.mark.parametrize("change", [
        "UPDATE entries SET content = replace(content, '0.11', '0.01') WHERE number = 2",
        "DELETE FROM entries WHERE number = 2",
        "UPDATE entries SET head = 'aa' WHERE number = 3",
        "UPDATE about SET value = '\"patient\"' WHERE name = 'unit'",
    ])  # fmt: skip
    def test_what_was_changed_is_seen(self, ledger, path, change):
        assert ledger.verify().holds
        with sqlite3.connect(path) as file:
            file.execute(change)
        assert not ledger.verify().holds

    def test_a_tail_that_was_cut_shows_against_a_page_only(self, ledger, path):
        head, third = ledger.head, ledger.entries[2].head
        with sqlite3.connect(path) as file:
            file.execute("DELETE FROM entries WHERE number = 4")
        assert ledger.verify().holds
        assert ledger.verify(third[:12]).holds
        assert not ledger.verify(head).holds
        assert not ledger.verify("a").holds

    def test_a_clock_that_was_set_back_is_said(self, path, monkeypatch, capsys):
        ledger = dn.Ledger(path)
        ledger.add(dn.GaussianDP(0.1))

        class Early(dn.ledger.account.datetime):
            @classmethod
            def now(cls, zone):
                return cls(2001, 1, 1, tzinfo=zone)

        class Earlier(Early):
            @classmethod
            def now(cls, zone):
                return cls(2000, 1, 1, tzinfo=zone)

        monkeypatch.setattr("deniable.ledger.account.datetime", Early)
        with pytest.warns(UserWarning, match="the clock was set back: entry 1 is of 20"):
            ledger.add(dn.GaussianDP(0.1))
        from deniable.cli._app import run

        assert run(["ledger", "add", str(path), "gaussian,0.1"]) == 0
        assert "warning: the clock was set back: entry 2 is of 2001" not in capsys.readouterr().err
        monkeypatch.setattr("deniable.ledger.account.datetime", Earlier)
        assert run(["ledger", "add", str(path), "gaussian,0.1"]) == 0
        assert "warning: the clock was set back" in capsys.readouterr().err  # the command line was silent
        assert "clock" in ledger.verify().faults[0]


@pytest.mark.parametrize(("bad", "rule"), [
    ({"unit": ""}, "unit"), ({"limit": 0.1}, "Limit"), ({"reserve": dn.Laplace(1.0)}, "limit"),
    ({"limit": dn.Limit(advantage=0.1), "reserve": dn.Laplace(0.1)}, "reserve less"),
    ({"limit": dn.Limit(advantage=0.1), "reserve": dn.WithoutReplacement(1.0, 10, 100)}, "adding"),
    ({"limit": dn.Limit(advantage=1.0)}, "next to no noise"),
])  # fmt: skip
def test_bad_input_makes_no_file(path, bad, rule):
    with pytest.raises(dn.InputError, match=rule):
        dn.Ledger(path, **bad)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("release", [None, 3, "gaussian", object(), [1, 2, 3]])
def test_an_entry_without_a_mechanism_is_refused(path, release):
    ledger = dn.Ledger(path)
    with pytest.raises(LedgerError, match="needs a mechanism"):
        ledger.add(release)
    assert ledger.entries == ()


def test_exports_agree(path):
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.3))
    ledger.add(dn.GaussianDP(0.1), name="=cmd()", purpose="p", source="s")
    ledger.add(dn.release(np.mean, np.arange(60.0), advantage=0.3))
    said = json.loads(ledger.to_json())
    assert [one["number"] for one in said["entries"]] == [1, 2]
    assert said["head"] == ledger.head
    lines = ledger.to_csv().splitlines()
    assert len(lines) == 3
    assert "'=cmd()" in lines[1]
    page = dn.assess(ledger).to_html()
    assert ledger.head[:12] in page
    assert "another game" in page
    assert "\n".join(ledger.lines()).count("apart") == 1


def test_what_remains_is_rounded_down_and_what_is_spent_up(path, capsys):
    """To the nearest: μ 0.5067 was left of 0.50668."""
    from deniable.cli._app import run

    ledger = dn.Ledger(path, unit="patient", limit=dn.Limit(advantage=0.2))
    for mu in (0.1, 0.13, 0.17):
        entry = ledger.add(dn.GaussianDP(mu), unit="patient")
        said = float(ledger.lines()[-1].split()[2])
        assert 0 <= ledger.remaining() - said < 1e-4
        assert entry.advantage <= float(ledger.lines()[-2].split("≤")[1].split()[0]) / 100
        assert float(dn.assess(ledger).section("ledger").grids[0].rows[-1][6]) == said
    assert run(["ledger", "remaining", str(path), "--limit", "singling_out=0.5,n=1000,weight=0.0001"]) == 0
    printed = capsys.readouterr().out
    assert "one of 1,000 persons" in printed  # it said "records"
    assert 0 <= ledger.remaining() - float(printed.split("μ left: ")[1]) < 1e-6
    with pytest.raises(LedgerError, match="all would have") as refused:
        ledger.add(dn.GaussianDP(0.6), unit="patient")
    at, all_would = (float(word.split(" ")[-1]) for word in str(refused.value).split(": what")[0].split(", and"))
    assert at <= 0.50669
    assert all_would >= math.hypot(0.1, 0.13, 0.17, 0.6)


def test_the_page_asks_for_an_epsilon_that_there_is(path):
    """At δ = 1e-5, which is reserved for failures, it said "ε ≤ unbounded"."""
    page = dn.assess(dn.Ledger(path, limit=dn.Limit(advantage=0.2)))
    (found,) = [one for section in page.sections for one in section.numbers if "epsilon" in one.key]
    assert found.at["delta"] == 2e-5
    assert found.value < 3


@pytest.mark.parametrize("limit", [None, dn.Limit(advantage=0.5)])
def test_the_page_goes_release_by_release(path, limit):
    ledger = dn.Ledger(path, limit=limit, reserve=limit and dn.SubsampledGaussian(1.0, 0.01, 100))
    parts = [dn.GaussianDP(0.2), dn.SubsampledGaussian(1.0, 0.01, 100), dn.GaussianDP(0.1)]
    expected = []
    for k, part in enumerate(parts, 1):
        ledger.add(part, name=f"release {k}")
        expected.append(ledger.tradeoff().advantage() if limit is None else ledger.remaining())
    section = dn.assess(ledger).section("ledger")
    (picture,) = section.series
    (values,) = picture.lines.values()
    assert picture.x == [1, 2, 3]
    assert values == pytest.approx(expected, rel=1e-12)
    column = [row[6] for row in section.grids[0].rows]
    assert column == [shown(x, *(("number", "lower") if limit else ("rate", "upper"))) for x in expected]
    key = "together" if limit is None else "remaining_mu"
    assert [row[key] for row in ledger.to_dict()["entries"]] == values
    assert key in ledger.to_csv().splitlines()[0]
    assert ledger.lines()[-1].rstrip(".") in section.summary
    assert dn.assess(dn.Ledger(path.with_name("empty"))).section("ledger").series == ()


def test_gaussian_noise_that_was_reserved_is_of_the_budget(path):
    reserve = dn.GaussianDP(0.3) + dn.Laplace(5.0)
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.4), reserve=reserve)
    whole, alone = (
        ledger.remaining(),
        dn.Ledger(path.with_name("b"), limit=dn.Limit(advantage=0.4), reserve=dn.Laplace(5.0)),
    )
    assert whole == pytest.approx(alone.remaining(), rel=1e-4)
    with pytest.raises(LedgerError, match="too little"):
        ledger.add(dn.GaussianDP(whole * (1 + 1e-6)))
    ledger.add(dn.Composition([dn.GaussianDP(whole * 0.6), dn.GaussianDP(whole * 0.8), dn.Laplace(5.0)]))
    assert ledger.limit.is_met(dn.tradeoff(ledger.mechanism()))
    assert ledger.remaining() == pytest.approx(0, abs=1e-6)
    assert ledger.verify().holds


def test_whatever_adds_up_releases_of_a_text_file_says_that_its_lines_are_hidden(tmp_path):
    """Ledgers, sums and saved certificates said "record": a note of 61 lines is 61 of them."""
    (tmp_path / "people.csv").write_text("age\n" + "30\n" * 50)
    ledger = dn.Ledger(tmp_path / "people.ledger")
    found = dn.release_statistics(tmp_path / "people.csv", "count()", advantage=0.2, ledger=ledger)
    persons = dn.Ledger(tmp_path / "persons.ledger", unit="who")
    persons.add(found, records_per_person=2)
    found.certificate.to_json(tmp_path / "certificate.json")
    read = read_run(str(tmp_path / "certificate.json"))
    for one in (ledger, persons, dn.tradeoff([found, dn.GaussianDP(0.1)]), dn.assess([found]), dn.assess(ledger), read):
        held = one.tradeoff() if isinstance(one, dn.Ledger) else one
        assert A_LINE in getattr(held, "assumptions", held).notes
    assert A_LINE[1:] in str(found.certificate)


def test_sums_of_releases_by_tradeoff(tmp_path):
    X, y = table()
    fitted, made = dn.PrivateClassifier().fit(X, y), dn.release_statistics(X, ["mean(a)"], advantage=0.1)
    run = dn.SubsampledGaussian(1.0, 0.01, 100)
    whole = dn.tradeoff([fitted, made, run, (0.1, 1e-6)])
    parts = [fitted.certificate_.mechanism, made.certificate.mechanism, run, dn.ApproximateDP(0.1, 1e-6)]
    assert whole.advantage() == dn.tradeoff(dn.Composition(parts)).advantage()
    assert fitted.certificate_ + made.certificate == dn.Composition(parts[:2])
    X["patient"] = np.arange(400)
    with pytest.raises(dn.InputError, match="same unit"):
        dn.tradeoff([fitted, dn.release_statistics(X, ["mean(a)"], advantage=0.1, group="patient")])
    with pytest.raises(dn.InputError, match="another game"):
        dn.tradeoff([fitted, dn.release(np.mean, np.arange(60.0), advantage=0.3)])


def test_the_page_of_a_ledger_is_held_against_its_own_limit(path, tmp_path, capsys):
    from deniable.cli._app import run

    dn.Ledger(path, limit=dn.Limit(advantage=0.4)).add(dn.GaussianDP(0.1))
    assert run(["ledger", "export", str(path), str(tmp_path / "year.html")]) == 0
    page = (tmp_path / "year.html").read_text()
    assert "Meets the policy</strong>" in page
    assert "Usefulness lost" not in page  # which no ledger asks for
    assert "Every entry" in dn.assess(dn.Ledger(tmp_path / "empty.ledger")).to_html()


class TestNoReleaseLeavesWithoutItsEntry:
    @pytest.mark.parametrize("copied", [copy.deepcopy, clone, lambda model: pickle.loads(pickle.dumps(model))])
    def test_a_copy_of_a_model_enters_its_fit(self, path, copied):
        ledger = dn.Ledger(path)
        copied(dn.PrivateClassifier(ledger=ledger)).fit(*table())
        assert len(ledger.entries) == 1

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
    def test_a_copy_of_a_fitted_model_is_not_fitted_again_without_one(self, path, copied):
        again = copied(dn.PrivateClassifier(ledger=dn.Ledger(path)).fit(*table()))
        with pytest.raises(dn.InputError, match="set it anew"):
            again.fit(*table())
        assert len(dn.Ledger(path).entries) == 1
        assert copied(dn.PrivateClassifier().fit(*table())).fit(*table())

    @pytest.mark.filterwarnings("ignore::UserWarning")  # of how useful so few records are
    @pytest.mark.parametrize("kind", [dn.PrivateClassifier, dn.PrivateRegressor, dn.PrivateSynthesizer])
    def test_this_holds_for_whatever_takes_a_ledger(self, path, kind):
        X, y = table()
        given = (X,) if kind is dn.PrivateSynthesizer else (X, y.astype(int))
        again = copy.deepcopy(copy.deepcopy(kind(ledger=dn.Ledger(path))).fit(*given))
        assert len(dn.Ledger(path).entries) == 1
        with pytest.raises(dn.InputError, match="set it anew"):
            again.fit(*given)
        with pytest.raises(dn.InputError, match="must be a deniable"):
            again.set_params(ledger="people.ledger").fit(*given)
        assert len(dn.Ledger(path).entries) == 1
        assert b"people.ledger" not in pickle.dumps(kind(ledger=dn.Ledger(path)).fit(*given))

    @pytest.mark.slow
    def test_other_processes_enter_their_fits(self, path):
        ledger = dn.Ledger(path)
        cross_val_score(dn.PrivateClassifier(ledger=ledger), *table(), cv=3, n_jobs=2)
        assert len(ledger.entries) == 3

    @pytest.mark.parametrize("none", ["people.ledger", 3])
    def test_what_is_no_ledger_is_refused(self, none):
        X, y = table()
        with pytest.raises(dn.InputError, match="must be a deniable"):
            dn.PrivateClassifier(ledger=none).fit(X, y)
        with pytest.raises(dn.InputError, match="must be a deniable"):
            dn.release_statistics(X, ["mean(a)"], advantage=0.1, ledger=none)

    def test_another_ledger_in_its_place_is_noticed(self, path):
        ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.5))
        path.unlink()
        dn.Ledger(path, limit=dn.Limit(advantage=0.05))
        with pytest.raises(LedgerError, match="became another"):
            ledger.add(dn.GaussianDP(0.4))
        assert dn.Ledger(path).entries == ()


class TestPersonsOfWhichColumn:
    def test_a_certificate_of_persons_says_by_which_column(self, path):
        X, y = table(4000)
        by_doctor = dn.PrivateClassifier(group="doctor").fit(X.assign(doctor=np.arange(4000) // 2), y)
        ledger = dn.Ledger(path, unit="patient")
        for said in (None, "patient"):
            with pytest.raises(LedgerError, match="doctor"):
                ledger.add(by_doctor, unit=said)
        assert dn.Ledger(path.with_name("d"), unit="doctor").add(by_doctor).number == 1
        assert by_doctor.certificate_.to_dict()["person"] == "doctor"
        assert "one person ('doctor')" in dn.tradeoff([by_doctor, by_doctor]).assumptions.adjacency
        by_patient = dn.PrivateClassifier(group="patient").fit(X.assign(patient=np.arange(4000)), y)
        with pytest.raises(dn.InputError, match="same unit"):
            dn.tradeoff([by_doctor, by_patient])
        assert "one person ('doctor')" in dn.tradeoff(by_doctor.certificate_ + dn.GaussianDP(0.1)).assumptions.adjacency

    def test_persons_of_no_named_column_do_not_enter_even_where_the_column_is_person(self, path):
        told = SimpleNamespace(mechanism=dn.GaussianDP(0.1), unit="person")
        ledger = dn.Ledger(path, unit="person")
        for asked in (ledger.add, ledger.plan):
            with pytest.raises(LedgerError, match="nobody says by which column"):
                asked(told)
        assert ledger.entries == ()
        assert ledger.add(told, unit="person").number == 1
        with pytest.raises(LedgerError, match="ledger is of records"):
            dn.Ledger(path.with_name("r")).add(told)

    def test_a_column_by_its_place_is_not_the_column_of_the_ledger(self, path):
        X, y = table()
        with pytest.raises(LedgerError, match="the release hides 0"):
            dn.PrivateClassifier(group=0, ledger=dn.Ledger(path, unit="patient")).fit(
                np.column_stack([np.arange(400) // 2, X.a]), y
            )

    @pytest.mark.parametrize(("of", "said"), [("patient", "patient"), ("record", None), ("record", "record")])
    def test_records_per_person_is_not_overheard(self, path, of, said):
        with pytest.raises(LedgerError, match="records_per_person converts"):
            dn.Ledger(path, unit=of).add(dn.GaussianDP(0.1), unit=said, records_per_person=3)

    @pytest.mark.parametrize(("release", "k"), [((1000.0, 1e-5), 3), ((1000.0, 0.0), 2), (dn.PureDP(900.0), 9)])
    def test_losses_beyond_a_double_hide_nothing(self, path, release, k):
        entry = dn.Ledger(path, unit="p").add(release, records_per_person=k)
        assert dn.tradeoff(entry.mechanism).advantage() == pytest.approx(1)

    def test_thousands_of_records_are_refused(self, path):
        with pytest.raises(dn.InputError, match="at most 1,000"):
            dn.Ledger(path, unit="p").add(dn.GaussianDP(0.1), records_per_person=1001)


def test_what_adds_to_nothing_is_not_entered(path):
    ledger = dn.Ledger(path)
    with pytest.raises(dn.InputError, match="grouped"):
        ledger.add(dn.mechanisms.Grouped(dn.GaussianDP(0.1), 2))
    for name in ("\ud800", 5):
        with pytest.raises(LedgerError, match="name must be a text"):
            ledger.add(dn.GaussianDP(0.1), name=name)
    assert ledger.entries == ()


def test_the_promise_covers_the_rounding_of_its_sums(path):
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.2))
    for _ in range(10):
        ledger.add(dn.ApproximateDP(0.0, 1e-5 / 10))  # sums to more than 1e-5, by a unit in the last place
    assert ledger.tradeoff().advantage() >= dn.tradeoff(ledger.mechanism()).advantage()
    failures = [part.delta for part in parts_of(beside(0.1, dn.ApproximateDP(0.0, 1e-5))) if hasattr(part, "delta")]
    assert math.fsum(failures) > 1e-5 * (1 + 5e-12)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET content = 'x'", "UPDATE entries SET content = '[]'", "UPDATE entries SET content = '{}'",
        "DELETE FROM about WHERE name = 'unit'", "UPDATE about SET value = 'x' WHERE name = 'mu'",
        "UPDATE about SET value = '{\"advantage\": 3}' WHERE name = 'limit'", "DROP TABLE entries",
    ],
)  # fmt: skip
def test_a_file_changed_by_hand_is_an_error_in_words(path, change):
    dn.Ledger(path, limit=dn.Limit(advantage=0.2)).add(dn.GaussianDP(0.1))
    with sqlite3.connect(path) as file:
        file.execute(change)
    with pytest.raises(LedgerError, match="cannot be used"):
        dn.Ledger(path).verify()


def test_a_larger_allowance_than_the_limit_has_is_found(path):
    dn.Ledger(path, limit=dn.Limit(advantage=0.2))
    with sqlite3.connect(path) as file:
        file.execute("UPDATE about SET value = '9.0' WHERE name = 'mu'")
    assert "passes the limit" in dn.Ledger(path).verify().faults[-1]


@pytest.mark.parametrize("change", ["unit", "limit", "reserve", "mu", "salt"])
@pytest.mark.parametrize("entries", [0, 1])
def test_what_a_ledger_was_made_with_is_the_first_link_of_its_chain(path, change, entries):
    """An edit is seen in an empty ledger, too, and nothing is computed from a file that was edited."""
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.2))
    for _ in range(entries):
        ledger.add(dn.GaussianDP(0.1))
    edited = {"unit": '"p"', "limit": '{"advantage": 0.9}', "reserve": "null", "mu": "0.5", "salt": '"00"'}[change]
    with sqlite3.connect(path) as file:
        file.execute("UPDATE about SET value = ? WHERE name = ?", (edited, change))
    assert "made with" in dn.Ledger(path).verify().faults[0]
    for one in (ledger, dn.Ledger(path)):
        for ask in (
            one.tradeoff,
            one.remaining,
            one.lines,
            one.to_dict,
            lambda one=one: one.add((0.0, 1e-9), unit=one.unit),
        ):
            with pytest.raises(LedgerError, match="was changed"):
                ask()
    with sqlite3.connect(path) as file:  # with a first link to match
        file.execute("UPDATE about SET value = ? WHERE name = 'head'", (json.dumps(first_head(made_with(path))),))
    assert dn.Ledger(path).verify().holds == (entries == 0)
    assert not dn.Ledger(path).verify(ledger._born).holds  # against a page


def made_with(path):
    with closing(sqlite3.connect(path)) as file:
        return {name: json.loads(value) for name, value in file.execute("SELECT * FROM about ORDER BY name")}


def test_a_folder_is_called_one(tmp_path):
    with pytest.raises(LedgerError, match="is a folder"):
        dn.Ledger(tmp_path)


@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-9])
def test_the_usual_epsilon_delta_ledger_is_made_and_keeps_its_limit(tmp_path, delta):
    """What is reserved by default for failures is at most half of what the limit allows."""
    limit = dn.Limit(epsilon=1.0, delta=delta)
    ledger = dn.Ledger(tmp_path / "e.ledger", limit=limit)
    assert ledger.reserve == dn.ApproximateDP(0.0, delta / 2)
    assert ledger.verify().holds
    assert limit.is_met(ledger.tradeoff())
    assert dn.Ledger(tmp_path / "a.ledger", limit=dn.Limit(advantage=0.2)).reserve == dn.ApproximateDP(0.0, 1e-5)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET content = replace(content, '0.25', '0.01') WHERE number = 1",
        "DELETE FROM entries WHERE number = 1",
        "UPDATE about SET value = '9.0' WHERE name = 'mu'",
    ],
)
def test_a_broken_chain_takes_no_entry(tmp_path, change):
    path = tmp_path / "p.ledger"
    ledger = dn.Ledger(path, limit=dn.Limit(advantage=0.2))
    ledger.add(dn.GaussianDP(0.25))
    ledger.add(dn.GaussianDP(0.1))
    with sqlite3.connect(path) as file:
        file.execute(change)
    for one in (ledger, dn.Ledger(path)):
        with pytest.raises(LedgerError, match="was changed"):
            one.add(dn.GaussianDP(0.01))
