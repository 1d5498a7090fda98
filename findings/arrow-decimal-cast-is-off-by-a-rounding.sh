#!/bin/sh
# pyarrow 26.0.1: a cast from decimal128 to float64 does not give the nearest double: 14 % of amounts with two decimals are
# one rounding off (8138473.39 becomes 8138473.390000001), and differ from the same amount read from a text or by Python.
# Who joins two columns of one table, one cast and one parsed, finds equal amounts unequal; sums differ in the last digits.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pyarrow==26.0.1
cat > seen.py <<'PY'
import random
from decimal import Decimal

import pyarrow as pa

random.seed(0)
cells = [Decimal(random.randrange(10**9)) / 100 for _ in range(10_000)]
cast = pa.array(cells, pa.decimal128(20, 2)).cast(pa.float64()).to_pylist()
off = [(str(cell), found) for cell, found in zip(cells, cast) if found != float(cell)]
parsed = pa.array([str(cell) for cell in cells]).cast(pa.float64()).to_pylist()
print(len(off), "of", len(cells), "differ, such as", off[0])
assert 1200 < len(off) < 1500
assert parsed == [float(cell) for cell in cells]
PY
env/bin/python seen.py
