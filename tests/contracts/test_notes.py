"""What goes with a number goes with all that is made of it: notes, whom it hides, and the mark of a test's noise."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import HuberRegressor

import deniable as dn
from deniable import curves
from deniable.cli._app import run
from deniable.integrations import DPEBM
from deniable.mechanisms import from_plain, to_plain
from deniable.noise import SHARED
from deniable.testing import INSECURE, insecure_noise

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(200, 2)), columns=["a", "b"])
RANGES = {"a": (-4, 4), "b": (-4, 4)}
SAID = "public: the number of records"
GAUSS = dn.GaussianDP(0.1)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def made():
    """One of everything that is made with noise, all of it with a test's."""
    X, y = FRAME, (FRAME.a > 0).to_numpy()
    with insecure_noise(np.random.default_rng(1)):
        half = dn.MembershipPrivate(HuberRegressor(), advantage=0.4, n_resamples=64, random_state=0)
        return {
            "classifier": dn.PrivateClassifier(advantage=0.2, ranges=RANGES).fit(X, y),
            "regressor": dn.PrivateRegressor(advantage=0.2, ranges=RANGES).fit(X, X.a),
            "synthesizer": dn.PrivateSynthesizer(advantage=0.4).fit(X),
            "statistics": dn.release_statistics(X, "mean(a)", advantage=0.4, ranges=RANGES),
            "release": dn.release(np.mean, X.a.to_numpy(), advantage=0.4, bound="centre", n_resamples=64, rng=0),
            "half": half.fit(X[["a"]].to_numpy(), X.b.to_numpy()),
        }


def forms(thing):
    """Every text that it is shown as."""
    yield thing._repr_mimebundle_()["text/html"] if hasattr(thing, "_repr_mimebundle_") else str(thing)
    if isinstance(thing, dn.Tradeoff):
        yield repr(thing)
    for name in ("_repr_html_", "to_csv", "to_json"):
        if hasattr(thing, name) and not isinstance(thing, dn.Tradeoff):
            yield getattr(thing, name)()


@pytest.mark.parametrize("name", ["classifier", "regressor", "synthesizer", "statistics", "release", "half"])
def test_every_form_of_what_a_test_made_says_so(made, name):
    one = made[name]
    for found in (one, pickle.loads(pickle.dumps(one))):
        certificate = getattr(found, "certificate_", getattr(found, "certificate", None))
        shown = [found, certificate, certificate.tradeoff]
        if name not in ("release", "half"):  # a secret half is about no groups
            shown += [certificate.replacement, certificate.tradeoff.group(3)]
        for thing in shown:
            assert all("INSECURE" in text for text in forms(thing)), type(thing)
    drawn = dn.assess(one.certificate_ if name == "half" else one)
    kinds = ("dpia", "edpb", "cnil", "ico", "nist-800-226", "sacro", "model-card", "dp-registry")
    both = dn.compare(drawn, drawn)
    for text in (
        *forms(drawn),
        *forms(both),
        drawn.to_html(),
        drawn.to_text(),
        drawn.to_junit(),
        drawn.to_sarif(),
        *map(drawn.annex, kinds),
    ):
        assert "INSECURE" in text
    assert "INSECURE" in both.plot().get_title()


@pytest.mark.parametrize("name", ["classifier", "regressor", "synthesizer", "statistics"])
def test_the_mark_goes_with_every_sum(made, name, tmp_path, capsys):
    one = made[name]
    certificate = getattr(one, "certificate_", getattr(one, "certificate", None))
    file = tmp_path / "certificate.json"
    certificate.to_json(file)
    sums = [one, [one], [one, GAUSS], [GAUSS, one], certificate + GAUSS, certificate.mechanism + GAUSS, [certificate]]
    sums += [
        from_plain(json.loads(json.dumps(to_plain(certificate.mechanism)))),
        dn.mechanisms.Grouped(certificate.mechanism, 2),
    ]
    sums += [dn.mechanisms.tuned(certificate.mechanism, trials=3)] if not certificate.delta else []
    for held in sums:
        assert dn.tradeoff(held).insecure, held
        assert dn.tradeoff(held).assumptions.notes[0] == INSECURE
    ledger = dn.Ledger(tmp_path / "people.ledger")
    ledger.add(one, name="fit")
    book = dn.Ledger(ledger.path)
    assert book.tradeoff().insecure
    for text in (
        "\n".join(book.lines()),
        book.to_json(),
        book.to_csv(),
        dn.assess(book).to_html(),
        str(book.plan(GAUSS)),
    ):
        assert "INSECURE" in text
    with_limit = dn.Ledger(tmp_path / "limited.ledger", limit=dn.Limit(advantage=0.9))
    with_limit.add(one)
    assert with_limit.tradeoff().insecure
    for words in (
        ["bound", str(file)],
        ["bound", str(file), "--json"],
        ["bound", "--explain", f"{file} + gaussian,0.1"],
    ):
        assert run(words) == 0
        assert "INSECURE" in capsys.readouterr().out


def test_every_curve_that_is_made_of_a_marked_one_is_marked():
    with insecure_noise(np.random.default_rng(1)):
        one = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 10))
    plain = dn.tradeoff(dn.PureDP(0.5))
    of_it = {
        "group": one.group(3), "inverse": one.inverse(), "twice": one.inverse().inverse(), "sketch": one.sketch(),
        "replaced": dn.risks.replaced(one), "smallest": curves.SmallestTradeoff((plain, one)),
        "bracket": curves.BracketTradeoff(plain, one), "failure": curves.FailureTradeoff(one, 0.1),
        "chain": curves.ChainTradeoff(((plain, "add"), (one, "remove"))), "pickled": pickle.loads(pickle.dumps(one)),
        "changed": curves.with_assumptions(one, access="the model"), "noted": curves.with_note(one, "more"),
    }  # fmt: skip
    for name, found in of_it.items():
        assert found.insecure, name
        assert all(INSECURE in text for text in forms(found)), name
    assert INSECURE in str(one.explain())
    assert not plain.insecure
    verdict = dn.audit_scores(RNG.normal(size=100), RNG.normal(size=100)).compare(one)
    assert "INSECURE" in str(verdict)
    assert "INSECURE" in str(dn.SequentialAudit(one))
    assert "INSECURE" in dn.SequentialAudit(one).plot().get_title()
    assert "INSECURE" in one.plot().get_title()


def told(**more):
    return SimpleNamespace(**({"mechanism": GAUSS.with_notes([SAID])} | more))


@pytest.mark.parametrize("unit", ["record", "patient"])
def test_notes_and_unit_go_with_whatever_holds_them(unit, tmp_path):
    one = told(unit=unit)
    for held in (
        one,
        [one],
        [one, dn.PureDP(0.1)],
        [told(unit=unit), one],
        dn.Composition([dn.PureDP(0.1), one.mechanism]),
    ):
        curve = dn.tradeoff(held)
        assert curve.assumptions.notes[0] == SAID
        assert dn.tradeoff(held, adjacency="replace").assumptions.notes[0] == SAID
        if not isinstance(held, dn.Mechanism):
            assert ("'patient'" in curve.assumptions.adjacency) == (unit == "patient")
    book = dn.Ledger(tmp_path / "people.ledger", unit=unit)
    book.add(one)
    assert SAID in dn.Ledger(book.path).tradeoff().assumptions.notes
    assert SAID in dn.assess(book).assumptions.notes
    with pytest.raises(dn.InputError, match="do not add up"):
        dn.tradeoff([one, told(unit="doctor")])


def test_records_of_a_person_keep_the_notes(tmp_path):
    book = dn.Ledger(tmp_path / "people.ledger", unit="patient")
    book.add(told(unit="record"), records_per_person=2)
    assert SAID in dn.Ledger(book.path).tradeoff().assumptions.notes


def test_what_must_be_public_of_an_ebm_goes_with_it(tmp_path):
    machine = DPEBM(0.3, 0.5, 1.0, 1e-5, ("count", "fit"))
    notes = machine.tradeoff().assumptions.notes
    assert [note[:6] for note in notes] == ["public"] * 2
    assert machine.replacing().assumptions.notes == notes
    for held in (machine, [machine, GAUSS], machine + GAUSS, from_plain(to_plain(machine)), told(mechanism=machine)):
        assert set(notes) <= set(dn.tradeoff(held).assumptions.notes)
        assert dn.tradeoff(held).advantage() >= dn.tradeoff(dn.GaussianDP(0.3)).advantage()
    assert set(notes) <= set(dn.assess(machine).assumptions.notes)
    book = dn.Ledger(tmp_path / "people.ledger")
    book.add(machine)
    assert set(notes) <= set(dn.Ledger(book.path).tradeoff().assumptions.notes)


def test_what_is_shared_by_persons_stands_in_every_form():
    table = FRAME.assign(who=np.arange(200) // 2)
    made = dn.release_statistics(table, "mean(a)", advantage=0.4, ranges=RANGES, group="who")
    for text in (str(made), made.to_csv(), made.to_json(), str(made.certificate), dn.assess(made).to_text()):
        assert SHARED[1:40] in " ".join(text.split())
    assert SHARED in dn.tradeoff([made, GAUSS]).assumptions.notes
    assert "assumes" not in dn.release_statistics(FRAME, "mean(a)", advantage=0.4, ranges=RANGES).to_csv()


def test_a_file_of_a_mechanism_with_other_notes_than_texts_is_refused():
    for wrong in ({"notes": "public"}, {"notes": [1]}, {"unit": 3}):
        with pytest.raises(dn.InputError, match="texts"):
            from_plain(to_plain(GAUSS) | wrong)
