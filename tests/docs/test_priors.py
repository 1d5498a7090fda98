"""A sentence that says how often an attacker is right, or how accurate he is, names his prior."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAIM = re.compile(
    r"(?:\bno\b|\bnobody\b|\bany attacker\b|advantage=0\.1|0\.1 means|0\.1:)[^.;]{0,160}?"
    r"(?:right\b[^.;]{0,80}?(?:more (?:often )?than|at most|in at most)|more often than|accuracy above)\s*"
    r"[f\"'{]*\s*(?:\d+\s*%|\{[^}]*\}|0\.\d)",
    re.IGNORECASE,
)
PRIOR = re.compile(r"even odds|prior|equally often", re.IGNORECASE)
FILES = [
    *ROOT.glob("src/deniable/**/*.py"), *ROOT.glob("src/deniable/**/*.j2"), *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/tutorials/*.md"), ROOT / "README.md", ROOT / "paper.md",
]  # fmt: skip


def without_prior(text: str) -> list[str]:
    """Claims without a prior in them or in the 120 letters before; line ends and quotes of source do not count."""
    plain = re.sub(r'["\'`*]*\s*\n\s*f?["\'#>]*\s*', " ", text)
    found = ((m[0], plain[max(0, m.start() - 120) : m.end() + 60]) for m in CLAIM.finditer(plain))
    return [claim for claim, around in found if not PRIOR.search(around)]


def test_every_claim_names_its_prior():
    assert len(FILES) > 100
    wrong = [f"{path.relative_to(ROOT)}: {claim}" for path in FILES for claim in without_prior(path.read_text("utf-8"))]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "no attacker is right about anybody's presence more often than 55 %.",
        "nobody is right about a record's presence more often than 55 % of\nthe time",
        '"nobody can tell whether a {unit} was in more often than {right} of the time"',
        '"no attacker tells members from non-members with accuracy above {accuracy} "',
        "Membership advantage of any attacker: 0.1 means right at most 55 % of the time.",
        "# no attacker is right more than 55 % of the time",
    ],
)
def test_a_claim_without_a_prior_is_found(text):
    assert without_prior(text)
    assert not without_prior(f"At even odds, {text}")
