#!/bin/sh
# interpret-core 0.7.8: below δ of about 1e-17 the noise of a private EBM no longer depends on δ, and jumps on the way.
# Expected: more noise for a smaller δ, smoothly: about 7 % from 1e-17 to 1e-18.
# Seen: a jump of more than half there, then the same noise down to 1e-300. μ is searched where δ(ε; μ) = δ, with δ(ε; μ)
# a difference of numbers near 1 made by (erf + 1)/2, which is a multiple of 1.1e-16.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet interpret-core==0.7.8 scikit-learn joblib
cat > "$folder/try.py" <<'END'
import warnings

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier

warnings.simplefilter("ignore")
X = np.random.default_rng(0).uniform(0, 1, (200, 1))
y = (X[:, 0] > 0.5).astype(int)


def noise(delta):
    model = DPExplainableBoostingClassifier(
        epsilon=1.0, delta=delta, max_rounds=10, privacy_bounds=[(0, 1)], feature_types=["continuous"]
    )
    return float(model.fit(X, y).noise_scale_binning_)


seen = {delta: noise(delta) for delta in (1e-15, 1e-17, 1e-18, 1e-30, 1e-300)}
print(seen)
assert seen[1e-17] / seen[1e-15] < 1.15 and seen[1e-18] / seen[1e-17] > 1.5
assert seen[1e-18] == seen[1e-30] == seen[1e-300]
END
"$folder/venv/bin/python" "$folder/try.py"
