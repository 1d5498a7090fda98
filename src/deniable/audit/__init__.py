"""Measured attacks: games, exact intervals, verdicts. Nothing here imports the code that it audits."""

from deniable.audit.canary import Canaries, canaries
from deniable.audit.checking import NothingChecked, PromiseBroken, PromiseCheck, check_promise, promise
from deniable.audit.estimators import attack_estimator, attack_model
from deniable.audit.intervals import Interval
from deniable.audit.one_run import OneRunAudit, audit_one_run
from deniable.audit.record_canaries import RecordCanaries, log_mixture
from deniable.audit.results import AttackScores, RecordExposure
from deniable.audit.scores import ReversedScoresWarning, ScoreAudit, audit_scores
from deniable.audit.scoring import Method as Method
from deniable.audit.sequential import SequentialAudit, SequentialVerdict
from deniable.audit.synthetic import attack_synthetic, synthetic_scores
from deniable.audit.verdict import Verdict
from deniable.tables import read_scores

__all__ = [
    "AttackScores",
    "Canaries",
    "Interval",
    "NothingChecked",
    "OneRunAudit",
    "PromiseBroken",
    "PromiseCheck",
    "RecordCanaries",
    "RecordExposure",
    "ReversedScoresWarning",
    "ScoreAudit",
    "SequentialAudit",
    "SequentialVerdict",
    "Verdict",
    "attack_estimator",
    "attack_model",
    "attack_synthetic",
    "audit_one_run",
    "audit_scores",
    "canaries",
    "check_promise",
    "log_mixture",
    "promise",
    "read_scores",
    "synthetic_scores",
]
