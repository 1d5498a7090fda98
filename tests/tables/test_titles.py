"""A title above the header, or a cover sheet: each command says so by the header alone, and what to do."""

import pytest

from deniable.cli._app import run
from oracles.sheets import xlsx

ROWS = [["age", "town", "y"], *[[20 + i % 50, "AB"[i % 2], "yn"[i % 2]] for i in range(60)]]
BOOKS = {
    "title": {"Tab": [["Values 2024", None, None], *ROWS]},
    "two cells": {"Tab": [["Values", "2024", None], *ROWS]},
    "cover": {"Cover": [["Report"], ["of 2024"]], "Tab": ROWS},
}


@pytest.mark.parametrize("sheets", BOOKS.values(), ids=BOOKS)
@pytest.mark.parametrize(
    "words",
    ["train {} --target y --out m.skops", "publish {} --statistic mean(age) --advantage 0.2", "check {} --target y"],
)
def test_a_title_above_the_header_is_named_with_its_remedy(tmp_path, monkeypatch, capsys, sheets, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.xlsx").write_bytes(xlsx(sheets))
    assert run(words.format("t.xlsx").split()) == 2
    out, said = capsys.readouterr()
    told = " ".join((out + said).split())
    assert "if this is a title, delete it, or name another sheet (--sheet)" in told
    assert "train uses" not in told
    if "Cover" in sheets:
        assert "'Tab' (--sheet)" in told
