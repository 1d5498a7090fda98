"""Every relative link of README and docs leads to a file that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIES = {"architecture.md", "changelog.md", "contributing.md", "security.md"}  # made for the site
MARKDOWN = sorted(p for p in (ROOT / "docs").glob("**/*.md") if "_build" not in p.parts and p.name not in COPIES)
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *MARKDOWN]


def test_links():
    targets = [(page, to) for page in PAGES for to in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())]
    assert [(page.name, target) for page, target in targets if not (page.parent / target).exists()] == []


def test_every_page_of_the_site_is_in_a_table_of_contents():
    docs = ROOT / "docs"
    listed = {"index.md"}
    for page in MARKDOWN:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {str((page.parent / f"{entry}.md").relative_to(docs)) for entry in entries}
    assert {str(page.relative_to(docs)) for page in MARKDOWN} - listed == set()
