"""From finished results (a profile, a release, an audit) to an assessment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deniable import testing
from deniable._shown import plural, shown
from deniable.accounting import tradeoff
from deniable.audit import AttackScores, ScoreAudit
from deniable.curves import Assumptions, Tradeoff
from deniable.mechanisms import Mechanism
from deniable.noise import Certificate, Release
from deniable.noise.certificate import AS_GIVEN
from deniable.records import PrivacyProfile
from deniable.report.measured import OTHER_ATTACKS, POPULATION_GAME, audit_section
from deniable.report.model import Assessment, Number, NumberKind, Section
from deniable.report.sections import NOT_COVERED, OTHER_RISKS, TUNING_WARNING, Asked, bound_headline, bound_section
from deniable.statistics import StatisticsRelease
from deniable.workflows.assessing import assesses
from deniable.workflows.profiled import NOT_FOR_PUBLICATION, profile_section


@assesses(AttackScores, ScoreAudit, what="the scores of an attack")
def assess_audit(
    source: AttackScores | ScoreAudit, asked: Asked, *, bound: Tradeoff | Mechanism | None = None
) -> Assessment:
    """Return what an attack measured; ``bound`` is the promise that it is compared with."""
    audit = source.audit() if isinstance(source, AttackScores) else source
    return _of_audit(audit, asked, bound)


@assesses(Release, StatisticsRelease, Certificate, what="a release or its certificate")
def assess_release(source: Release | StatisticsRelease | Certificate, asked: Asked) -> Assessment:
    """Return what the certificate of a release proves."""
    return _of_certificate(source if isinstance(source, Certificate) else source.certificate, asked)


def _of_audit(audit: ScoreAudit, asked: Asked, promise: Tradeoff | Mechanism | None) -> Assessment:
    bound = tradeoff(promise) if isinstance(promise, Mechanism) else promise
    section, status, headline = audit_section(
        audit, fpr=asked.fpr, attack="Scores of an attack", bound=bound, promise=promise,
        command=asked.command or audit.command,
    )  # fmt: skip
    return Assessment(
        title=asked.title or "A measured attack",
        status=status,
        headline=headline,
        sections=(section,),
        assumptions=Assumptions(
            game=POPULATION_GAME,
            adjacency="members and non-members come from one population",
            access="whatever the attack that made the scores was given",
            notes=testing.marked(
                ("The scores of members, and of non-members, are independent.",),
                bound is not None and bound.assumptions.insecure,
            ),
        ),
        not_covered=(OTHER_ATTACKS, *NOT_COVERED),
        warnings=audit.warnings,
        alert=" ".join(audit.warnings),
    )


def _certified(certificate: Certificate) -> Number:
    """The number that was certified."""
    meaning = "Twice the accuracy of the best attack above guessing, for every record, is at most this."
    kind: NumberKind = "provable upper bound" if certificate.holds else "estimate"
    return Number("release.advantage", "Certified advantage", certificate.advantage, meaning, kind)


def _who(certificate: Certificate) -> str:
    """Say which records the value comes from."""
    if certificate.hides_n:
        return f"All {plural(certificate.unit)}; their number was declared, or counted with noise."
    if certificate.n_train == certificate.n_records:
        return "All records."
    return f"A secret uniform subset of {certificate.n_records:,} records."


def _of_certificate(certificate: Certificate, asked: Asked) -> Assessment:
    curve = certificate.tradeoff
    sure = shown(certificate.confidence, "rate", "lower")
    holds = "" if certificate.holds else " Nothing is proven about this release."
    certain = f" Certified with confidence {sure}." if certificate.confidence < 1 else holds
    headline = bound_headline(curve) + certain
    bound = bound_section(curve, asked)
    release = Section(
        key="release",
        title="The release and its noise",
        summary=f"{certificate.kind} certificate; coupling: {certificate.coupling}.{holds}",
        numbers=(
            _certified(certificate),
            Number("release.target", "Advantage asked for", certificate.target, "What the release was to keep.",
                   "parameter"),
            Number("release.confidence", "Confidence", certificate.confidence,
                   "Probability over the resampling with which the certificate holds.", "parameter"),
            Number("release.n", f"{plural(certificate.unit).capitalize()} used", float(certificate.n_train),
                   _who(certificate), "estimate" if certificate.hides_n else "exact", unit="count"),
            Number("release.noise", "Largest noise standard deviation", float(certificate.noise_scale.max(initial=0.0)),
                   f"{certificate.noise} noise; {certificate.sampler}.", "exact", unit="number"),
        ),
    )  # fmt: skip
    return Assessment(
        title=asked.title or "A release with a membership certificate",
        status="bounded" if certificate.holds else "inconclusive",
        headline=headline,
        sections=(bound if certificate.holds else _estimated(bound), release),
        assumptions=Assumptions(
            game=curve.assumptions.game,
            adjacency=curve.assumptions.adjacency,
            access="the released value",
            notes=testing.marked(certificate.assumptions, certificate.insecure),
        ),
        not_covered=(OTHER_RISKS, *NOT_COVERED),
        warnings=(TUNING_WARNING,),
    )


def _estimated(section: Section) -> Section:
    """The same numbers, called what they are where a certificate proves nothing."""
    return replace(section, numbers=tuple(replace(n, kind="estimate") for n in section.numbers))


@assesses(PrivacyProfile, what="a record profile")
def assess_profile(profile: PrivacyProfile, asked: Asked, *, group: tuple[str, Any] | None = None) -> Assessment:
    """Return the exposure of every record; ``group`` is a column's name and values by which it is summarised."""
    section = profile_section(profile, fpr=asked.fpr, group=group)
    worst = section.numbers[0].shown
    return Assessment(
        title=asked.title
        or f"Record by record, if released with {profile.noise}: {len(profile):,} records, {profile.loss} loss, "
        f"Λ = {profile.regularization:g}",
        status="bounded",
        headline=f"Provable upper bound for this very model only if it is released with {profile.noise}: the most "
        f"exposed record gives an attacker an advantage of at most {worst}, the median record of at most "
        f"{section.numbers[len(asked.fpr) + 1].shown}.",
        sections=(section,),
        assumptions=Assumptions(
            access=f"the parameters of the model, released once with {profile.noise}",
            notes=(*profile.notes, f"Covered: {AS_GIVEN}."),
        ),
        not_covered=("The fitted model without that noise: nothing is proven about it.", OTHER_RISKS, *NOT_COVERED),
        warnings=(NOT_FOR_PUBLICATION, TUNING_WARNING),
        reproduction={"Λ": profile.regularization, "loss": profile.loss, "mechanism": repr(profile.mechanism)},
    )
