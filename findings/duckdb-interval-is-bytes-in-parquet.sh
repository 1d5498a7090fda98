#!/bin/sh
# duckdb 2.0.1, pyarrow 26.0.1: an INTERVAL has three forms by the route that it takes. From Arrow's stream it is (months, days,
# nanoseconds), in DuckDB's own data frame a timedelta in which a month is 30 days, and from a Parquet file that DuckDB wrote
# pyarrow gives twelve bytes without a logical type. Only DuckDB reads its file back as a duration.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q duckdb==2.0.1 pyarrow==26.0.1 pandas==3.1.1
cat > seen.py <<'PY'
import datetime as dt

import duckdb
import pyarrow as pa
from pyarrow import parquet

query = "select interval '1 month 3 days 12 hours' as d"
duckdb.sql(f"copy ({query}) to 't.parquet'")
stream, stored = pa.table(duckdb.sql(query))["d"], parquet.read_table("t.parquet")["d"]
print(stream.type, stream.to_pylist(), "|", stored.type, stored.to_pylist())
assert tuple(stream.to_pylist()[0]) == (1, 3, 12 * 3600 * 10**9)
assert str(stored.type) == "fixed_size_binary[12]"
assert stored.to_pylist()[0][:8] == bytes([1, 0, 0, 0, 3, 0, 0, 0])
assert duckdb.sql(query).df()["d"][0] == dt.timedelta(days=33, hours=12)
assert duckdb.sql("select * from 't.parquet'").fetchall() == [(dt.timedelta(days=33, hours=12),)]
PY
env/bin/python seen.py
