"""An argument of a wrong type is refused by name, or works: never a TypeError from somewhere inside."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression as FittedLogistic
from sklearn.naive_bayes import GaussianNB

import deniable as dn
from deniable.releases import Histogram, Mean

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.random(30), "b": RNG.random(30), "t": ["x", "y", "y"] * 10})
ROWS, LABELS = TABLE[["a", "b"]].to_numpy() / 2, (TABLE["t"] == "x").to_numpy().astype(int)
RUN = dn.SubsampledGaussian(2.0, 0.1, 3)
CURVE = dn.tradeoff(dn.GaussianDP(1.0))
WRONG = ["x", float("nan"), [1], {}, object(), b"x", (1, 2), np.array([[1.0, 2.0]]), 1j]


def made(kind, **base):
    return kind, list(inspect.signature(kind).parameters), base


def trained(kind, target):
    return lambda **given: kind(**given).fit(TABLE[["a", "b"]], target)


CALLS = {
    "ApproximateDP": made(dn.ApproximateDP, epsilon=1.0, delta=0.1),
    "Limit": made(dn.Limit, singling_out=0.1, n=10, weight=1e-3, group_size=2),
    "MatrixMechanism": made(dn.MatrixMechanism, noise_multiplier=1.0, strategy=np.eye(3)),
    "WithoutReplacement": made(dn.WithoutReplacement, noise_multiplier=1.0, batch=3, n_records=10),
    "Policy": made(dn.Policy, limits=[dn.Limit(advantage=0.1)]),
    "Mean": made(Mean),
    "Histogram": made(Histogram, edges=(0.0, 0.5, 1.0)),
    "tuned": made(dn.mechanisms.tuned, mechanism=dn.GaussianDP(1.0), trials=5),
    "tradeoff": (dn.tradeoff, ["mechanism", "engine", "adjacency", "patient"], {"mechanism": RUN}),
    "calibrate": (
        dn.calibrate,
        ["make_mechanism", "bracket", "integer", "advantage", "tolerance"],
        {"make_mechanism": dn.GaussianDP, "bracket": (0.1, 3.0), "advantage": 0.2},
    ),
    "assess": (dn.assess, ["source", "prior", "fpr", "delta", "policy", "meta"], {"source": dn.GaussianDP(1.0)}),
    "audit_scores": (
        dn.audit_scores,
        ["member_scores", "nonmember_scores", "confidence", "rng"],
        {"member_scores": RNG.normal(1, 1, 20), "nonmember_scores": RNG.normal(0, 1, 20)},
    ),
    "release_statistics": (
        dn.release_statistics,
        ["statistics", "advantage", "limit", "ranges", "n", "suppress_below", "confidence"],
        {"data": TABLE, "statistics": "mean(a) by t", "advantage": 0.4, "ranges": {"a": (0, 1), "t": ["x", "y"]}},
    ),
    "PrivateClassifier": (
        trained(dn.PrivateClassifier, TABLE["t"]),
        ["ranges", "categories", "limit", "model", "classes", "interactions"],
        {"limit": dn.Limit(epsilon=1.0, delta=1e-5), "ranges": {"a": (0, 1), "b": (0, 1)}},
    ),
    "MembershipPrivate": (
        trained(dn.MembershipPrivate, TABLE["t"]),
        ["estimator", "advantage", "bound", "confidence", "random_state", "n_jobs"],
        {"estimator": GaussianNB(), "advantage": 0.6, "bound": "centre", "n_resamples": 32},
    ),
    "privacy_profile": (
        dn.privacy_profile,
        ["X", "y", "regularization", "mechanism", "loss", "intercept", "sample_weight", "n_samples", "rng"],
        {"X": ROWS, "y": LABELS, "regularization": 0.1, "mechanism": dn.OutputPerturbation(epsilon=1.0)},
    ),
    "profile_estimator": (
        dn.profile_estimator,
        ["estimator", "X", "y", "mechanism", "sample_weight"],
        {
            "estimator": FittedLogistic(fit_intercept=False).fit(ROWS, LABELS),
            "X": ROWS,
            "y": LABELS,
            "mechanism": dn.OutputPerturbation(epsilon=1.0),
        },
    ),
    "check_promise": (
        dn.audit.check_promise,
        ["release", "mechanism", "score", "trials", "seconds", "confidence"],
        {"release": lambda inside: RNG.normal(), "mechanism": dn.GaussianDP(1.0), "trials": 20},
    ),
    "plan_subsampling": (
        dn.planning.plan_subsampling,
        ["pool_size", "precision", "fpr", "batch_size", "rates", "noise_multipliers"],
        {"pool_size": 1000, "precision": 0.7, "fpr": 0.01, "batch_size": 100, "rates": [0.3]},
    ),
    "canaries": (dn.audit.canaries, ["X", "y", "k", "kind", "rng"], {"X": ROWS, "y": LABELS, "k": 10}),
    "tpr": (CURVE.tpr, ["fpr", "side"], {"fpr": 0.1}),
    "delta": (CURVE.delta, ["epsilon", "side"], {"epsilon": 0.1}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_type_is_refused_in_words_or_works(name):
    call, parameters, base = CALLS[name]
    call(**base)
    for parameter in parameters:
        for value in WRONG:
            try:
                call(**{**base, parameter: value})
            except dn.InputError:
                pass
            except TypeError as error:
                raise AssertionError(f"{name}({parameter}={value!r})") from error
