#!/bin/sh
# JAX Privacy 2.0.0 with dp-accounting 0.6.0: a plan for replaced records draws twice the noise that its budget needs.
# Expected: for full batches, replacing a record moves a sum by two norms, so twice the noise of zeroing one out.
# Seen: four times. dp-accounting's PLD accountant reads a Gaussian event's multiplier in norms of *one* record and
# doubles the sensitivity for REPLACE_ONE; the plan takes the calibrated multiplier in units of its own sensitivity for
# REPLACE_ONE, which is two norms again.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax-privacy==2.0.0 dp-accounting==0.6.0 jax==0.10.2
cat > "$folder/try.py" <<'END'
import jax.numpy as jnp
import numpy as np
from dp_accounting import NeighboringRelation, pld
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig


def noise(relation):
    plan = BandMFExecutionPlanConfig(
        iterations=1, strategy=np.array([1.0]), epsilon=1.0, delta=1e-5, noise_seed=0,
        accountant=pld.PLDAccountant(relation),
    ).plan
    zeros = jnp.zeros(100_000)
    transform = plan.noise_addition_transform
    drawn, _ = transform.update(zeros, transform.init(zeros))
    return plan.dp_event.event.event.noise_multiplier, float(np.std(drawn))


out, replaced = noise(NeighboringRelation.REPLACE_SPECIAL), noise(NeighboringRelation.REPLACE_ONE)
print("zeroed out: multiplier %.4f, noise %.3f" % out)
print("replaced:   multiplier %.4f, noise %.3f" % replaced)
assert abs(out[0] - 3.7306) < 1e-3 and abs(out[1] / out[0] - 1) < 0.02
assert abs(replaced[0] / out[0] - 2) < 1e-3 and abs(replaced[1] / out[1] - 4) < 0.02
END
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/try.py"
