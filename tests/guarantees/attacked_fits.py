"""The strongest attack on a private fit, played: both whole worlds are followed through all that the fit released.

The attacker knows all records but one, and sees every noisy sum. He gives the answers of the fit to a fit on either
data set; the sums of both are then known, and with Gaussian noise the log-likelihood ratio of the answers x is
Σ ((x − s_out)² − (x − s_in)²)/(2·sd²). No other attack on the history, nor on the model, has a higher ROC.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import clone

from deniable.audit import AttackScores
from deniable.noise.queries import SumNoise


class Recorded:
    """The library's own noise, ``share`` of it, written down question by question."""

    def __init__(self, share=1.0):
        self.source, self.share = SumNoise(), share
        self.asked = []  # label, standard deviations, sums, answer

    def channel(self, label, sd, times):
        inner = self.source.channel(label, sd * self.share, times)

        def answer(sums):
            self.asked.append((label, np.asarray(sd, dtype=float), sums.copy(), inner(sums)))
            return self.asked[-1][3]

        return answer


class Followed:
    """The answers of a recorded fit, for a fit on the other data set, whose sums are kept."""

    def __init__(self, recorded):
        self.recorded, self.sums = recorded, []

    def channel(self, label, sd, times):
        def answer(sums):
            known, spread, _, answered = self.recorded.asked[len(self.sums)]
            assert known == label
            np.testing.assert_array_equal(spread, sd)
            self.sums.append(sums.copy())
            return answered

        return answer

    def ratio(self, inside):
        """The log-likelihood ratio of presence, and the Gaussian DP parameter that the record needed."""
        log_ratio = squared = 0.0
        for (_, sd, own, answer), other in zip(self.recorded.asked, self.sums, strict=True):
            moved, left = ((own - other) if inside else (other - own)) / sd, (answer - (other if inside else own)) / sd
            log_ratio += float(np.sum(moved * left - moved**2 / 2))
            squared += float(np.sum(moved**2))
        return log_ratio, np.sqrt(squared)


@dataclass
class Attacked:
    transcript: AttackScores
    final: AttackScores
    mu: np.ndarray  # what the record needed along each fit


def joined(rest, canary):
    X = [pd.DataFrame(part[0]) for part in (rest, canary)]
    return pd.concat(X, ignore_index=True), np.concatenate([rest[1], canary[1]])


def fit(model, world, source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model)._fit(*world, source)


def attacked(model, rest, canary, n, share=1.0):
    """Fit ``n`` times with the canary, as often without; ``share`` of the noise, below 1 for negative controls."""
    worlds, found = {True: joined(rest, canary), False: joined(rest, none(canary))}, []
    for inside in [True] * n + [False] * n:
        recorded = Recorded(share)
        fitted = fit(model, worlds[inside], recorded)
        followed = Followed(recorded)
        fit(model, worlds[not inside], followed)
        found.append((*followed.ratio(inside), agrees(fitted, canary)))
    ratio, mu, final = np.transpose(found)
    name = type(model).__name__
    whole = AttackScores(ratio[:n], ratio[n:], "ratio of the transcript", name, {"exact_ratio": share == 1})
    return Attacked(whole, AttackScores(final[:n], final[n:], "fit of the final model", name), mu)


def none(canary):
    return canary[0][:0], canary[1][:0]


def agrees(fitted, canary):
    """How much the final model prefers the canary's own targets."""
    X, y = pd.DataFrame(canary[0]), canary[1]
    if not hasattr(fitted, "classes_"):
        return -float(np.abs(fitted.predict(X) - y).sum())
    own = np.searchsorted(fitted.classes_, y)
    return float(fitted.predict_log_proba(X)[np.arange(len(y)), own].sum())


def worst(model, rest, candidates):
    """The candidate that moved the sums of one fit most."""
    recorded = Recorded()
    fit(model, joined(rest, none(candidates[0])), recorded)

    def needed(canary):
        followed = Followed(recorded)
        fit(model, joined(rest, canary), followed)
        return followed.ratio(False)[1]

    return max(candidates, key=needed)
