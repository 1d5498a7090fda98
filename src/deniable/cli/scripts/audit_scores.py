"""Compare what an attack measures with what was promised; a false promise ends with exit code 1."""

import sys

import numpy as np

import deniable as dn

rng = np.random.default_rng(0)
members, others = rng.normal(0.5, 1, 3_000), rng.normal(0, 1, 3_000)  # your attack's scores, larger for members
verdict = dn.audit_scores(members, others).compare(dn.tradeoff(dn.GaussianDP(0.5)))
print(verdict.outcome)
sys.exit(verdict.outcome == "violated")
