"""Promises as tests: broken ones fail, kept ones pass within their budget, and power is stated."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import deniable as dn
from deniable.audit import NothingChecked, PromiseBroken

ROOT = Path(__file__).resolve().parents[2]


def laplace(scale, seed=0):
    rng = np.random.default_rng(seed)
    return lambda inside: inside + rng.laplace(scale=scale)


def test_a_kept_promise_passes_and_its_power_is_stated():
    found = dn.audit.check_promise(laplace(1.0), dn.PureDP(1.0), trials=300)
    assert found.verdict.outcome == "consistent"
    assert (found.pilot, found.trials, found.verdict.pairs) == (60, 300, 240)
    assert 1 < found.could_have_found < 3
    assert "could have found an ε of" in str(found)


def test_power_is_what_it_says():
    """A randomised response at the stated ε is found about half of the time, one at twice the excess nearly always."""
    power = dn.audit.check_promise(laplace(1.0), dn.PureDP(1.0), trials=300).could_have_found
    found = {}
    for epsilon in (power, 1 + 2 * (power - 1)):
        honest, rng, runs = 1 / (1 + np.exp(-epsilon)), np.random.default_rng(1), 20
        found[epsilon] = 0
        for _ in range(runs):
            q = dn.SequentialAudit(dn.PureDP(1.0), 0.999)
            q.update((rng.random(240) < honest).astype(float), (rng.random(240) > honest).astype(float))
            found[epsilon] += q.violated
    half, nearly_all = found.values()
    assert 4 <= half <= 18
    assert nearly_all >= 18


@pytest.mark.parametrize("trials", [400])
def test_a_tenth_of_the_noise_is_found(trials):
    found = dn.audit.check_promise(laplace(0.1), dn.PureDP(1.0), trials=trials)
    assert found.verdict.violated
    assert found.trials < trials  # at once


def noise_from_the_data(rng):
    return lambda inside: rng.normal(scale=3.0 if inside else 1.0)


def words(rng):
    return lambda inside: "ill" if rng.random() < (0.95 if inside else 0.05) else "well"


def one_coordinate(rng):
    return lambda inside: rng.laplace(size=20) + np.eye(20)[3] * 6 * inside


def a_band(rng):
    """The same mean and variance in both worlds, but never near the middle with the record."""
    return lambda inside: rng.choice([-1.0, 1.0]) + 0.2 * rng.normal() if inside else 1.02 * rng.normal()


@pytest.mark.parametrize("broken", [noise_from_the_data, words, one_coordinate, a_band])
def test_many_kinds_of_leaks_are_found_without_being_told_where(broken):
    assert dn.audit.check_promise(broken(np.random.default_rng(2)), dn.PureDP(0.5), trials=800).verdict.violated


def test_the_decorator_fails_like_a_test():
    rng = np.random.default_rng(4)

    @dn.audit.promise(dn.PureDP(1.0), trials=300)
    def kept(inside, scale):
        """A count."""
        return inside + rng.laplace(scale=scale)

    kept(scale=1.0)
    assert kept.__doc__ == "A count."
    assert kept.deniable_check.verdict.outcome == "consistent"
    with pytest.raises(PromiseBroken, match=r"violated at 99\.9 %.*PureDP"):
        kept(scale=0.1)
    with pytest.raises(NothingChecked, match="raise trials"):
        dn.audit.promise(dn.PureDP(9.0), trials=50)(lambda inside: rng.normal())()


SEEDED = "import sys, pytest, entropy; entropy.replace_entropy(0); sys.exit(pytest.main(sys.argv[1:]))"


def run_pytest(*words, cwd):
    """Run pytest with draws that come again: one kept promise in a thousand would be called broken."""
    command = [
        sys.executable,
        "-c",
        SEEDED,
        "-p",
        "pytest_deniable",
        "-p",
        "no:cacheprovider",
        "-q",
        *map(str, words),
    ]
    paths = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": paths}
    )


def test_the_example_runs_under_pytest(tmp_path):
    junit = tmp_path / "junit.xml"
    done = run_pytest(ROOT / "examples/check_promises.py", "--deniable-trials", 300, "--junit-xml", junit, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "2 passed, 1 xfailed" in done.stdout
    assert "privacy promises" in done.stdout
    assert "300 releases in each world could have found an ε of" in done.stdout
    cases = ElementTree.parse(junit).getroot().iter("testcase")
    told = {case.get("name"): case.find("properties/property").get("value") for case in cases}
    assert told["test_noisy_total"].startswith("consistent at 99.9 %")
    assert told["test_forgotten_sensitivity"].startswith("violated")


BROKEN = """
import numpy as np, deniable
@deniable.audit.promise(deniable.PureDP(1.0))
def test_a_tenth_of_the_noise(inside):
    return inside + np.random.default_rng().laplace(scale=0.1)
"""


@pytest.mark.skipif(os.name == "nt", reason="the action's shell is bash")
def test_the_action_fails_the_build_and_writes_its_summary(tmp_path):
    yaml = pytest.importorskip("yaml")
    step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][-1]
    (tmp_path / "test_broken.py").write_text(BROKEN)
    given = {"TESTS": "-p pytest_deniable -q .", "TRIALS": "300", "SECONDS_EACH": "20", "JUNIT": "found.xml"}
    assert set(step["env"]) == set(given)
    script = f'python() {{ "{sys.executable}" "$@"; }}\n{step["run"]}'
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],  # as GitHub's runner calls it
        cwd=tmp_path, env=os.environ | given | {"GITHUB_STEP_SUMMARY": "summary.md"}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert b"PromiseBroken: violated at 99.9 %" in done.stdout
    assert "violated at 99.9 % confidence" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert (tmp_path / "found.xml").exists()


def test_the_plugin_imports_nothing_of_deniable():
    code = "import sys, pytest_deniable; sys.exit('deniable' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
