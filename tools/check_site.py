"""Check every link and anchor of the built site, at the end of ``make site``.

    python tools/check_site.py docs/_build/html

Links to other hosts are counted, not opened. Pages must load nothing from elsewhere, so that search works offline.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
NOT_LOADED = {"canonical", "next", "prev", "search", "index", "author"}  # relations that a browser does not fetch


class Page(HTMLParser):
    """Collects what can be linked to, what is linked, and what is loaded."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read one tag."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if LOADED.get(tag) in given and given.get("rel", "") not in NOT_LOADED:
            self.loads.add(given[LOADED[tag]])


def broken(root: Path) -> tuple[list[str], int]:
    """Return a line for every broken link, and how many links were looked at."""
    pages = {path.resolve(): Page(path.read_text()) for path in root.rglob("*.html") if "_static" not in path.parts}
    found, count = [], 0
    for path, page in pages.items():
        where = path.relative_to(root.resolve())
        for link in page.links | page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    found.append(f"{where}: loads {link}")
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{where}: {link}")
            elif target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{where}: {link} (no such anchor)")
    return sorted(found), count


def main() -> int:
    """Print what is broken."""
    found, count = broken(Path(sys.argv[1]))
    print("\n".join([*found, f"{count} links and files within the site, {len(found)} broken"]))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
