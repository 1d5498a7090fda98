#!/bin/sh
# pyarrow 26.0.1: the type of a list is inferred from its mixture, and some mixtures lose cells without an error.
# [date, 0.5, 1.0] becomes three dates: the numbers are cut to whole days since 1970. [date, datetime] becomes two dates: the
# time of day is gone. The other way round, [datetime, date], it is an error, as [date, "text"] is.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pyarrow==26.0.1
cat > seen.py <<'PY'
import datetime as dt

import pyarrow as pa

day, moment = dt.date(2021, 4, 19), dt.datetime(2021, 4, 19, 12, 30)
numbers, times = pa.array([day, 0.5, 1.0]), pa.array([day, moment])
print(numbers.type, numbers.to_pylist())
print(times.type, times.to_pylist())
assert numbers.to_pylist() == [day, dt.date(1970, 1, 1), dt.date(1970, 1, 2)]
assert times.to_pylist() == [day, day]
for mixed in ([moment, day], [day, "text"]):
    try:
        pa.array(mixed)
    except (pa.ArrowException, TypeError) as error:
        print(mixed, type(error).__name__)
    else:
        raise SystemExit("no error any more")
PY
env/bin/python seen.py
