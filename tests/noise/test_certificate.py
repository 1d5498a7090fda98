"""One certificate of everything that queries released: fits and statistics say the same things in the same fields."""

import json
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.noise import Certificate
from deniable.testing import INSECURE, insecure_noise

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"age": RNG.integers(18, 90, 400), "town": RNG.choice(["Ulm", "Rome"], 400)})
ILL = RNG.random(400) < 0.4
MADE = {
    "fit": lambda: dn.PrivateClassifier(advantage=0.3).fit(FRAME, ILL).certificate_,
    "fit with discovered words": lambda: (
        dn.PrivateRegressor(advantage=0.3, categories="discover").fit(FRAME, FRAME.age).certificate_
    ),
    "statistics": lambda: dn.release_statistics(FRAME, "mean(age) by town", advantage=0.3).certificate,
}


@pytest.fixture(params=MADE.values(), ids=list(MADE), scope="module")
def found(request):
    return request.param()


def test_it_is_one_class_whose_fields_all_mean_something(found):
    assert isinstance(found, Certificate)
    names = {"target", "unit", "tradeoff", "replacement", "uses", "public", "mechanism"}
    of_others = {"entry", "standing", "person"}  # of a ledger, of the schema
    assert {field.name for field in fields(found)} == names | of_others
    assert all(getattr(found, name) is not None for name in names)


def test_its_curve_is_that_of_its_mechanism(found):
    fpr = np.array([1e-6, 1e-3, 0.1])
    np.testing.assert_allclose(found.tradeoff.tpr(fpr), dn.tradeoff(found.mechanism).tpr(fpr), rtol=1e-9)
    assert found.advantage == found.tradeoff.advantage() <= 0.3
    assert found.advantage < found.replacement.advantage() <= 2 * found.advantage
    assert sum(use.mu**2 for use in found.uses) <= found.mu**2
    assert sum(use.delta for use in found.uses) <= found.delta


def test_mechanisms_of_a_fit_and_of_statistics_add_up():
    fit, table = MADE["fit"](), MADE["statistics"]()
    both = dn.tradeoff(fit.mechanism + table.mechanism).advantage()
    assert max(fit.advantage, table.advantage) < both < fit.advantage + table.advantage


def test_machines_read_what_people_read(found, tmp_path):
    told = json.loads(found.to_json(tmp_path / "certificate.json"))
    assert json.loads((tmp_path / "certificate.json").read_text()) == told
    assert told["tradeoff"]["advantage"] == told["advantage"] == found.advantage
    assert told["replacement"]["advantage"] == found.replacement.advantage()
    assert [use["name"] for use in told["uses"]] == [use.name for use in found.uses]
    assert all(line in str(found) for line in (told["target"], *told["public"]))
    page = dn.assess(found)
    assert page.status == "bounded"
    assert page.numbers["release.advantage"].value == found.advantage


@pytest.mark.parametrize("make", MADE.values(), ids=list(MADE))
def test_with_noise_of_a_test_it_promises_nothing(make):
    with insecure_noise(np.random.default_rng(0)):
        made = make()
    assert (made.insecure, made.holds) == (True, False)
    assert str(made).startswith(INSECURE)
    assert all(INSECURE in curve.assumptions.notes for curve in (made.tradeoff, made.replacement))
    assert dn.assess(made).status == "inconclusive"


def test_uses_of_one_name_all_count():
    frame = FRAME.assign(**{"the target": FRAME.age})
    certificate = dn.PrivateRegressor(advantage=0.3).fit(frame, FRAME.age).certificate_
    assert len({use.name for use in certificate.uses}) < len(certificate.uses)
    assert sum(certificate.shares().values()) == pytest.approx(1)
    printed = [line.split("%")[0] for line in str(certificate).splitlines() if line.startswith("  ") and "% " in line]
    assert sum(map(float, printed)) == pytest.approx(100, abs=0.1)
