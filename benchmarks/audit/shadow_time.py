"""How long 64 shadow logistic regressions on breast cancer take (wall time, on as many processes as asked).

python benchmarks/audit/shadow_time.py [n_jobs]
"""

from __future__ import annotations

import sys
import time

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deniable as dn


def main() -> None:
    n_jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=10, max_iter=1000))
    for attempt in range(3):
        start = time.perf_counter()
        scores = dn.attack_estimator(model, X, y, method="lira", n_shadows=64, rng=attempt, n_jobs=n_jobs)
        trained = time.perf_counter()
        _ = scores.audit().advantage()
        print(f"64 shadows, n_jobs={n_jobs}: {trained - start:.2f} s; audit {time.perf_counter() - trained:.3f} s")


if __name__ == "__main__":
    main()
