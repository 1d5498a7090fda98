"""Files that are written: complete or not at all, for the eyes of those who could read them before, through links."""

import os
import pickle
import stat
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.svm import LinearSVC

import deniable as dn
import deniable.cli
from deniable._files import MODEL_FORMAT, check_writable, replacing, write_atomically
from deniable.cli._app import run

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


def saved(path, model):
    path.write_bytes(skops.io.dumps(model))
    return path


def changed(path, old, new):
    """The same archive with another text in its schema."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    assert old.encode() in held["schema.json"]
    held["schema.json"] = held["schema.json"].replace(old.encode(), new.encode())
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)


def test_a_model_of_another_format_is_refused_with_the_version_that_reads_it(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    private = dn.PrivateClassifier(advantage=0.5, ranges={0: (-3, 3), 1: (-3, 3)}).fit(X, y)
    released = dn.MembershipPrivate(LinearSVC(), advantage=0.5, n_resamples=20, random_state=0).fit(X, y)
    (tmp_path / "rows.csv").write_text("0,1\n1,2\n")
    for model in (private, released):
        pickled = pickle.dumps(model)
        assert np.all(pickle.loads(pickled).predict(X) == model.predict(X))
        with monkeypatch.context() as later:  # as the next version will write and read
            later.setattr("deniable._files.MODEL_FORMAT", MODEL_FORMAT + 1)
            later.setattr("deniable._files.version", lambda _: "9.1.0")
            of_later, path = pickle.dumps(model), saved(tmp_path / "model.skops", model)
            with pytest.raises(dn.InputError, match=r"has format 2, and deniable 9.1.0 reads format 3"):
                pickle.loads(pickled)
        with pytest.raises(dn.InputError, match=r"has format 3, .* reads format 2; .* pip install 'deniable==9.1.0'"):
            pickle.loads(of_later)
        assert run(["predict", str(path), str(tmp_path / "rows.csv")]) == 2
        assert "'deniable==9.1.0'" in capsys.readouterr().err
    changed(saved(tmp_path / "model.skops", private), "GaussianTradeoff", "Forgotten")
    assert run(["predict", str(path), str(tmp_path / "rows.csv")]) == 2
    assert "could not be read" in capsys.readouterr().err
