"""Public names live on: what a release had is still found, or says for two minor versions what to write instead."""

from __future__ import annotations

import importlib
import tomllib
import warnings
from pathlib import Path

import pytest
from packaging.version import Version

import deniable
from deniable._renamed import ARGUMENTS, RENAMED

ROOT = Path(__file__).resolve().parents[2]
RELEASED = sorted((ROOT / "tests" / "contracts").glob("names_*.txt"))  # written at each release, one name a line


def found(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("listed", RELEASED, ids=lambda path: path.stem)
def test_names_of_a_release_are_found(listed):
    names = listed.read_text().split()
    assert len(names) > 200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert [name for name in names if found(name) is None] == []


def test_an_old_name_works_and_says_what_to_write():
    with pytest.warns(DeprecationWarning, match=r"humphries is now deniable\.planning\.comparison\.humphries_of.*0\.5"):
        old = found("deniable.planning.comparison.humphries")
    assert old is found("deniable.planning.comparison.humphries_of")
    with pytest.raises(AttributeError, match="no attribute 'humphreys'"):
        found("deniable.planning.comparison.humphreys")


def test_an_old_parameter_works_and_says_what_to_write():
    def calibrated(**size):
        return deniable.calibrate(deniable.GaussianDP, (0.01, 10), advantage=0.1, **size)

    with pytest.warns(DeprecationWarning, match=r"group= is now group_size=.*0\.5"):
        old = calibrated(group=3)
    assert old == calibrated(group_size=3) < calibrated()


def test_what_was_announced_to_go_is_gone():
    """The release that an old name was promised to go in fails here until it is removed."""
    version = Version(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    assert RENAMED
    assert [name for name, new in (RENAMED | ARGUMENTS).items() if Version(new.until) <= version] == []
