"""The check of the built site sees what is broken, and only that."""

from oracles.scripts import loaded


def test_broken_links_anchors_and_foreign_files_are_seen(tmp_path):
    tool = loaded("tools/check_site.py")
    fine = '<h1 id="top">t</h1><a href="b.html#x">b</a><a href="#top">t</a><a href="https://example.org">e</a>'
    (tmp_path / "a.html").write_text(fine)
    (tmp_path / "b.html").write_text('<p id="x"></p><img src="data:,">')
    assert tool.broken(tmp_path) == ([], 2)
    (tmp_path / "a.html").write_text(fine + '<a href="b.html#y">y</a><a href="c.html">c</a><script src="//cdn/x.js">')
    assert tool.broken(tmp_path)[0] == [
        "a.html: b.html#y (no such anchor)",
        "a.html: c.html",
        "a.html: loads //cdn/x.js",
    ]
