"""The example of a year: what its commands enter, whatever happens to one of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deniable as dn

SCRIPT = Path(__file__).parents[2] / "examples" / "year_of_an_office.sh"


@pytest.mark.slow
def test_a_year_of_an_office(tmp_path):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert "its entry stays" in done.stdout
    assert "too little for this release" in done.stderr
    assert "refused: nothing was released" in done.stdout
    ledger = dn.Ledger(tmp_path / "people.ledger")
    names = [entry.name for entry in ledger.entries]
    assert sum(name.startswith("statistics") for name in names) == 13  # twelve tables, and the one that was killed
    assert sum(name.startswith("model") for name in names) == 2  # the third was refused
    assert ledger.verify().holds
    assert ledger.limit.is_met(dn.tradeoff(ledger.mechanism()))
    assert not (tmp_path / "table-13.csv").exists()
    page = (tmp_path / "year.html").read_text()
    assert ledger.head[:12] in page
    assert "risk model of the laboratory" in page


@pytest.mark.slow
def test_the_page_of_a_ledger_loads_no_training(tmp_path):
    """It took 3.5 of its CPU seconds: a function of curves stood beside the pages of models."""
    code = "import sys, deniable as dn; dn.assess(dn.Ledger(sys.argv[1])).to_html(); print('sklearn' in sys.modules)"
    command = [sys.executable, "-c", code, str(tmp_path / "people.ledger")]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout == "False\n"
