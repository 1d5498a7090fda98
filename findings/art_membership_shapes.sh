#!/bin/sh
# adversarial-robustness-toolbox 1.20.1: infer(..., probabilities=True) of two membership attacks has two shapes.
# MembershipInferenceBlackBox returns (n, 1): the chance of membership. MembershipInferenceBlackBoxRuleBased returns (n, 2):
# (non-member, member). Without probabilities they return (n, 1) and (n,). Who ravels or takes column 0 of a saved array
# gets scores of one attack, and reversed or interleaved ones of the other. scikit-learn alone suffices: no torch.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q adversarial-robustness-toolbox==1.20.1 scikit-learn packaging setuptools requests tqdm six
cat > seen.py <<'PY'
import numpy as np
from art.attacks.inference.membership_inference import (
    MembershipInferenceBlackBox,
    MembershipInferenceBlackBoxRuleBased,
)
from art.estimators.classification import SklearnClassifier
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

X, y = make_classification(800, 8, random_state=0)
X = X.astype(np.float32)
target = SklearnClassifier(RandomForestClassifier(random_state=0).fit(X[:400], y[:400]))
learned = MembershipInferenceBlackBox(target, attack_model_type="rf")
learned.fit(X[:200], y[:200], X[400:600], y[400:600])
rule = MembershipInferenceBlackBoxRuleBased(target)
shapes = {}
for name, attack in (("learned", learned), ("rule", rule)):
    shapes[name] = [attack.infer(X[200:300], y[200:300], probabilities=p).shape for p in (False, True)]
print(shapes)
assert shapes == {"learned": [(100, 1), (100, 1)], "rule": [(100,), (100, 2)]}
both = rule.infer(X[200:300], y[200:300], probabilities=True)
assert np.allclose(both.sum(axis=1), 1)
assert (both.argmax(axis=1) == rule.infer(X[200:300], y[200:300])).all()
PY
env/bin/python seen.py
