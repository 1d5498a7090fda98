#!/bin/sh
# duckdb 2.0.1, pyarrow 26.0.1: a BIT that goes through Arrow is plain binary whose first byte counts the padding: nothing tells it
# from a BLOB, and decoded as text it is another word. A BIGNUM beside it is an extension type that names DuckDB and its type
# (arrow.opaque); a BIT copied to Parquet is its text.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q duckdb==2.0.1 pyarrow==26.0.1
cat > seen.py <<'PY'
import duckdb
import pyarrow as pa
from pyarrow import parquet

query = "select '10110'::BIT as bits, 'ab'::BLOB as blob, 7::BIGNUM as large"
held = pa.table(duckdb.sql(query))
print(held.schema, held["bits"].to_pylist())
assert held["bits"].type == held["blob"].type == pa.binary()
assert not any(field.metadata for field in held.schema.remove(2))
assert held["bits"].to_pylist() == [bytes([3, 0b11110110])]  # three bits of padding, set, then 10110
assert (held["large"].type.extension_name, held["large"].type.type_name) == ("arrow.opaque", "bignum")
assert duckdb.sql("select bits from held").types == ["BLOB"]  # nor does DuckDB know its own column again
duckdb.sql(f"copy ({query}) to 't.parquet'")
assert parquet.read_table("t.parquet")["bits"].to_pylist() == ["10110"]
PY
env/bin/python seen.py
