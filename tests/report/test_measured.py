"""Promise: headline and verdict of a measured attack agree with every row of their own table, on whatever scores."""

import warnings

import numpy as np
import pytest

import deniable as dn

RATES = (0.001, 0.01, 0.05, 0.1, 0.3)
PROMISES = (dn.PureDP(0.1), dn.GaussianDP(0.3), dn.ApproximateDP(0.5, 0.01), dn.GaussianDP(1.5))


def scores(rng):
    """Two samples of any size and law: shifted, stretched, rounded, with a few exposed or certain ones."""
    n, m = rng.integers(1, 400, 2) if rng.random() < 0.2 else (rng.integers(5, 400),) * 2
    shift, stretch = rng.choice([-0.4, -0.2, 0.0, 0.0, 0.2, 0.4, 2.0]), rng.choice([1.0, 1.0, 0.5, 2.0])
    inside, outside = shift + stretch * rng.normal(size=n), rng.normal(size=m)
    inside[rng.random(n) < rng.choice([0.0, 0.0, 0.05])] = rng.choice([9.0, np.inf])
    outside[rng.random(m) < rng.choice([0.0, 0.0, 0.05])] = -np.inf
    digits = rng.choice([9, 9, 1, 0])
    return np.round(inside, digits), np.round(outside, digits)


def rows(made):
    return {number.key.removeprefix("attack."): number for number in made.sections[0].numbers}


def excludes(number, value):
    return number.value is not None and not number.low <= value <= number.high


@pytest.mark.parametrize("seed", range(24))
def test_the_headline_agrees_with_every_row(seed):
    rng = np.random.default_rng([seed, 51])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = dn.audit_scores(*scores(rng), direction="larger")
    made = dn.assess(audit, fpr=RATES)
    found, headline = rows(made), made.headline
    differs = any(excludes(found[f"tpr@fpr={rate:g}"], rate) for rate in RATES) or excludes(found["auc"], 0.5)
    if "no leakage" in headline:
        assert not differs
        assert found["advantage"].low == found["epsilon"].value == audit.mu().low == 0
        assert not made.warnings
    if "Leaks at least" in headline:
        assert max(found["advantage"].low, found["epsilon"].value) > 0
    if differs or audit.shows:
        assert headline.startswith(("Leaks at least this", "Not decided"))
    for promise in PROMISES:
        curve, made = dn.tradeoff(promise), dn.assess(audit, bound=promise, fpr=RATES)
        found, area = rows(made), float(np.mean(curve.tpr(np.arange(1, 2001) / 2000)))
        above = [found["advantage"].low > curve.advantage(), found["epsilon"].value > curve.epsilon(0.0)]
        likely = [found["auc"].low > area, *(found[f"tpr@fpr={rate:g}"].low > curve.tpr(rate) for rate in RATES
                                             if found[f"tpr@fpr={rate:g}"].value is not None)]  # fmt: skip
        if made.status == "consistent":
            assert not any(above)
            assert not any(likely)
            assert not made.warnings
        assert (made.status == "violated") == audit.compare(promise).violated
        assert made.status == "violated" or not any(above)


def test_what_seems_reversed_is_named():
    """Between 5 and 0.1 %, reversed scores were "not decided" without a word about their direction."""
    rng = np.random.default_rng(3)
    with pytest.warns(dn.audit.ReversedScoresWarning):
        audit = dn.audit_scores(rng.normal(-0.2, 1, 300), rng.normal(0, 1, 300))
    made = dn.assess(audit)
    assert "members score lower than non-members" in made.headline
    assert made.warnings == audit.warnings
    assert audit.warnings[0].endswith("is the direction right?")
    assert audit.compare(dn.PureDP(1.0)).outcome == "inconclusive"
