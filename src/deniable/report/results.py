"""From finished results (a profile, a release, an audit) to an assessment."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable._check import InputError
from deniable._shown import shown
from deniable.audit import AttackScores, ScoreAudit
from deniable.curves import Assumptions, Tradeoff
from deniable.noise import Certificate, Release
from deniable.records import PrivacyProfile
from deniable.report.measured import audit_section
from deniable.report.model import Assessment, Kind, Number, Section
from deniable.report.profiled import NOT_FOR_PUBLICATION, profile_section
from deniable.report.sections import NOT_COVERED, TUNING_WARNING, bound_headline, bound_section

POPULATION_GAME = "the attacker is given a record and says whether it was in; its scores were measured on known records"


def assess_result(
    source: Any,
    *,
    prior: float,
    fpr: tuple[float, ...],
    delta: float,
    title: str | None,
    bound: Tradeoff | None = None,
    group: tuple[str, Any] | None = None,
    command: str | None = None,
) -> Assessment:
    """Return the assessment of what a function of deniable returned.

    ``bound`` is the trade-off that an audit is compared with; ``group`` a column's name and values by which the
    exposure of a profile is summarised.
    """
    if isinstance(source, AttackScores):
        source = source.audit()
    if isinstance(source, ScoreAudit):
        return _of_audit(source, fpr=fpr, title=title, bound=bound, command=command or source.command)
    if isinstance(source, Release):
        source = source.certificate
    if isinstance(source, Certificate):
        return _of_certificate(source, prior=prior, fpr=fpr, delta=delta, title=title)
    if isinstance(source, PrivacyProfile):
        return _of_profile(source, fpr=fpr, title=title, group=group)
    raise InputError(
        f"source must be a mechanism, a trade-off, data, or a result of deniable, got {source!r}; see help(assess)"
    )


def _of_audit(
    audit: ScoreAudit, *, fpr: tuple[float, ...], title: str | None, bound: Tradeoff | None, command: str | None
) -> Assessment:
    section, status = audit_section(audit, fpr=fpr, attack="Scores of an attack", bound=bound, command=command)
    headline = (
        "A measured attack exceeds the promised bound: what was promised does not hold."
        if status == "violated"
        else _leaks_at_least(audit)
    )
    return Assessment(
        title=title or "A measured attack",
        status=status,
        headline=headline,
        sections=(section,),
        assumptions=Assumptions(
            game=POPULATION_GAME,
            adjacency="members and non-members come from one population",
            access="whatever the attack that made the scores was given",
            notes=("The scores of members, and of non-members, are independent.",),
        ),
        not_covered=("Attacks other than this one: a measurement never bounds what others can reach.", *NOT_COVERED),
    )


def _leaks_at_least(audit: ScoreAudit) -> str:
    """What the attack shows, as a sentence: an interval of its advantage, and ε where it shows one."""
    found, epsilon = audit.advantage(), audit.epsilon().low
    sure = f"{100 * audit.confidence:g}\u00a0% confidence"
    between = f"between {shown(found.low, 'rate', 'lower')} and {shown(found.high, 'rate', 'upper')}"
    if max(found.low, epsilon) <= 0:
        return f"This attack shows no leakage: its advantage is {between} ({sure}). Other attacks may do better."
    shows = f"; no ε below {shown(epsilon, 'number', 'lower')} explains its scores" if epsilon > 0 else ""
    return f"Leaks at least this, {sure}: the attack's advantage is {between}{shows}. Other attacks may do better."


def _certified(certificate: Certificate) -> tuple[Number, ...]:
    """The number that was certified, if there is one."""
    if np.isnan(certificate.eta):
        return ()
    meaning = "Accuracy of the best attack above guessing, for every record, is at most this."
    kind: Kind = "provable upper bound" if certificate.holds else "estimate"
    return (Number("release.eta", "Certified η", certificate.eta, meaning, kind),)


def _of_certificate(
    certificate: Certificate, *, prior: float, fpr: tuple[float, ...], delta: float, title: str | None
) -> Assessment:
    curve = certificate.tradeoff
    sure = shown(certificate.confidence, "rate", "lower")
    holds = "" if certificate.holds else " Nothing is proven about this release."
    certain = f" Certified with confidence {sure}." if certificate.confidence < 1 else holds
    headline = holds.strip() if np.isnan(certificate.eta) else bound_headline(curve) + certain
    release = Section(
        key="release",
        title="The release and its noise",
        summary=f"{certificate.kind} certificate; coupling: {certificate.coupling}.{holds}",
        numbers=(
            *_certified(certificate),
            Number("release.target", "η asked for", certificate.target, "The target of the release.", "parameter"),
            Number("release.confidence", "Confidence", certificate.confidence,
                   "Probability over the resampling with which the certificate holds.", "parameter"),
            Number("release.n", "Records used", float(certificate.n_train),
                   f"A secret uniform subset of {certificate.n_records:,} records.", "exact", unit="count"),
            Number("release.noise", "Largest noise standard deviation", float(certificate.noise_scale.max(initial=0.0)),
                   f"{certificate.noise} noise; {certificate.sampler}.", "exact", unit="number"),
        ),
    )  # fmt: skip
    return Assessment(
        title=title or "A release with a membership certificate",
        status="bounded" if certificate.holds else "inconclusive",
        headline=headline,
        sections=(bound_section(curve, prior=prior, fpr=fpr, delta=delta), release),
        assumptions=Assumptions(
            game=curve.assumptions.game,
            adjacency=curve.assumptions.adjacency,
            access="the released value",
            notes=certificate.assumptions,
        ),
        not_covered=NOT_COVERED,
        warnings=(TUNING_WARNING,),
    )


def _of_profile(
    profile: PrivacyProfile, *, fpr: tuple[float, ...], title: str | None, group: tuple[str, Any] | None
) -> Assessment:
    section = profile_section(profile, fpr=fpr, group=group)
    worst = section.numbers[0].shown
    return Assessment(
        title=title
        or f"Record by record: {len(profile):,} records, {profile.loss} loss, Λ = {profile.regularization:g}",
        status="bounded",
        headline=f"Provable upper bound for this very model: the most exposed record gives an attacker an advantage of "
        f"at most {worst}, the median record of at most {section.numbers[len(fpr) + 1].shown}.",
        sections=(section,),
        assumptions=Assumptions(access="the released parameters of the model"),
        not_covered=NOT_COVERED,
        warnings=(NOT_FOR_PUBLICATION, TUNING_WARNING),
        reproduction={"Λ": profile.regularization, "loss": profile.loss, "mechanism": repr(profile.mechanism)},
    )
