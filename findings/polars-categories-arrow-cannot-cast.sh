#!/bin/sh
# polars 2.1.0 and pyarrow 26.0.1: a Categorical reaches Arrow as dictionary<string_view>, whose cells Arrow shows (to_pylist,
# to_pandas), but cannot decode or cast: "Function 'array_take' has no kernel matching input types (string_view, uint32)".
# The same column of a table made by pyarrow casts. Who casts dictionaries to texts before they are stored needs a second way.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q polars==2.1.0 pyarrow==26.0.1
cat > seen.py <<'PY'
import polars
import pyarrow as pa

words = ["x", "y", "x"]
column = pa.table(polars.DataFrame({"a": polars.Series(words, dtype=polars.Categorical)}))["a"]
print(column.type)
assert str(column.type.value_type) == "string_view"
assert column.to_pylist() == words
assert pa.array(words).dictionary_encode().cast(pa.large_string()).to_pylist() == words
for way in (lambda: column.cast(pa.large_string()), lambda: column.chunk(0).dictionary_decode()):
    try:
        way()
    except pa.ArrowNotImplementedError as error:
        print(error)
    else:
        raise SystemExit("it casts now")
PY
env/bin/python seen.py
