"""How strong the attacks are on models that speak coarsely: AUC and TPR at FPR 1 %, means over targets.

PYTHONPATH=src:tests python benchmarks/audit/signals.py [targets]
"""

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from deniable.audit.rehearsal import Attack, Scorer, plain, rehearse, strongest
from deniable.audit.scoring import METHODS
from deniable.audit.shadow import balanced_design, split_signals, train_models
from oracles.credit_table import credit_table

CREDIT = credit_table()
DIGITS = tuple(part[:1000] for part in load_digits(return_X_y=True))
CASES: dict[str, tuple[Any, Any, int]] = {
    "credit, forest of 100": (RandomForestClassifier(n_estimators=100), CREDIT, 32),
    "credit, forest of 50": (RandomForestClassifier(n_estimators=50), CREDIT, 32),
    "credit, 10 trees of depth 10": (RandomForestClassifier(n_estimators=10, max_depth=10), CREDIT, 32),
    "credit, tree": (DecisionTreeClassifier(), CREDIT, 32),
    "credit, extra trees": (ExtraTreesClassifier(100), CREDIT, 32),
    "credit, boosting": (GradientBoostingClassifier(), CREDIT, 16),
    "credit, saturated boosting": (HistGradientBoostingClassifier(max_iter=300, learning_rate=0.3), CREDIT, 16),
    "digits, forest of 100": (RandomForestClassifier(100), DIGITS, 32),
    "digits, logistic regression": (LogisticRegression(C=100, max_iter=300, tol=1e-3), DIGITS, 32),
    "digits, net": (MLPClassifier((64,), max_iter=60), DIGITS, 16),
}


def strength(scores: np.ndarray, member: np.ndarray) -> tuple[float, float]:
    """Return AUC and TPR at FPR 1 %."""
    outside = np.sort(scores[~member])[::-1]
    return float(roc_auc_score(member, scores)), float(np.mean(scores[member] > outside[int(0.01 * len(outside))]))


def mean(
    attack: Attack, scorer: Scorer, seen: np.ndarray, inside: np.ndarray, outside: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return the strength of an attack, averaged over targets."""
    each = [strength(scorer(attack, one, inside, outside), member) for one, member in zip(seen, targets, strict=True)]
    return np.mean(each, axis=0)


def main() -> None:
    n_targets = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    warnings.simplefilter("ignore")
    print("| data, model | LiRA, logit clipped at 30 | best single method | auto | chosen |\n|---|---|---|---|---|")
    for name, (model, (X, y), k) in CASES.items():
        rng = np.random.default_rng(0)
        shadows, targets = balanced_design(k, len(y), rng), rng.random((n_targets, len(y))) < 0.5
        member = np.concatenate([shadows, targets])
        signal = train_models(model, X, y, "classification", member, list(range(len(member))))
        inside, outside = split_signals(signal[:k], shadows)
        scorer = Scorer.of(signal[:k], "classification")
        rehearsed = rehearse(signal[:k], shadows, scorer)
        chosen = strongest(rehearsed, plain("lira", "classification"))

        seen = signal[k:], inside, outside, targets
        old = mean(plain("lira", "classification"), Scorer("classification", 0.0), *seen)
        singles = {m: mean(plain(m, "classification"), scorer, *seen) for m in METHODS}
        best = max(singles, key=lambda m: singles[m][1])
        cells = [f"{auc:.3f} / {100 * tpr:.1f} %" for auc, tpr in (old, singles[best], mean(chosen, scorer, *seen))]
        print(f"| {name} | {cells[0]} | {cells[1]} ({best}) | {cells[2]} | {chosen} |", flush=True)


if __name__ == "__main__":
    main()
