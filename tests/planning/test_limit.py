"""``Limit``: checked once, equal where it says the same, measured as the curve says."""

import copy
import math
import pickle

import numpy as np
import pytest

import deniable as dn
from deniable.cli._options import read_limit
from deniable.planning.calibration import COMPARED_RATES, as_limit

KNOWN = ((0.9, 0.1), (0.5, 0.5))
MEASURED = {  # what a limit asks of a curve, and what a mechanism reaches that tells nothing
    dn.Limit(advantage=0.1): (lambda t: t.advantage(), 0.0),
    dn.Limit(advantage=0.1, prior=0.2): (lambda t: t.advantage(0.2), 0.0),
    dn.Limit(tpr=0.01, fpr=1e-3): (lambda t: t.tpr(1e-3), 1e-3),
    dn.Limit(accuracy=0.95, prior=0.1): (lambda t: t.accuracy(0.1), 0.9),
    dn.Limit(epsilon=1, delta=1e-6): (lambda t: t.delta(1.0), 0.0),
    dn.Limit(epsilon=1, delta=0): (lambda t: t.epsilon(0.0), 0.0),
    dn.Limit(reconstruction=0.2, baseline=0.1): (lambda t: t.tpr(0.1), 0.1),
    dn.Limit(singling_out=0.1, n=1000, weight=1e-6): (lambda t: t.singling_out(1000, 1e-6), 1e-3),
    dn.Limit(attribute=0.8, prior=KNOWN): (lambda t: t.attribute(KNOWN), 0.7),
    dn.Limit(advantage=0.3, group_size=3): (lambda t: t.group(3).advantage(), 0.0),
}


def test_each_kind_measures_what_it_says_and_nothing_told_is_the_floor():
    told, nothing = dn.tradeoff(dn.PureDP(0.3)), dn.tradeoff(dn.PureDP(0.0))
    wrong = []
    for limit, (leakage, floor) in MEASURED.items():
        if limit.leakage(told) != pytest.approx(leakage(told), rel=1e-12):
            wrong.append(f"{limit} measures {limit.leakage(told)}")
        if (limit.floor, limit.leakage(nothing)) != pytest.approx((floor, floor), rel=1e-9, abs=1e-12):
            wrong.append(f"{limit} has the floor {limit.floor}; nothing told is {limit.leakage(nothing)}")
    assert wrong == []


def test_a_limit_is_a_value_that_is_written_as_it_is_made():
    wrong = []
    for limit in MEASURED:
        said = ",".join(f"{name}={value!r}" for name, value in limit.arguments.items())
        copies = (
            pickle.loads(pickle.dumps(limit)),
            copy.deepcopy(limit),
            dn.Limit(**limit.arguments),
            eval(repr(limit), {"Limit": dn.Limit}),
            read_limit(said),
        )
        wrong += [f"{limit} became {other}" for other in copies if (other, hash(other)) != (limit, hash(limit))]
        if "{" in limit.words() + limit.name:
            wrong.append(limit.words())
    assert wrong == []
    assert dn.Limit(advantage=0.1) == dn.Limit(advantage=0.1, prior=0.5) != dn.Limit(advantage=0.1, prior=0.4)
    assert repr(dn.Limit(advantage=0.1)) == "Limit(advantage=0.1)"
    assert "at most 0.1234564 at a false positive rate of 0.01234564" in dn.Limit(tpr=0.1234564, fpr=0.01234564).words()
    assert dn.Limit(attribute=0.8, prior=np.array(KNOWN)) == dn.Limit(attribute=0.8, prior=KNOWN)
    assert read_limit("gaussian,0.25") == dn.GaussianDP(0.25)


def test_what_is_no_limit_is_refused_in_words():
    asked = {
        "give exactly one limit": [{}, {"prior": 0.5}, {"advantage": 0.1, "accuracy": 0.6}],
        "advantage must be": [{"advantage": bad} for bad in (0.0, 1.5, math.nan, "a", True, [0.1])],
        "tpr and fpr go together; fpr is missing": [{"tpr": 0.1}],
        "tpr and fpr go together; tpr is missing": [{"fpr": 0.1}],
        "tpr must be above 0.1": [{"tpr": 0.1, "fpr": 0.1}],
        "fpr must be at least 0": [{"tpr": 0.1, "fpr": -1}],
        "accuracy must be above 0.9": [{"accuracy": 0.9, "prior": 0.1}],
        "prior must be": [{"accuracy": 0.9, "prior": 1.0}, {"advantage": 0.1, "prior": [0.1, 0.9]}],
        "delta is missing": [{"epsilon": 1.0}],
        "epsilon is missing": [{"delta": 0.1}, {"delta": 0.0}],
        "epsilon must be": [{"epsilon": math.inf, "delta": 0.1}, {"epsilon": "a", "delta": 0}],
        "delta must be": [{"epsilon": 1, "delta": bad} for bad in (1.0, -0.1, math.nan, [0, 0])],
        "prior belongs to": [{"epsilon": 1.0, "delta": 1e-5, "prior": 0.1}],
        "blind guessing": [{"reconstruction": 0.01, "baseline": 0.02}],
        "singling_out must be above 0.001": [{"singling_out": 1e-4, "n": 1000, "weight": 1e-6}],
        "n is missing": [{"singling_out": 0.1, "weight": 1e-6}],
        "attribute must be above 0.7": [{"attribute": 0.7, "prior": KNOWN}],
        "distributions": [{"attribute": 0.7, "prior": 0.5}],
        "group_size must be": [{"advantage": 0.1, "group_size": bad} for bad in (0, 1.5, None)],
    }
    wrong = []
    for message, arguments in asked.items():
        for one in arguments:
            try:
                wrong.append(f"{one} gave {dn.Limit(**one)}")
            except dn.InputError as error:
                wrong += [] if message in str(error) else [f"{one} said {error}"]
    assert wrong == []


def test_a_command_line_says_no_other_limit():
    for text in (
        "tprr=0.1,fpr=0.01",
        "0.1",
        "tpr=0.1)+(1",
        "tpr=0.1,tpr=0.2,fpr=0.01",
        "tpr=__import__('os'),fpr=0",
        "",
    ):
        with pytest.raises(dn.InputError, match=r"--limit|exactly one limit"):
            read_limit(text)


def test_at_most_as_telling_as_a_mechanism():
    """Of one family the parameter itself; of another one every rate is kept, and one of them just."""
    mu = dn.calibrate(dn.GaussianDP, (1e-3, 10), limit=dn.GaussianDP(0.25))
    assert 0.25 * (1 - 3e-9) <= mu <= 0.25
    noise = dn.calibrate(
        lambda s: dn.SubsampledGaussian(s, 0.01, 100), (0.3, 50), limit=dn.SubsampledGaussian(2, 0.01, 100)
    )
    assert 2 <= noise <= 2 * (1 + 1e-6)
    rates = np.array(COMPARED_RATES)
    allowed = dn.tradeoff(dn.Laplace(3.0)).tpr(rates)
    for worse in (1, 1 - 1e-5):
        limit = as_limit(None, dn.Laplace(3.0))
        epsilon = dn.calibrate(dn.PureDP, (1e-3, 10), limit=dn.Laplace(3.0)) / worse
        found = dn.tradeoff(dn.PureDP(epsilon)).tpr(rates)
        assert bool((found <= allowed).all()) == (worse == 1) == limit.is_met(dn.tradeoff(dn.PureDP(epsilon)))
    assert not as_limit(None, dn.PureDP(0.0)).is_met(dn.tradeoff(dn.PureDP(0.01)))
