#!/bin/sh
# dp-accounting 0.6.0: a DpEvent saved as JSON by its to_named_tuple() is a list of values, and is not read back.
# Expected: to_named_tuple(), whose tuples name module, class and every field, survives json.dumps and json.loads.
# Seen: json.dumps writes the values alone, in the order of the fields: the first two say module and class, and which of
# the others is a rate, a noise or a count is said by their places only. from_named_tuple() takes its own tuple and refuses
# what JSON gave back, since a list has no fields. Who saves a run should keep the class's fields beside the values.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dp-accounting==0.6.0
cat > "$folder/try.py" <<'END'
import json

import dp_accounting as dp

step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
run = dp.SelfComposedDpEvent(step, 10)
named = run.to_named_tuple()
assert named.count == 10 and named.event.sampling_probability == 0.01
assert dp.DpEvent.from_named_tuple(named) == run
saved = json.loads(json.dumps(named))
print(saved)
assert saved == [
    "dp_accounting.dp_event",
    "SelfComposedDpEvent",
    ["dp_accounting.dp_event", "PoissonSampledDpEvent", 0.01, ["dp_accounting.dp_event", "GaussianDpEvent", 1.0]],
    10,
]
try:
    dp.DpEvent.from_named_tuple(saved)
except AttributeError as error:
    print(f"not read back: {error}")
else:
    raise SystemExit("read back after all")
END
"$folder/venv/bin/python" "$folder/try.py"
