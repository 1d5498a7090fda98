"""Every relative link of README and docs leads to a file and a heading that exist; pages stay short."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIES = {"architecture.md", "changelog.md", "contributing.md", "security.md"}  # made for the site
MARKDOWN = sorted(p for p in (ROOT / "docs").glob("**/*.md") if "_build" not in p.parts and p.name not in COPIES)
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *MARKDOWN]


def test_links():
    targets = [(page, to) for page in PAGES for to in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())]
    assert [(page.name, target) for page, target in targets if not (page.parent / target).exists()] == []


def anchors(page: Path) -> set[str]:
    """Names of the headings of a page, as MyST and GitHub make them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head).lower() for head in heads]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


def test_links_to_headings():
    found = [
        (page.name, f"{to}#{name}")
        for page in PAGES
        for to, name in re.findall(r"\]\((?!https?://)([^)#\s]*\.md|)#([^)\s]+)\)", page.read_text())
        if name not in anchors(page.parent / to if to else page)
    ]
    assert found == []


def test_guides_are_short():
    """At most 27,000 words in all, and 1,000 a page."""
    words = {str(page.relative_to(ROOT)): len(page.read_text().split()) for page in MARKDOWN}
    assert {name: n for name, n in words.items() if n > 1_000} == {}
    assert sum(words.values()) <= 27_000


def test_every_page_of_the_site_is_in_a_table_of_contents():
    docs = ROOT / "docs"
    listed = {"index.md"}
    for page in MARKDOWN:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {str((page.parent / f"{entry}.md").relative_to(docs)) for entry in entries}
    assert {str(page.relative_to(docs)) for page in MARKDOWN} - listed == set()
