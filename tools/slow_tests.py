"""Write tests/slow_tests.txt, the tests that `make test` leaves out, from the times that pytest printed.

.venv/bin/pytest --numprocesses auto --durations=0 -vv > durations.txt
.venv/bin/python tools/slow_tests.py durations.txt

Several such files are joined: of the whole suite, and then of `make test`, where others may be the first to need a
fixture. A test function is slow if all its cases together take ``FUNCTION`` seconds; a file, which is then not even
read, if its slow functions take ``FILE`` seconds. The seconds are of the machine that printed them.
"""

import re
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
LIST = TESTS / "slow_tests.txt"
FUNCTION, FILE = 0.4, 6.0
TIMED = re.compile(r"([\d.]+)s (?:call|setup|teardown) +tests/([^\[\s]+)")


def slow(printed: str) -> set[str]:
    """Return the slow files and functions."""
    functions: Counter[str] = Counter()
    for seconds, name in TIMED.findall(printed):
        functions[name] += float(seconds)
    functions = Counter({name: seconds for name, seconds in functions.items() if seconds >= FUNCTION})
    files: Counter[str] = Counter()
    for name, seconds in functions.items():
        files[name.split("::")[0]] += seconds
    return {name for name, seconds in files.items() if seconds >= FILE} | set(functions)


if __name__ == "__main__":
    found = set().union(*(slow(Path(printed).read_text()) for printed in sys.argv[1:]))
    found = sorted(name for name in found if "::" not in name or name.split("::")[0] not in found)
    LIST.write_text("\n".join([f"# Left out by `make test`. Written by tools/{Path(__file__).name}", *found, ""]))
    print(f"{LIST}: {len(found)} entries")
