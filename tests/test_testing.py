"""Noise of a test marks everything that is made with it, for ever, and no pickle holds its generator."""

import json
import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.testing import INSECURE, insecure_noise

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(200, 2)), np.arange(200) % 2
FRAME = pd.DataFrame(X, columns=["a", "b"])
LIMITS = {"ranges": {"a": (-4, 4), "b": (-4, 4)}}

MAKERS = {
    "classifier": lambda: dn.PrivateClassifier(advantage=0.2, **LIMITS).fit(FRAME, Y),
    "regressor": lambda: dn.PrivateRegressor(advantage=0.2, **LIMITS).fit(FRAME, X[:, 0]),
    "release": lambda: dn.release(np.mean, X, advantage=0.4, bound="centre", n_resamples=64, rng=0),
    "statistics": lambda: dn.release_statistics(FRAME, "mean(a)", advantage=0.4, **LIMITS),
    "nothing private": lambda: dn.tradeoff(dn.GaussianDP(0.1)),
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def curves(made):
    if isinstance(made, dn.Tradeoff):
        return [made]
    if hasattr(made, "certificate"):
        return [made.certificate.tradeoff]
    return [made.tradeoff_, made.replacement_tradeoff_, *([] if made._record_tradeoffs is None else _own(made))]


def _own(made):
    return [made.record_tradeoffs_.tradeoff(3)]


def certificate(made):
    return getattr(made, "certificate", getattr(made, "certificate_", None))


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_what_is_made_with_noise_of_a_test_says_so_for_ever_and_decides_nothing(make):
    with insecure_noise(np.random.default_rng(1)):
        made = make()
    rules = dn.Policy([dn.Limit(advantage=0.9)], scope="this data set")
    for found in (made, pickle.loads(pickle.dumps(made))):
        assert all(INSECURE in curve.assumptions.notes for curve in curves(found))
        if certificate(found) is not None:
            assert str(certificate(found)).startswith(INSECURE)
        page = dn.assess(found, policy=rules)
        assert page.decision.outcome == "not decided"
        assert not page.decision.met
        assert INSECURE in page.alert
        assert "INSECURE" in page.to_text()
        assert "INSECURE" in page.to_html()
        assert json.loads(page.to_json())["decision"]["reason"] == INSECURE
        attack = dn.assess(dn.audit_scores(np.arange(50.0), np.arange(50.0)), policy=rules)
        assert (attack + page).decision.outcome == "not decided"


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_what_is_made_outside_does_not(make):
    with insecure_noise(np.random.default_rng(1)):
        make()
    made = make()
    assert not any(curve.assumptions.insecure for curve in curves(made))
    assert "INSECURE" not in str(certificate(made))
    page = dn.assess(made, policy=dn.Policy([dn.Limit(advantage=0.9)], scope="this data set"))
    assert page.decision.outcome != "not decided"
    assert "INSECURE" not in page.to_text() + page.to_html()


@pytest.mark.parametrize("make", [MAKERS[name] for name in ("classifier", "release", "statistics")])
def test_the_same_generator_repeats_and_no_pickle_holds_it(make):
    values = []
    for _ in range(2):
        with insecure_noise(np.random.default_rng(1)):
            made = make()
        content = pickle.dumps(made)
        assert b"PCG64" not in content
        assert b"numpy.random" not in content
        values.append(pickle.dumps(getattr(made, "model_", getattr(made, "value", getattr(made, "rows", None)))))
    assert values[0] == values[1]


def test_a_certificate_with_noise_of_a_test_holds_nothing():
    with insecure_noise(np.random.default_rng(1)):
        found = MAKERS["release"]().certificate
    assert found.insecure
    assert not found.holds
    assert found.to_dict()["insecure"]
    assert MAKERS["release"]().certificate.holds


def test_the_mark_is_of_one_thread_and_ends_with_the_block():
    seen = []

    def look():
        seen.append(dn.curves.Assumptions().insecure)

    def fail():
        with insecure_noise(np.random.default_rng(1)):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            with insecure_noise(np.random.default_rng(2)):
                look()
            look()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    look()
    assert seen == [False, True, True, False]


def test_an_estimator_prints_that_its_noise_was_of_a_test():
    model = dn.PrivateClassifier(advantage=0.2)
    plain = repr(model)
    assert "INSECURE" not in plain
    model.certificate_ = SimpleNamespace(insecure=True)
    assert repr(model) == str(model) == f"{INSECURE}\n{plain}"
