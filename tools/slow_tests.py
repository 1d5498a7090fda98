"""Write tests/slow_tests.txt, the tests that `make test` leaves out, from the CPU time that each test takes.

PYTHONPATH=tools .venv/bin/pytest -p slow_tests -m ''   # measures into out/test_seconds.json, for all of them or a few
.venv/bin/python tools/slow_tests.py                    # writes the list

A test function is slow if all its cases together take more than ``FUNCTION`` seconds, those of its processes counted;
a file is not even read if all its functions are slow. What a new measurement leaves out keeps its former time.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "slow_tests.txt"
TIMES = ROOT / "out" / "test_seconds.json"
FUNCTION = 1.0
measured: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Add the CPU time of one case, with its fixtures, to that of its function."""
    before = sum(os.times()[:4])
    result = yield
    measured[item.nodeid.split("[")[0].removeprefix("tests/")] += sum(os.times()[:4]) - before
    return result


def pytest_sessionfinish():
    """Write what was measured over what was known."""
    TIMES.parent.mkdir(exist_ok=True)
    known = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    TIMES.write_text(json.dumps(known | measured, indent=0, sort_keys=True))


def slow(seconds: dict[str, float]) -> list[str]:
    """Return the slow functions, and the files of slow functions only."""
    files: dict[str, list[str]] = {}
    for name in seconds:
        files.setdefault(name.split("::")[0], []).append(name)
    found = {file: [name for name in names if seconds[name] > FUNCTION] for file, names in files.items()}
    return sorted(name for file in files for name in ([file] if found[file] == files[file] else found[file]))


if __name__ == "__main__":
    found = slow(json.loads(TIMES.read_text()))
    LIST.write_text("\n".join([f"# Left out by `make test`. Written by tools/{Path(__file__).name}", *found, ""]))
    print(f"{LIST}: {len(found)} entries")
