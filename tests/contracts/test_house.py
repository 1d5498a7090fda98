"""The house itself: files that can be read in one sitting, and tests that can be collected together."""

import ast
import io
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

import deniable as dn

MOST_LINES = 300  # lines of code: the longest docstring is not what makes a file hard to follow
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def docstring_lines(text):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            yield from range(node.body[0].lineno, node.body[0].end_lineno + 1)


def code_lines(text):
    """Lines that hold code: no blank line, no comment, no docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    held = {line for t in tokens if t.type not in NO_CODE for line in range(t.start[0], t.end[0] + 1)}
    return len(held - set(docstring_lines(text)))


def too_long(sources):
    return {name: n for name, text in sources.items() if (n := code_lines(text)) > MOST_LINES}


def test_no_file_is_longer_than_can_be_read_at_once():
    root = Path(dn.__file__).parent
    assert too_long({str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}) == {}


def test_a_longer_one_would_be_found_and_docstrings_and_comments_do_not_count():
    code = '"""Two\n\nlines."""\n\n# a comment\nx = """no\ndocstring"""\n'
    assert code_lines(code) == 2
    files = {"short.py": code + "x\n" * (MOST_LINES - 2), "long.py": code + "x\n" * (MOST_LINES - 1)}
    assert too_long(files) == {"long.py": MOST_LINES + 1}


def test_no_two_files_of_tests_have_one_name():
    """Tests are no packages, so that pytest would not read the second one."""
    names = Counter(path.name for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_mutation_breaks_a_line_that_is_there():
    """Its line moved with the code in ten of 56 before this test: what is not there is never broken, nor found."""
    root = Path(dn.__file__).parent
    edits = tomllib.loads((Path(__file__).parents[2] / "tools" / "mutations.toml").read_text())["mutation"]
    assert len(edits) >= 56
    assert [edit["what"] for edit in edits if (root / edit["file"]).read_text().count(edit["old"]) != 1] == []
