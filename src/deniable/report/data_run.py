"""From a table to what a logistic regression released by output perturbation would leak: bound, profile, attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deniable._check import FloatArray, InputError, Seed, integer, number, seeded
from deniable._progress import stage
from deniable._shown import shown
from deniable.accounting import tradeoff as tradeoff_of
from deniable.audit import ScoreAudit, audit_scores
from deniable.audit.known import output_perturbation_scores
from deniable.curves import Assumptions, Tradeoff
from deniable.mechanisms import PureDP
from deniable.records import OutputPerturbation, PrivacyProfile, privacy_profile
from deniable.report.measured import audit_section, utility_section
from deniable.report.model import Assessment, Section, Status
from deniable.report.profiled import NOT_FOR_PUBLICATION, profile_section
from deniable.report.registry import Asked, assesses
from deniable.report.sections import NOT_COVERED, TUNING_WARNING, bound_headline, bound_section, risk_section
from deniable.tables import PUBLIC, Encoded, Table, encode, read_table
from deniable.tables.columnar import PAIR_TARGET, comes_in_blocks, on_disk
from deniable.tables.encoding import signs
from deniable.tables.understanding import Ranges

_SAMPLER_CONFIDENCE = 0.99999  # a sound simulator fails its test in at most one report of 100,000
_MOST_GROUPS = 50  # rows of the table of subgroups
_ROWS = 8192  # rows whose predictions are held at a time
_DRAWS = 200  # released models on which held-out accuracy is measured


@assesses(
    str, Path, "pathlib.PosixPath", "pathlib.WindowsPath", pd.DataFrame, tuple, what="a table", when=comes_in_blocks
)
def assess_data(
    source: Any,
    asked: Asked,
    *,
    target: str | None = None,
    epsilon: float | None = None,
    regularization: float = 1e-2,
    drop: Sequence[str] = (),
    ranges: Ranges | None = None,
    group: str | None = None,
    n_samples: int = 20_000,
    test_fraction: float = 0.25,
    confidence: float = 0.95,
    rng: Seed = None,
    progress: bool = False,
    first_row: int = 0,
) -> Assessment:
    """Bound, profile and attack releases of a logistic regression on a table whose target has two classes.

    Nothing is released. The model minimises mean logistic loss + ``regularization``/2·‖f‖² on rows scaled to norm at
    most 1; the releases that are simulated add noise of density ∝ exp(−β‖b‖), β = nΛε/2 (output perturbation: ε-DP for
    adding or removing a record while n and β stay public). The bound is that of ε-DP; the attack is the likelihood
    ratio on the worst record.

    Parameters
    ----------
    source, target, drop, ranges
        See :func:`deniable.tables.read_table` and ``encode``; a pair (X, y) of arrays is a table too, and so are
        blocks (see :func:`deniable.tables.understand`), which may be pairs.
    epsilon
        ε of the release, above 0.
    regularization
        Λ, above 0.
    group
        Column by whose values the exposure of the records is summarised.
    n_samples
        Simulated releases in each world for the measured attack, at least 100.
    test_fraction
        Share of the records held out to measure accuracy, in (0, 1).
    confidence
        Confidence of the measured intervals.
    rng
        Seed of the split, the simulated attack and the simulated releases.
    first_row
        The number by which the reader calls the first row: 2 for lines of a file under a heading.
    """
    if epsilon is None:
        raise InputError("epsilon is missing; give the ε with which the model is to be released, for example 1")
    epsilon = number("epsilon", epsilon, above=0.0, below=np.inf)
    regularization = number("regularization", regularization, above=0.0, below=np.inf)
    test_fraction = number("test_fraction", test_fraction, above=0.0, below=1.0)
    n_samples = integer("n_samples", n_samples, at_least=100)
    data = _frame(source) if isinstance(source, tuple) else _kept(source) if comes_in_blocks(source) else source
    target = target or _pair_target(data)
    table = read_table(data, target, drop=drop, ranges=ranges)
    generator = seeded(rng)
    train, test = _split(signs(table)[0], test_fraction, generator)
    groups = _groups(table, group, train)
    header = table.features.iloc[:0].copy()
    encoded = encode(table, ranges=ranges, rows=np.concatenate([train, test]), consume=True)  # no part is held twice
    of_train, of_test = slice(0, len(train)), slice(len(train), None)
    table = replace(table, features=header, understood=None)
    X, y = encoded.X[of_train], encoded.y[of_train]

    mechanism = OutputPerturbation(epsilon=epsilon)
    with stage(f"fitting on {len(train):,} records and leaving each one out", shown=progress):
        profile = privacy_profile(X, y, regularization=regularization, mechanism=mechanism, rng=generator)
        records = profile_section(profile, fpr=asked.fpr, rows=train + integer("first_row", first_row), group=groups)
    bound = tradeoff_of(PureDP(epsilon))
    attack, audit, status = attack_worst_record(
        profile, mechanism, bound, n=n_samples, confidence=confidence, fpr=asked.fpr, rng=generator, progress=progress
    )
    utility = _utility(encoded, of_train, of_test, profile, mechanism, generator)
    parts = (bound_section(bound, asked), risk_section(bound, asked.baselines, n=len(train)), records, attack, utility)
    return Assessment(
        title=asked.title or f"Logistic regression on {table.name}, released with ε = {epsilon:g}",
        status=status,
        headline=attacked_headline(bound_headline(bound), audit, status),
        sections=parts,
        assumptions=_assumptions(encoded, table, len(train)),
        not_covered=NOT_COVERED,
        warnings=(NOT_FOR_PUBLICATION, TUNING_WARNING),
        reproduction={
            "data": table.name, "rows": len(encoded.y), "target": table.target_name, "classes": list(encoded.classes),
            "training rows": len(train), "columns after encoding": X.shape[1], "ε": epsilon, "Λ": regularization,
            "noise scale 1/β": 2 / (len(train) * regularization * epsilon), "seed": _seed(rng),
        },
        alert=_alert(utility, table, bound, source),
        what_ran=PureDP(epsilon),
    )  # fmt: skip


def _alert(utility: Section, table: Table, bound: Tradeoff, source: Any) -> str:
    """What has to be read first if the released model is no better than always naming the larger class."""
    found = {number.key: number for number in utility.numbers}
    with_noise, majority = found["utility.with"], found["utility.majority"]
    if (with_noise.value or 0.0) > (majority.value or 0.0):
        return ""
    data = str(source) if isinstance(source, str | Path) else "data.csv"
    return (
        f"The released model is of no use: with its noise it is right in {with_noise.shown} of held-out cases, always "
        f"naming the larger class in {majority.shown}. `deniable train {data} --target {table.target_name} --advantage "
        f"{bound.advantage():.3g}` promises the same membership advantage and needs far less noise; a larger "
        "ε, a larger Λ (--regularization) or more records help too."
    )


def attack_worst_record(
    profile: PrivacyProfile,
    mechanism: OutputPerturbation,
    bound: Tradeoff | None,
    *,
    n: int,
    confidence: float,
    fpr: tuple[float, ...],
    rng: np.random.Generator,
    progress: bool,
) -> tuple[Section, ScoreAudit, Status]:
    """The measured attack on ``n`` releases in each world, and the verdict against the bound and the record's curve.

    The record's own curve is attained by this very attack: a sharp test of the simulator, at a confidence that a sound
    one almost never fails.
    """
    with stage(f"attacking the most exposed record with {2 * n:,} releases", shown=progress):
        inside, outside = worst_record_scores(profile, mechanism, n, rng)
        audit = audit_scores(inside, outside, confidence)
        section, status = audit_section(
            audit, fpr=fpr, bound=bound,
            attack="Likelihood-ratio test between the models trained with and without the most exposed record, on "
            "releases drawn by the mechanism's simulator",
        )  # fmt: skip
    own = audit_scores(inside, outside, _SAMPLER_CONFIDENCE).compare(
        profile.tradeoff(int(profile.ranking("typical")[0]))
    )
    notes = (*section.notes, f"Against the exact curve of that record: {own}")
    return replace(section, notes=notes), audit, "violated" if own.violated else status


def worst_record_scores(
    profile: PrivacyProfile, mechanism: OutputPerturbation, n: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Scores of the likelihood-ratio attack on the most exposed record, on ``n`` releases of either world.

    The releases are drawn by the mechanism's own simulator, so that its law is under test, not the hardened sampler
    that publishes; the attacker's densities are the audit's own.
    """
    worst = int(profile.ranking("typical")[0])
    centres = profile.optimum, profile.leave_one_out(worst)
    inside, outside = (
        output_perturbation_scores(
            _releases(mechanism, centre, profile.rate, n, rng), *centres, mechanism.noise, 1 / profile.rate
        )
        for centre in centres
    )
    return inside, outside


def _releases(
    mechanism: OutputPerturbation, centre: FloatArray, rate: float, n: int, rng: np.random.Generator
) -> FloatArray:
    return np.stack([mechanism.sample(centre, rate, rng=rng) for _ in range(n)])


def attacked_headline(bound: str, audit: ScoreAudit, status: Status) -> str:
    """The verdict in a sentence or two: ``bound`` says what is proven."""
    if status == "violated":
        return (
            "A measured attack exceeds the proven bound: the implementation does not keep its promise. Do not release."
        )
    found = audit.advantage()
    return (
        f"{bound} Measured: the likelihood-ratio attack on the most exposed record has an advantage of "
        f"{shown(found.low, 'rate', 'lower')} to {shown(found.high, 'rate', 'upper')} "
        f"({100 * audit.confidence:g}\u00a0% confidence)."
    )


def _utility(
    encoded: Encoded,
    train: slice,
    test: slice,
    profile: PrivacyProfile,
    mechanism: OutputPerturbation,
    rng: np.random.Generator,
) -> Section:
    X, y = encoded.X, encoded.y
    released = _releases(mechanism, profile.optimum, profile.rate, _DRAWS, rng)

    def accuracy(models: FloatArray, rows: slice) -> FloatArray:
        right = np.zeros(len(models))
        seen, signs_seen = X[rows], y[rows, None]
        for at in range(0, len(seen), _ROWS):
            some = slice(at, at + _ROWS)
            right += np.sum(np.sign(seen[some] @ models.T) == signs_seen[some], axis=0)
        return right / len(seen)

    plain = profile.optimum[None, :]
    share = float(np.mean(y[test] == 1))
    return utility_section(
        without=float(accuracy(plain, test)[0]),
        with_noise=accuracy(released, test).tolist(),
        training=float(accuracy(plain, train)[0]),
        majority=max(share, 1 - share),
        n=len(y[train]),
        parameters=X.shape[1],
    )


def _assumptions(encoded: Encoded, table: Table, n: int) -> Assumptions:
    notes = [f"The number of training records ({n:,}), Λ and the scale of the noise are public.", PUBLIC]
    notes += [f"Table: {line}" for line in table.remarks]
    if encoded.assumed_public:
        columns = ", ".join(encoded.assumed_public[:8]) + (" …" if len(encoded.assumed_public) > 8 else "")
        notes.append(
            f"The scaling constants of {len(encoded.assumed_public)} columns ({columns}) were read off the data, "
            "rounded outward to a coarse grid, and are assumed public; give them with ranges= (--ranges) to remove "
            "this assumption."
        )
    return Assumptions(access="the released parameters of the model", notes=tuple(notes))


def _groups(table: Table, group: str | None, train: Any) -> tuple[str, Any] | None:
    if group is None:
        return None
    if group == table.target_name:
        return group, table.target.to_numpy()[train]
    if group not in table.features.columns:
        raise InputError(f"group must be a column of {table.name}, got {group!r}")
    values = table.features[group].to_numpy()[train]
    if len(set(values.tolist())) > _MOST_GROUPS:
        raise InputError(f"group must have at most {_MOST_GROUPS} values, {group!r} has {len(set(values.tolist()))}")
    return group, values


def _split(y: FloatArray, test_fraction: float, rng: np.random.Generator) -> tuple[Any, Any]:
    from sklearn.model_selection import train_test_split

    seed = int(rng.integers(2**31))
    train, test = train_test_split(np.arange(len(y)), test_size=test_fraction, stratify=y, random_state=seed)
    return np.sort(train), np.sort(test)


def _frame(pair: tuple[Any, Any]) -> pd.DataFrame:
    if len(pair) != 2:
        raise InputError(f"source must be a pair (X, y) if it is a tuple, got {len(pair)} items")
    X = pair[0] if isinstance(pair[0], pd.DataFrame) else pd.DataFrame(np.asarray(pair[0])).add_prefix("x")
    return X.assign(**{PAIR_TARGET: np.asarray(pair[1])})


def _kept(blocks: Any) -> Any:
    """Blocks as columns that can be read as often as needed, under the names that the same rows in memory have."""
    table = on_disk(blocks)
    if table is None or PAIR_TARGET not in table.names:
        return table
    return replace(table, names=tuple(f"x{name}" if isinstance(name, int) else name for name in table.names))


def _pair_target(data: Any) -> str | None:
    return PAIR_TARGET if PAIR_TARGET in getattr(data, "columns", ()) else None


def _seed(rng: Seed) -> int | str:
    return rng if isinstance(rng, int) else "fresh entropy" if rng is None else "a generator of the caller's"
