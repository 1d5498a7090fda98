#!/bin/sh
# The schema of the registry of differential privacy deployments (OpenDP, July 2026) wants publication_date as a string.
# Expected: publication_date: 2026-01-01, as YAML has dates, is taken.
# Seen: PyYAML 6.0.2 reads it as datetime.date, and jsonschema 4.23.0, with the date format checked, says that it is not of
# type 'string'; the same entry with the date in quotes is taken. The part of the schema that
# matters stands below, in own words.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyyaml==6.0.2 jsonschema==4.23.0
cat > "$folder/try.py" <<'END'
from jsonschema import Draft7Validator
from yaml import Loader, load

schema = {
    "type": "object",
    "properties": {
        "publication_date": {"type": "string", "format": "date"},
    },
}
check = Draft7Validator(schema, format_checker=Draft7Validator.FORMAT_CHECKER)


def faults(text):
    return [error.message for error in check.iter_errors(load(text, Loader=Loader))]


seen = {
    text: faults(text)
    for text in (
        "publication_date: 2026-01-01",
        'publication_date: "2026-01-01"',
    )
}
for text, found in seen.items():
    print(f"{text:32} {found or 'taken'}")
assert seen["publication_date: 2026-01-01"] == ["datetime.date(2026, 1, 1) is not of type 'string'"]
assert not seen['publication_date: "2026-01-01"']
END
"$folder/venv/bin/python" "$folder/try.py"
