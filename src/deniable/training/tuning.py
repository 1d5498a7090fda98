"""Which kind of model suits the data: trials that are paid for, scored on records that they did not see.

A coin that ignores the data assigns each unit to one of two parts: three quarters fit the trials, the others
score them. A record is in one part only, so it pays for the fit or for the score of a trial, never for both
(parallel composition: given the coins, which are tossed for each record by itself, adding or removing one changes one
part). Trials, scores and the last fit then compose: their μ² add up in the account. The trials are few and all of them
are counted. Trying a random number of them (Papernot & Steinke, arXiv:2110.03620) would need two to three times the
noise: ``benchmarks/training/price_of_trials.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from deniable._check import FloatArray
from deniable.noise.queries import Paid
from deniable.training.descent import Weighted
from deniable.training.features import Declared
from deniable.training.fitting import Descent, FitOutcome, Task, Trial, columns_of, exposures
from deniable.training.interactions import Pair
from deniable.training.losses import RESIDUAL

TRIALS_SHARE = 0.3  # of μ²: all trials together
FITTED = 0.75  # probability that a record fits the trials; the others score them
_CHOICE = 0.4  # share of a trial with pairs that goes into choosing them
_PAIRS = 5  # pairs of columns in the trial with joint shape functions
_PARTS = 1 << 10  # lattice points between the best and the worst error of a record
_WORTH = 200.0  # records in units of the noise of a trial, below which its score tells too little to be paid for


def fit_tuned(task: Task, declared: Declared) -> FitOutcome:
    """Fit the kind of model that wins: shape functions, these with joint ones of five pairs, or straight lines.

    If in doubt, the first. Where records are too few for the scores to tell anything (by the noisy count), no trial is
    made and nothing is spent on any.
    """
    look, ledger = task.look, task.look.ledger
    additive, linear = columns_of(task, declared, ("additive", "linear"))
    columns = len(additive.encoders)
    names = ["additive", *["additive with pairs"] * (columns > 1), "linear"]
    each = ledger.parts(TRIALS_SHARE)[0] / math.sqrt(len(names))
    if not task.n * each >= _WORTH:
        last = task.pay_and_descend("coefficients", ledger.left, additive)
        return FitOutcome(last.model, exposures(look, {"coefficients": last.squares}))
    fits = _coins(task)
    fitting, scoring = replace(task, part=fits, n=task.n * FITTED), replace(task, part=1 - fits)
    pairs: tuple[Pair, ...] = ()
    errors, mains = [], None
    for name in names:
        label = f"trial: {name}"
        paid = look.pay(label, f"{len(names)} trials, fitted to some records and scored on others", each)
        if mains is None:
            found = mains = fitting.descend(label, paid, additive, ())
        elif name == "linear":
            found = fitting.descend(label, paid, linear, ())
        else:
            wanted = min(_PAIRS, columns * (columns - 1) // 2)
            pairs = fitting.choose(f"{label}, choice", paid.part(_CHOICE), mains, wanted)
            found = fitting.descend(label, paid.part(1 - _CHOICE), additive, pairs)
        errors.append(_error(scoring, f"{label}, score", paid, found))
    spread = math.sqrt(2) * 0.5 / each  # standard deviation of the difference of two scores
    best = int(np.argmin(np.array(errors) + spread * (np.arange(len(errors)) > 0)))
    blocks = {"additive": (additive, ()), "additive with pairs": (additive, pairs), "linear": (linear, ())}
    last = task.pay_and_descend("coefficients", ledger.left, *blocks[names[best]])
    scored = task.n * (1 - FITTED)
    trials = tuple(
        Trial(name, min(max(error / scored + 0.5, 0.0), 1.0), k == best)
        for k, (name, error) in enumerate(zip(names, errors, strict=True))
    )
    return FitOutcome(last.model, exposures(look, {"coefficients": last.squares}), trials)


def _coins(task: Task) -> FloatArray:
    """Return 1 for each record that fits the trials and 0 for those that score them; a person's stay together."""
    units = task.look.units
    n = task.table.n_rows if units.owners is None or units.labels is None else len(units.labels)
    heads = task.look.source.coins("who fits the trials", n, FITTED).astype(np.float64)
    return heads if units.owners is None else heads[units.owners]


def _error(task: Task, label: str, paid: Paid, found: Descent) -> float:
    """Return the noisy sum of the records' errors, each from −½ (right) to ½ (a residual at its clip).

    A unit's records weigh at most ``heaviest`` together, each with at most half of the lattice: the sum changes by
    at most ``heaviest·_PARTS/2``.
    """
    data, units = task.data, task.look.units
    residuals = task.residuals(found, Weighted(task.target))
    square = np.zeros(task.table.n_rows)
    for r in residuals:
        square += r * r
    share = square / (task.loss.clip * RESIDUAL) ** 2
    parts = np.minimum(np.trunc(share * _PARTS), _PARTS) - _PARTS // 2
    weights = np.ones(parts.size) if data.weights is None else data.weights
    total = np.array([int((parts * weights).sum())])
    unit = units.heaviest * _PARTS
    released = paid.channel(label, np.array([unit / 2 / paid.mu]))(total)
    return float(released[0]) / unit
