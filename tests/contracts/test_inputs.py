"""Every public function that takes numbers: the same answer as for float64, whatever they are kept in, or InputError.

Guards against results that inherit an integer type, masks that are ignored, results that depend on the memory's order,
and arguments that are written to.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from spheres import worst_case_sphere

import deniable as dn
from deniable import bounds, unlearning
from deniable.audit import audit_one_run
from deniable.curves import EnvelopeTradeoff
from deniable.laws.gaussian import GaussianLaw
from deniable.laws.norm_laplace import NormLaplaceLaw
from deniable.noise import GaussianNoise, NormLaplaceNoise
from deniable.records import OutputPerturbation
from deniable.releases import Histogram, Mean
from deniable.testing import insecure_noise

RATES = [0.0, 0.125, 0.5, 1.0]
INNER = [0.125, 0.25, 0.5, 0.75]
WHOLE = [0.0, 1.0, 2.0, 3.0]

GAUSS, PURE = dn.tradeoff(dn.GaussianDP(1.5)), dn.tradeoff(dn.PureDP(1))
RUN = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 500))
ENVELOPE = EnvelopeTradeoff(np.array([0, 1]), np.array([0.5, 0.25]), np.array([0.5, 0.25]))
CURVES = {"gaussian": GAUSS, "pure": PURE, "run": RUN, "envelope": ENVELOPE, "inverse": RUN.inverse()}


def calls():
    """name → (function of one array, values). Element by element, result of the shape of the argument."""
    for name, t in CURVES.items():
        for side in ("upper", "lower"):
            yield f"{name}.tpr {side}", lambda a, t=t, s=side: t.tpr(a, side=s), RATES
            yield f"{name}.advantage {side}", lambda a, t=t, s=side: t.advantage(a, side=s), INNER
            yield f"{name}.accuracy {side}", lambda a, t=t, s=side: t.accuracy(a, side=s), INNER
            yield f"{name}.hockey_stick {side}", lambda a, t=t, s=side: t.hockey_stick(a, side=s), WHOLE
            yield f"{name}.delta {side}", lambda a, t=t, s=side: t.delta(a, side=s), WHOLE
        yield f"{name}.precision", lambda a, t=t: t.precision(a, prior=0.25), INNER
        if name != "inverse":  # no other code than that of the run, which takes seconds
            yield f"{name}.epsilon", lambda a, t=t: t.epsilon(a), INNER
    for name, t in {"gaussian": GAUSS, "run": RUN}.items():
        yield f"{name}.reconstruction", lambda a, t=t: t.reconstruction(a), RATES
        yield f"{name}.singling_out", lambda a, t=t: t.singling_out(1000, a), INNER
        yield f"{name}.singling_out n", lambda a, t=t: t.singling_out(a, 0.001), [1.0, 2.0, 5.0, 100.0]
    for name, law in {
        "gaussian": GaussianLaw(),
        "laplace 1": NormLaplaceLaw(1),
        "laplace 4": NormLaplaceLaw(4),
    }.items():
        for side in ("upper", "lower"):
            yield f"law {name}.epsilon {side}", lambda a, w=law, s=side: w.epsilon(a, 1e-3, s), WHOLE
            yield f"law {name}.advantage {side}", lambda a, w=law, s=side: w.advantage(a, s), WHOLE
            yield f"law {name}.tpr {side}", lambda a, w=law, s=side: w.tpr(2, a, s), RATES
            yield f"law {name}.hockey_stick {side}", lambda a, w=law, s=side: w.hockey_stick(2, a, s), WHOLE
        yield f"law {name}.mean_loss", lambda a, w=law: w.mean_loss(a), WHOLE
        yield f"law {name}.mean_size", lambda a, w=law: w.mean_size(a), WHOLE
    yield "bounds.advantage", bounds.advantage, WHOLE
    yield "bounds.advantage delta", lambda a: bounds.advantage(1, delta=a), RATES
    yield "bounds.advantage prior", lambda a: bounds.advantage(1, prior=a), INNER
    yield "bounds.accuracy", lambda a: bounds.accuracy(a, prior=0.25), WHOLE
    yield "bounds.positive_accuracy", lambda a: bounds.positive_accuracy(a, prior=0.25)[1], WHOLE
    yield "bounds.negative_accuracy", lambda a: bounds.negative_accuracy(a, prior=0.25)[1], WHOLE
    yield "bounds.positive_advantage", lambda a: bounds.positive_advantage(a, prior=0.25), WHOLE
    yield "bounds.subsampled_epsilon", lambda a: bounds.subsampled_epsilon(a, rate=0.5), WHOLE
    yield "bounds.epsilon_for_advantage", bounds.epsilon_for_advantage, INNER
    yield "bounds.epsilon_for_accuracy", bounds.epsilon_for_accuracy, [0.5, 0.625, 0.75, 0.875]
    yield "bounds.epsilon_for_mip", bounds.epsilon_for_mip, [0.125, 0.25, 0.375, 0.4375]
    yield "bounds.tpr_from_mip", lambda a: bounds.tpr_from_mip(0.1, fpr=a), RATES
    yield "bounds.mip_from_dp", bounds.mip_from_dp, WHOLE
    yield "bounds.mip_eta", lambda a: bounds.mip_eta(GAUSS, prior=a), INNER
    yield "bounds.scaled_total_variation", lambda a: bounds.scaled_total_variation(GAUSS, a), [0.5, 1.0, 2.0, 3.0]
    yield "bounds.subsampled_variation", lambda a: bounds.subsampled_variation(a, rate=0.5), RATES
    yield "bounds.tpr_from_scaled_variation", lambda a: bounds.tpr_from_scaled_variation(0.5, scale=2, fpr=a), RATES
    yield "bounds.jayaraman_advantage", lambda a: bounds.jayaraman_advantage(a, fpr=0.25), WHOLE
    yield "bounds.yeom", bounds.yeom, WHOLE
    yield "bounds.erlingsson", bounds.erlingsson, WHOLE
    yield "bounds.sablayrolles", bounds.sablayrolles, WHOLE
    yield "bounds.humphries", bounds.humphries, WHOLE
    yield "bounds.pinsker", bounds.pinsker, WHOLE
    yield "unlearning.deletion_capacity", lambda a: unlearning.deletion_capacity(a, 0.01, 0.5), [0.5, 1.0, 2.0, 3.0]


CALLS = {name: (function, np.array(values)) for name, function, values in calls()}


def readonly(values):
    made = values.copy()
    made.setflags(write=False)
    return made


KEPT_IN = {
    "list": lambda v: v.tolist(),
    "tuple": lambda v: tuple(v.tolist()),
    "float32": lambda v: v.astype(np.float32),
    "float16": lambda v: v.astype(np.float16),
    "longdouble": lambda v: v.astype(np.longdouble),
    "big-endian": lambda v: v.astype(">f8"),
    "object": lambda v: v.astype(object),
    "read-only": readonly,
    "strided": lambda v: np.repeat(v, 3)[::3],
    "reversed twice": lambda v: v[::-1].copy()[::-1],
    "series": lambda v: pd.Series(v, index=list("wxyz")),
    "nullable series": lambda v: pd.Series(v, dtype="Float64"),
    "arrow series": lambda v: pd.Series(v, dtype="double[pyarrow]"),
    "index": pd.Index,
    "masked, nothing hidden": lambda v: np.ma.masked_array(v, mask=[False] * 4),
    "column": lambda v: v[:, None],
    "Fortran": lambda v: np.asfortranarray(v.reshape(2, 2)),
}
WHOLE_IN = {
    "int64": lambda v: v.astype(np.int64),
    "int8": lambda v: v.astype(np.int8),
    "uint8": lambda v: v.astype(np.uint8),
    "integers": lambda v: [int(x) for x in v],
    "nullable integers": lambda v: pd.Series(v.astype(int), dtype="Int64"),
}


SAME = 1e-10  # thresholds of one call are searched together: bounds differ within the bracket


def differs(function: Any, given: Any, expected: Any) -> str:
    """How the answer for ``given`` differs from ``expected``, or nothing; an argument that is written to differs."""
    before = np.array(np.asarray(given, dtype=object))
    found = function(given)
    if np.shape(found) != np.shape(given) or np.asarray(found).dtype not in (np.float64, np.int64):
        return f"has shape {np.shape(found)} and type {np.asarray(found).dtype}"
    if not np.allclose(np.ravel(found), np.ravel(expected), rtol=SAME, atol=0):
        return f"is {found!r}"
    return "" if np.array_equal(np.asarray(given, dtype=object), before) else "was written to"


def test_the_answer_is_that_of_float64():
    wrong = {}
    for name, (function, values) in CALLS.items():
        expected = function(values.copy())
        ways = KEPT_IN | (WHOLE_IN if np.all(values == np.round(values)) else {})
        asked = {way: (keep(values), expected) for way, keep in ways.items()}
        for i, value in enumerate(values):
            for scalar in (float(value), np.float64(value), np.array(value), np.float32(value)):
                asked[i, type(scalar)] = scalar, np.ravel(expected)[i]
        asked |= {"nothing": (np.empty(0), []), "rows of nothing": (np.empty((0, 3)), [])}
        wrong |= {
            (name, way): said for way, (given, known) in asked.items() if (said := differs(function, given, known))
        }
    assert len(CALLS) > 100
    assert wrong == {}


BAD = {
    "NaN": [0.25, np.nan],
    "a masked cell": np.ma.masked_array([0.25, 0.5], mask=[False, True]),
    "pandas' NA": pd.Series([0.25, None], dtype="Float64"),
    "None": [0.25, None],
    "words": ["low", "high"],
    "complex": np.array([0.25 + 0j]),
    "sparse": sparse.csr_matrix([[0.25, 0.5]]),
    "ragged": [[0.25], [0.25, 0.5]],
    "dates": np.array(["2024-01-01"], dtype="M8[D]"),
    "a dictionary": {"a": 1},
}


def refusal(function: Any, bad: Any, says: str = "must be") -> str:
    """What happened instead of a refusal in words, or nothing."""
    try:
        return f"returned {function(bad)!r}"
    except dn.InputError as error:
        return "" if says in str(error) else f"said {error}"
    except Exception as error:
        return f"raised {error!r}"


def test_what_is_no_number_is_refused_in_words():
    asked = [(name, what) for name in CALLS for what in BAD]
    assert len(asked) > 1000
    wrong = [f"{name} of {what} {said}" for name, what in asked if (said := refusal(CALLS[name][0], BAD[what]))]
    assert wrong == []


# -- tables of numbers ------------------------------------------------------------------------------------------------
RNG = np.random.default_rng(0)
N = 24
X = np.round(RNG.normal(size=(N, 2)) * 8) / 64  # exact in float32; rows of norm below 1
X /= 2 ** np.ceil(np.log2(np.abs(X).max() * 2))
Y = np.where(np.arange(N) % 2, 1.0, -1.0)


def profile(X, y, **more):
    p = dn.privacy_profile(X, y, regularization=0.1, mechanism=OutputPerturbation(scale=0.5), rng=0, **more)
    return np.concatenate([p.advantage(), p.distance, p.privacy_loss()])


def released(algorithm, data, **more):
    with insecure_noise(np.random.default_rng(1)):
        r = dn.release(algorithm, data, advantage=0.4, rng=0, n_resamples=64, **more)
    return np.concatenate([np.ravel(r.value), np.ravel(r.noise_scale)])


def interval(members, others):
    found = dn.audit_scores(members, others, rng=0)
    return np.array([found.advantage().low, found.advantage().high, found.tpr(0.25).low, found.epsilon().low])


@dataclass(frozen=True)
class TableCall:
    function: Any
    values: np.ndarray


TABLES = {
    "privacy_profile X": TableCall(lambda a: profile(a, Y), X),
    "privacy_profile y": TableCall(lambda a: profile(X, a), Y),
    "privacy_profile weights": TableCall(lambda a: profile(X, Y, sample_weight=a), np.ones(N) + np.arange(N) % 2),
    "worst_case_sphere X": TableCall(lambda a: worst_case_sphere(a, Y, regularization=0.1).radius, X),
    "release Mean": TableCall(lambda a: released(Mean(), a, bound="swap"), X),
    "release Histogram": TableCall(lambda a: released(Histogram((-1, 0, 1)), a, bound="swap"), X[:, 0]),
    "audit_scores members": TableCall(lambda a: interval(a, Y[:20] + 0.25), np.arange(20) / 8),
    "audit_scores others": TableCall(lambda a: interval(np.arange(20) / 8 + 1, a), np.arange(20) / 8),
    "audit_one_run scores": TableCall(lambda a: audit_one_run(a, Y > 0).epsilon(0.0).low, np.arange(N) / 4),
    "individual_tradeoffs": TableCall(
        lambda a: dn.accounting.individual_tradeoffs(a, 1.0, dn.SubsampledGaussian(1.0, 0.5, 4)).advantage(),
        np.abs(np.arange(12).reshape(3, 4)) / 8,
    ),
    "GaussianNoise.distance": TableCall(lambda a: GaussianNoise(1.0, np.ones(2)).distance(a), X),
    "NormLaplaceNoise.log_density": TableCall(lambda a: NormLaplaceNoise(1.0, np.ones(2)).log_density(a), X),
    "unlearning.guarantee": TableCall(lambda a: unlearning.guarantee(1, a), np.full(5, 0.125)),
    "EnvelopeTradeoff": TableCall(
        lambda a: EnvelopeTradeoff(a, np.array([0.5, 0.25]), np.array([0.5, 0.25])).tpr([0.125, 0.5]),
        np.array([0.0, 1.0]),
    ),
}
TABLE_KEPT_IN = {
    "float32": lambda v: v.astype(np.float32),
    "read-only": readonly,
    "Fortran": np.asfortranarray,
    "strided": lambda v: np.repeat(v, 2, axis=0)[::2],
    "big-endian": lambda v: v.astype(">f8"),
    "pandas": lambda v: pd.DataFrame(v) if v.ndim == 2 else pd.Series(v),
    "pandas with an odd index": lambda v: (pd.DataFrame if v.ndim == 2 else pd.Series)(
        v, index=np.arange(len(v))[::-1]
    ),
    "masked, nothing hidden": lambda v: np.ma.masked_array(v, mask=np.zeros(v.shape, dtype=bool)),
}


def test_tables_of_numbers():
    wrong = {}
    for name, call in TABLES.items():
        expected = call.function(call.values.copy())
        whole = {"int64": lambda v: v.astype(np.int64)} if np.all(call.values == np.round(call.values)) else {}
        for way, keep in (TABLE_KEPT_IN | whole).items():
            given = keep(call.values)
            before = np.array(np.asarray(given))
            found = np.asarray(call.function(given))
            if not np.allclose(found, expected, rtol=1e-9, atol=1e-15) or not np.array_equal(np.asarray(given), before):
                wrong[name, way] = found
    assert wrong == {}


TABLE_BAD = {
    "NaN": lambda v: np.where(np.arange(v.size).reshape(v.shape) == 1, np.nan, v),
    "a masked cell": lambda v: np.ma.masked_array(v, mask=np.arange(v.size).reshape(v.shape) == 1),
    "infinite": lambda v: np.where(np.arange(v.size).reshape(v.shape) == 1, np.inf, v),
    "empty": lambda v: v[:0],
    "complex": lambda v: v + 0j,
    "words": lambda v: np.full(v.shape, "word"),
    "one axis more": lambda v: v[None, None],
    "sparse": lambda v: sparse.csr_matrix(np.atleast_2d(v)),
}
# where a NaN, an infinity or nothing at all has a meaning of its own; labels may be words
FINE = {
    ("individual_tradeoffs", "NaN"), ("individual_tradeoffs", "infinite"),
    ("individual_tradeoffs", "a masked cell"),
    ("privacy_profile y", "words"),
    ("unlearning.guarantee", "empty"), ("unlearning.guarantee", "one axis more"),
    ("audit_scores members", "infinite"), ("audit_scores others", "infinite"), ("audit_one_run scores", "infinite"),
    ("GaussianNoise.distance", "empty"),
    ("NormLaplaceNoise.log_density", "empty"),
    ("GaussianNoise.distance", "one axis more"),
    ("NormLaplaceNoise.log_density", "one axis more"),
}  # fmt: skip


def test_bad_tables_are_refused_in_words():
    asked = [(name, what) for name in TABLES for what in TABLE_BAD if (name, what) not in FINE]
    assert len(asked) > 90
    wrong = [
        f"{name} of {what} {said}"
        for name, what in asked
        if (said := refusal(TABLES[name].function, TABLE_BAD[what](TABLES[name].values), ""))
    ]
    assert wrong == []


# -- what ran ---------------------------------------------------------------------------------------------------------
RAN = {
    dn.mechanisms.Laplace: {"scale": 1.0, "sensitivity": 1.0, "steps": 2, "sample_rate": 0.5},
    dn.mechanisms.DiscreteLaplace: {"scale": 1.0, "sensitivity": 1, "steps": 2, "sample_rate": 0.5},
    dn.mechanisms.DiscreteGaussian: {"sigma": 1.0, "sensitivity": 1, "steps": 2, "sample_rate": 0.5},
    dn.mechanisms.RandomizedResponse: {"epsilon": 1.0, "categories": 3, "steps": 2},
    dn.mechanisms.BoundedRange: {"epsilon": 1.0, "steps": 2},
    dn.mechanisms.TruncatedPoisson: {
        "noise_multiplier": 1.0, "sample_rate": 0.5, "steps": 2, "max_batch": 5, "n_records": 8,
    },
    dn.mechanisms.ShuffledBatches: {"noise_multiplier": 1.0, "batches": 2, "epochs": 2},
    dn.mechanisms.RandomAllocation: {"noise_multiplier": 1.0, "batches": 2, "epochs": 2, "batches_per_record": 1},
    dn.mechanisms.NoisyGradientDescent: {
        "noise_multiplier": 1.0, "steps": 2, "strong_convexity": 0.5, "smoothness": 1.0, "step_size": 0.5,
    },
    dn.mechanisms.ZeroConcentratedDP: {"rho": 0.5, "xi": 0.25},
    dn.SubsampledGaussian: {"noise_multiplier": 1.0, "sample_rate": 0.5, "steps": 2, "records_per_person": 2},
    dn.accounting.GaussianFilter: {"mu": 1.0},
}  # fmt: skip
NO_NUMBER = [np.nan, -1.0, -np.inf, np.inf, "1", None, True, 1j, [1.0], np.array([1.0]), pd.NA, pd.Series([1.0])]


def test_parameters_of_what_ran():
    wrong = []
    for kind, name in [(kind, name) for kind, given in RAN.items() for name in given]:
        given, value = RAN[kind], RAN[kind][name]
        for bad in NO_NUMBER:
            said = refusal(lambda bad, k=kind, g=given, n=name: k(**g | {n: bad}), bad)
            wrong += [f"{kind.__name__}({name}={bad!r}) {said}"] if said else []
        if kind is not dn.accounting.GaussianFilter:
            for kept in (np.float32(value), np.float64(value)):
                made = kind(**given | {name: kept})
                if made != kind(**given) or type(getattr(made, name)) is not type(value):
                    wrong.append(f"{kind.__name__}({name}={kept!r}) is {made!r}")
    assert wrong == []


VECTORS = {
    "FinitePair p": lambda a: dn.mechanisms.FinitePair(a, [0.5, 0.5]),
    "FinitePair q": lambda a: dn.mechanisms.FinitePair([0.5, 0.5], a),
    "RenyiDP epsilons": lambda a: dn.mechanisms.RenyiDP([2.0, 4.0], a),
}


def test_vectors_of_what_ran():
    values = np.array([0.25, 0.75])
    for name, make in VECTORS.items():
        for keep in (np.asarray, list, tuple, pd.Series, readonly, np.float32):
            assert make(keep(values)) == make(values), name
        for bad in ([np.nan, 1.0], [-0.5, 1.5], ["a", "b"], [0.25, None], [], [[0.25, 0.75]], [1.0], None, 1j):
            assert refusal(make, bad, "") == "", (name, bad)
