"""From finished results (a profile, a release, an audit) to an assessment."""

from __future__ import annotations

from typing import Any

from deniable import testing
from deniable._shown import plural, shown
from deniable.audit import AttackScores, ScoreAudit
from deniable.curves import Assumptions, Tradeoff
from deniable.mechanisms import Mechanism
from deniable.noise import AS_GIVEN, Certificate
from deniable.records import PrivacyProfile
from deniable.releases import HalfCertificate, Release
from deniable.report import (
    CERTIFIED,
    NOISE,
    NOT_COVERED,
    OTHER_RISKS,
    POPULATION_GAME,
    TUNING_WARNING,
    Asked,
    Assessment,
    Number,
    Section,
    audit_section,
    bound_headline,
    bound_section,
    risk_section,
)
from deniable.statistics import StatisticsRelease
from deniable.workflows.audited import curve_of, measured_page
from deniable.workflows.private_model import proof_of, seen
from deniable.workflows.profiled import NOT_FOR_PUBLICATION, profile_section
from deniable.workflows.published import table_sections


def assess_audit(
    source: AttackScores | ScoreAudit, asked: Asked, *, bound: Tradeoff | Mechanism | None = None
) -> Assessment:
    """Return what an attack measured; ``bound`` is the promise that it is compared with."""
    audit = source.audit() if isinstance(source, AttackScores) else source
    curve = curve_of(bound)
    section, status, headline = audit_section(
        audit, fpr=asked.fpr, attack="Scores of an attack", bound=curve, promise=bound, command=asked.command
    )
    return measured_page(
        asked.title or "A measured attack", (status, headline), audit.warnings, section, promise=curve,
        game=POPULATION_GAME, adjacency="members and non-members come from one population",
        note="The scores of members, and of non-members, are independent.",
    )  # fmt: skip


def assess_half(source: Release | HalfCertificate, asked: Asked) -> Assessment:
    """Return what the certificate of a release from a secret half proves."""
    certificate = source.certificate if isinstance(source, Release) else source
    return _release_page(
        certificate,
        asked,
        f"{certificate.kind} certificate; coupling: {certificate.coupling}.",
        Assumptions(
            certificate.tradeoff.assumptions.game, certificate.tradeoff.assumptions.adjacency, "the released value",
            testing.marked(certificate.assumptions, certificate.insecure),
        ),
        (
            Number("release.target", "Advantage asked for", certificate.target, "What the release was to keep.",
                   "parameter"),
            Number("release.confidence", "Confidence", certificate.confidence,
                   "Probability over the resampling with which the certificate holds.", "parameter"),
            Number("release.n", "Records used", float(certificate.n_train),
                   f"A secret uniform subset of {certificate.n_records:,} records.", "exact", unit="count"),
            Number("release.noise", "Largest noise standard deviation", float(certificate.noise_scale.max(initial=0.0)),
                   f"{certificate.noise} noise; {certificate.sampler}.", "exact", unit="number"),
        ),
    )  # fmt: skip


def assess_queries(source: StatisticsRelease | Certificate, asked: Asked) -> Assessment:
    """Return what the certificate of private queries proves."""
    certificate = source if isinstance(source, Certificate) else source.certificate
    many, mu, several = len(certificate.uses), shown(certificate.mu, "number", "upper"), plural(certificate.unit)
    delta = f", δ ≤ {shown(certificate.delta, 'number', 'upper')}" * bool(certificate.delta)
    return _release_page(
        certificate,
        asked,
        f"exact certificate; {certificate.target}: Gaussian differential privacy on all records, {many} "
        f"{'query' if many == 1 else 'queries'} composed (μ ≤ {mu}{delta}); at even odds, advantage at telling a "
        f"{certificate.unit} from another in its place at most "
        f"{shown(certificate.replacement.advantage(), 'number', 'upper')}.",
        seen(certificate, "everything that is released"),
        () if isinstance(source, Certificate) else (Number(
            "release.n", f"{several.capitalize()} used", float(source.n_records),
            f"All {several}; their number was declared, or counted with noise.", "estimate", unit="count"),),
        more=() if isinstance(source, Certificate) else table_sections(source),
        risks=(risk_section(certificate.tradeoff, asked.baselines, replacing=certificate.replacement),),
    )  # fmt: skip


def _release_page(
    certificate: Certificate | HalfCertificate,
    asked: Asked,
    summary: str,
    assumptions: Assumptions,
    numbers: tuple[Number, ...],
    *,
    more: tuple[Section, ...] = (),
    risks: tuple[Section, ...] = (),
) -> Assessment:
    """Return the page of what was released: its bound, and what the release was made of."""
    curve = certificate.tradeoff
    certified = Number(
        "release.advantage", "Certified advantage", certificate.advantage,
        f"At even odds: twice what the best attack's accuracy exceeds 50 % by, for every {curve.assumptions.unit}.",
    )  # fmt: skip
    return Assessment(
        title=asked.title or f"{'Statistics of a table' if more else 'A release'}, with a membership certificate",
        status="bounded",
        headline=bound_headline(curve),
        sections=(
            *more,
            bound_section(curve, asked),
            *risks,
            Section(
                "release", "The release and its noise", summary, (certified, *numbers), notes=(NOISE,) * bool(risks)
            ),
        ),
        assumptions=assumptions,
        not_covered=CERTIFIED if risks else (OTHER_RISKS, *NOT_COVERED),
        warnings=(TUNING_WARNING,),
        reproduction=proof_of(certificate) if isinstance(certificate, Certificate) else {},
    )


def assess_profile(profile: PrivacyProfile, asked: Asked, *, group: tuple[str, Any] | None = None) -> Assessment:
    """Return the exposure of every record; ``group`` is a column's name and values by which it is summarised."""
    section = profile_section(profile, fpr=asked.fpr, group=group)
    worst = section.numbers[0].shown
    return Assessment(
        title=asked.title
        or f"Record by record, if released with {profile.noise}: {len(profile):,} records, {profile.loss} loss, "
        f"Λ = {profile.regularization:g}",
        status="bounded",
        headline=f"Provable upper bound for this very model only if it is released with {profile.noise}: at even odds, "
        f"the most exposed record gives an attacker an advantage of at most {worst}, the median record of at most "
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
