#!/bin/sh
# SACRO-ML 2.0.1: the column `member_prob` of LIRAAttack(report_individual=True) is a probability in mode "offline" only.
# In mode "offline-carlini" it is minus a log density: negative, or far above 1 (about 10^4 for a random forest). It is not
# in report.json either, but in a .npz beside it. Who thresholds it at 0.5, or reads it as a chance, is misled.
# Needs Python 3.11 and network; torch is a dependency of sacroml.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q "torch==2.13.0" "sacroml==2.0.1"
cat > seen.py <<'PY'
import glob
import json

import numpy as np
from sacroml.attacks.likelihood_attack import LIRAAttack
from sacroml.attacks.target import Target
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

X, y = make_classification(400, 8, random_state=0)
model = RandomForestClassifier(random_state=0).fit(X[:200], y[:200])
target = Target(model=model, X_train=X[:200], y_train=y[:200], X_test=X[200:], y_test=y[200:])
for mode, chance in (("offline", True), ("offline-carlini", False)):
    LIRAAttack(output_dir=mode, n_shadow_models=20, report_individual=True, mode=mode).attack(target)
    (arrays,) = glob.glob(f"{mode}/*.npz")
    found = np.load(arrays)["individual.member_prob"]
    print(f"{mode}: member_prob from {found.min():.3g} to {found.max():.3g}")
    assert ((found >= 0) & (found <= 1)).all() == chance
    assert "member_prob" not in json.dumps(json.load(open(f"{mode}/report.json")))
assert found.min() < 0 and found.max() > 100
PY
env/bin/python seen.py
