#!/bin/sh
# opake-accounting 0.16.1: what an accountant saves is a tree, a level deeper at each change of settings.
# Expected: as in Opacus, a list of phases (noise, rate, steps), in which steps of equal settings are one phase.
# Seen: equal steps that follow each other are one node with a count. Two settings that take turns never merge: each step
# wraps all steps before it in another pair, so that a reader must not recurse, and equal steps must be added up by it.
# Needs a Python in which data classes may have a slot for weak references and an abstract base (3.13 does): PYTHON=…
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet opake-accounting==0.16.1
"$folder/venv/bin/pip" install --quiet --no-deps opake-dpsgd==0.16.1  # its accounting alone needs no torch
cat > "$folder/try.py" <<'END'
from opake.api.accounting.core import Accountant
from opake.api.accounting.dpsgd import gaussian, poisson
from opake.serialization import state_dict


def depth(node):
    found = 1
    while node["type"] == "Composed":
        node, found = node["left"], found + 1
    return found


one, other = poisson(gaussian(1.0), 0.01), poisson(gaussian(2.0), 0.01)
alike, turns = Accountant(), Accountant()
for step in range(40):
    alike, turns = alike | one, turns | (one if step % 2 else other)
saved = state_dict(alike)["process"]
print(saved["type"], saved["count"], depth(state_dict(turns)["process"]))
assert (saved["type"], saved["count"]) == ("Repeated", 40)
assert depth(state_dict(turns)["process"]) == 40
END
"$folder/venv/bin/python" "$folder/try.py"
