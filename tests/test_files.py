"""Files that are written: complete or not at all, for the eyes of those who could read them before, through links."""

import os
import stat

import pytest

from deniable._files import check_writable, replacing, write_atomically

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and links as on POSIX systems")


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


@POSIX
@pytest.mark.parametrize("before", [0o600, 0o640, 0o664])
def test_a_file_that_is_rewritten_keeps_its_mode(tmp_path, before):
    path = tmp_path / "report.html"
    path.write_text("old")
    path.chmod(before)
    with replacing(path) as stream:
        part = next(one for one in tmp_path.iterdir() if one != path)
        assert mode(part) == "0o600"  # nobody else reads it meanwhile, either
        stream.write(b"new")
    assert (path.read_text(), mode(path)) == ("new", oct(before))


@POSIX
def test_a_new_file_has_the_mode_that_files_have_here(tmp_path):
    (tmp_path / "usual").touch()
    assert mode(write_atomically(tmp_path / "new", "x")) == mode(tmp_path / "usual")


@POSIX
def test_a_link_stays_and_what_it_names_is_replaced(tmp_path):
    (tmp_path / "vault").mkdir()
    target, link = tmp_path / "vault" / "model.skops", tmp_path / "model.skops"
    link.symlink_to(os.path.join("vault", "model.skops"))
    assert check_writable("--out", link) == link
    for content in (b"first", b"second"):  # what it names is made, then replaced
        write_atomically(link, content)
        assert link.is_symlink()
        assert (target.is_symlink(), target.read_bytes()) == (False, content)
        target.chmod(0o600)
    assert mode(target) == "0o600"
    assert [path.name for path in (tmp_path / "vault").iterdir()] == ["model.skops"]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def half():
        with replacing(path) as stream:
            stream.write(b"half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
