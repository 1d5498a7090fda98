"""What is tracked: time from scratch, and width of the bracket where there is one.

Run by ``make bench``. Times are compared as ratios to :func:`test_yardstick`, which is measured in the same run, so
that a slower machine is no loss; see ``compare.py``.
"""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import deniable as dn

RUNS = {
    "reference": dn.SubsampledGaussian(1.0, 0.01, 1000),
    "long": dn.SubsampledGaussian(0.8, 0.001, 100_000),
    "much noise": dn.SubsampledGaussian(20.0, 0.1, 10_000),
    "rare": dn.SubsampledGaussian(1.0, 1e-6, 1_000_000),
    "two phases": dn.SubsampledGaussian(1.1, 0.004, 2500) + dn.SubsampledGaussian(0.9, 0.004, 1000),
    "with pure parts": dn.SubsampledGaussian(1.0, 0.01, 1000) + dn.PureDP(0.1),
}
QUESTIONS = {
    "advantage": lambda t, side: t.advantage(side=side),
    "tpr at 1e-6": lambda t, side: t.tpr(1e-6, side=side),
    "delta at 1": lambda t, side: t.delta(1.0, side=side),
}


def test_yardstick(benchmark):
    """Fixed work that depends on NumPy alone: special functions, a sort and a small matrix product."""
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=200_000), rng.normal(size=(200, 200))

    def work():
        return np.sort(np.exp(-np.abs(x))).sum() + np.log1p(np.abs(a @ a @ a)).sum()

    benchmark.pedantic(work, rounds=20, warmup_rounds=3)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("run", RUNS)
def test_accounting(benchmark, run, question):
    ask = QUESTIONS[question]
    rounds = 50 if question == "advantage" else 5  # some take less than a millisecond
    benchmark.pedantic(lambda: ask(dn.tradeoff(RUNS[run]), "upper"), rounds=rounds, warmup_rounds=3)
    curve = dn.tradeoff(RUNS[run])
    low, high = ask(curve, "lower"), ask(curve, "upper")
    unit = (
        1.0 if question.startswith("delta") else high
    )  # δ matters in absolute terms, and is next to nothing where steps are rare
    benchmark.extra_info["width"] = float((high - low) / unit)


def test_training(benchmark):
    X, y = load_breast_cancer(return_X_y=True)
    benchmark.pedantic(lambda: dn.PrivateClassifier(advantage=0.1).fit(X, y), rounds=3, warmup_rounds=1)


def test_profile(benchmark):
    X, y = load_breast_cancer(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1).max()
    benchmark.pedantic(
        lambda: dn.privacy_profile(X, y, regularization=1e-2, rng=0).advantage(), rounds=3, warmup_rounds=1
    )


def test_release(benchmark):
    from deniable.releases import Mean

    rows = np.random.default_rng(0).normal(size=(20_000, 5))
    benchmark.pedantic(lambda: dn.release(Mean(), rows, advantage=0.2, bound="swap"), rounds=3, warmup_rounds=1)


def test_audit(benchmark):
    rng = np.random.default_rng(0)
    members, others = rng.normal(1, 1, 5_000), rng.normal(0, 1, 5_000)

    def work():
        audit = dn.audit_scores(members, others)
        interval = audit.advantage()
        return interval.high - interval.low

    benchmark.extra_info["width"] = float(benchmark.pedantic(work, rounds=3, warmup_rounds=1))
