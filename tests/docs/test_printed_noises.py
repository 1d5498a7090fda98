"""Every noise that a page prints for a guarantee has it as it is printed: rounded up, never to the nearest."""

import re
from pathlib import Path

import pytest

import deniable as dn

ROOT = Path(__file__).resolve().parents[2]
SIX = [[0.9, 0.1], [0.5, 0.5]]
TENTH = dn.Limit(advantage=0.1)
IDENTIFIED = dn.Limit(tpr=1e-4, fpr=1e-5)
ONE = dn.Limit(epsilon=1.0, delta=1e-5)
PLAN, RISKS, THEIRS = "docs/calibration.md", "docs/risks.md", "benchmarks/accounting/results/peers.md"


def run(noise):
    return dn.SubsampledGaussian(noise, 0.01, 5000)


def planned(noise):
    return dn.SubsampledGaussian(noise, 0.005, 1000)


def allocated(noise):
    return dn.RandomAllocation(noise, 200, 5)


def cut(noise):
    return dn.TruncatedPoisson(noise, 0.005, 1000, 345, 50_000)


def drawn(noise):
    return dn.WithoutReplacement(noise, 250, 50_000, 1000)


def shuffled(noise):
    return dn.ShuffledBatches(noise, 200, 5)


def full(noise):
    return dn.GaussianDP(1 / noise)


def stated(epsilon):
    return dn.ApproximateDP(epsilon, 1e-5)


PRINTED = [  # page, the words around, the mechanism of what is printed, its limit, the worlds
    (PLAN, r"5e-7, 6\)\n([\d.]+)", run, TENTH, None),
    (PLAN, r"5e-5, 4\)\)\n([\d.]+)", run, IDENTIFIED, None),
    (PLAN, r"5e-5, 4\)\)\n[\d.]+\n([\d.]+)", run, dn.Limit(accuracy=0.95, prior=0.9), None),
    (PLAN, r"5e-5, 4\)\)\n[\d.]+\n[\d.]+\n([\d.]+)", run, ONE, None),
    (PLAN, r"integer=True\)\n(\d+)", lambda n: dn.SubsampledGaussian(1.0, 0.01, int(n)), TENTH, None),
    (PLAN, r"- 5e-7, 6\)\n([\d.]+)", lambda q: dn.SubsampledGaussian(1.0, q, 5000), TENTH, None),
    (RISKS, r"5e-5, 4\)\)\n([\d.]+)", run, dn.Limit(reconstruction=0.01, baseline=0.001), None),
    (RISKS, r"5e-5, 4\)\)\n[\d.]+\n([\d.]+)", run, dn.Limit(singling_out=0.1, n=1000, weight=1e-6), None),
    (RISKS, r"5e-5, 4\)\)\n[\d.]+\n[\d.]+\n([\d.]+)", run, dn.Limit(attribute=0.75, prior=SIX), None),
    (RISKS, r"5e-5, 4\)\)\n[\d.]+\n[\d.]+\n[\d.]+\n([\d.]+)", run, dn.Limit(advantage=0.1, group_size=3), None),
    (RISKS, r'"replace"\) \+ 5e-5, 4\)\n([\d.]+)', run, TENTH, "replace"),
    (RISKS, r"noise multiplier ([\d.]+):", run, dn.Limit(reconstruction=0.01, baseline=0.001), None),
    ("docs/report.md", r"multiplier ([\d.]+) instead of 1", run, TENTH, None),
    ("docs/bounds.md", r"epsilon ([\d.]+): advantage", stated, dn.Limit(advantage=0.2), None),
    ("docs/evidence.md", r"σ = ([\d.]+): the attack", run, IDENTIFIED, None),
    ("src/deniable/limits.py", r"5e-4, 3\)\n +([\d.]+)", run, IDENTIFIED, None),
    (THEIRS, r"advantage 0.1 \| deniable \| [\d.]+ \| ([\d.]+)", run, TENTH, None),
    (THEIRS, r"1e-05 \| deniable \| [\d.]+ \| ([\d.]+)", run, IDENTIFIED, None),
    ("docs/papers/thudi2022.md", r"Noise ([\d.]+) suffices", full, ONE, None),
    ("docs/papers/mahloujifar2022.md", r"Noise ([\d.]+) is \(1, 1e-5\)", full, ONE, None),
    ("papers/mahloujifar2022/appendix_g.py", r"σ = ([\d.]+), one step", full, ONE, None),
]  # fmt: skip

PLANNED = [
    (PLAN, r"at 345 \| added or removed \| ([\d.]+)", planned, TENTH, None),
    (PLAN, r"at 345 \| added or removed \| ([\d.]+)", cut, TENTH, None),
    (PLAN, r"bins\) \| added or removed \| ([\d.]+)", allocated, TENTH, None),
    (PLAN, r"\| Poisson \| replaced \| ([\d.]+)", planned, TENTH, "replace"),
    (PLAN, r"at 345 \| replaced \| ([\d.]+)", cut, TENTH, "replace"),
    (PLAN, r"bins\) \| replaced \| ([\d.]+)", allocated, TENTH, "replace"),
    (PLAN, r"replacement \| replaced \| ([\d.]+)", drawn, TENTH, "replace"),
    (PLAN, r"shuffled \| replaced \| ([\d.]+)", shuffled, TENTH, "replace"),
]  # fmt: skip


def keeps(page, words, mechanism, limit, worlds):
    found = re.search(words, (ROOT / page).read_text())
    assert found, "the page says something else: write it into the table"
    return limit.is_met(dn.tradeoff(mechanism(float(found[1])), adjacency=worlds))


@pytest.mark.parametrize("row", PRINTED, ids=[f"{row[0]} {row[1]}" for row in PRINTED])
def test_a_printed_noise_keeps_what_the_page_says_of_it(row):
    assert keeps(*row)


@pytest.mark.parametrize("row", PLANNED, ids=[row[1] for row in PLANNED])
def test_a_planned_noise_keeps_what_the_page_says_of_it(row):
    assert keeps(*row)


def test_no_page_rounds_a_noise_that_was_searched_for_to_the_nearest():
    rooms = [ROOT / room for room in ("docs", "examples", "src")]
    pages = [ROOT / "README.md", *(path for room in rooms for kind in ("md", "py") for path in room.rglob(f"*.{kind}"))]
    nearest = re.compile(r"round\((dn\.)?calibrate(?!.* [+-] 5e-)|round\((sigma|noise), |\{(sigma|noise):\.\d+[fg]\}")
    assert len(pages) > 100
    assert [path.name for path in pages if "calibrate(" in (text := path.read_text()) and nearest.search(text)] == []
