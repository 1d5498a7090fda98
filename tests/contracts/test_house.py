"""The house itself: files that can be read in one sitting, and tests that can be collected together."""

from collections import Counter
from pathlib import Path

import deniable as dn

MOST_LINES = 400


def too_long(sources):
    return {name: n for name, text in sources.items() if (n := len(text.splitlines())) > MOST_LINES}


def test_no_file_is_longer_than_can_be_read_at_once():
    root = Path(dn.__file__).parent
    assert too_long({str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}) == {}


def test_a_longer_one_would_be_found():
    files = {"short.py": "x\n" * MOST_LINES, "long.py": "x\n" * (MOST_LINES + 1)}
    assert too_long(files) == {"long.py": MOST_LINES + 1}


def test_no_two_files_of_tests_have_one_name():
    """Tests are no packages, so that pytest would not read the second one."""
    names = Counter(path.name for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
