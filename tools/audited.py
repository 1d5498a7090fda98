"""Judge what pip-audit found: nothing vulnerable, and nothing left unaudited in silence.

    pip-audit --format json --output audit.json; python tools/audited.py audit.json

pip-audit ends well where it could not look a package up (no network, no index), so its exit code alone proves nothing.
Exit code 0: every package but our own was audited; 1: a known vulnerability; 3: packages that could not be audited.
"""

import json
import sys
from pathlib import Path

OURS = "deniable"  # not on the index before its first release


def judged(found: dict) -> tuple[int, list[str]]:
    """Return the exit code and a line for everything that is wrong."""
    packages = [one for one in found["dependencies"] if one["name"] != OURS]
    bad = [f"{one['name']} {one['version']}: {flaw['id']}" for one in packages for flaw in one.get("vulns", ())]
    unseen = [f"{one['name']}: {one['skip_reason']}" for one in packages if "skip_reason" in one]
    if bad:
        return 1, bad
    return (3, [f"{len(unseen)} of {len(packages)} packages could not be audited:", *unseen]) if unseen else (0, [])


def main() -> int:
    """Read the file that is named and print what is wrong."""
    code, lines = judged(json.loads(Path(sys.argv[1]).read_text()))
    print("\n".join(lines) or "every package was audited, none is known to be vulnerable")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
