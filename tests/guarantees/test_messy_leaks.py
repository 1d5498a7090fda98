"""Promise: in the files of offices, registers and instruments no record decides how another one's cells are read.

A record goes, or one of its cells is made odd: the statistics asked of the file then move by at most what was charged,
and nothing else that leaves does, whatever conventions its columns follow.
"""

import datetime as dt
from dataclasses import replace

import pytest
from scipy.stats import norm

import deniable as dn
from deniable.tables import ColumnSchema
from guarantees.replay import Recorded

N = 60
DAYS = [dt.date(2023, 1, 1) + dt.timedelta(days=11 * i) for i in range(N)]
SUM = "Summe;56.000,10"
FILES = {  # the decimal mark, the header, each record's line, what stands below
    "German amounts": (",", "Ort;Betrag", [f"Ulm;{1 + i}.{i:03d},50 €" for i in range(N)], [SUM]),
    "a trailing minus": (",", "Ort;Betrag", [f"Ulm;{100 + i},5{'-' * (i % 4 == 0)}" for i in range(N)], []),
    "French spaces": (",", "Ville;Montant", [f"Lyon;{1 + i}\u202f{i:03d},5" for i in range(N)], []),
    "Swiss marks": (".", "Kanton;Betrag", [f"ZH;CHF {1 + i}'{i:03d}.50" for i in range(N)], []),
    "lakhs": ("", "state,income", [f'KA,"1,{i:02d},874"' for i in range(N)], []),
    "dollars": ("", "city,amount", [f'NYC,"(${i},000.50)"' if i % 3 else f'NYC,"${i},000.50"' for i in range(N)], []),
    "percents": ("", "group,rate", [f"g{i % 4},{i % 100} %" for i in range(N)], ["Total,50 %"]),
    "days first": ("", "town,day", [f"Rome,{day:%d/%m/%Y}" for day in DAYS], []),
    "months first": ("", "town,day", [f"NYC,{day:%m/%d/%y} {1 + i % 12}:05 PM" for i, day in enumerate(DAYS)], []),
    "a row of units": ("", "time,temp", ["s,°C", *(f"{i * 0.5},{20 + i % 7}.{i % 10}" for i in range(N))], []),
    "limits": (",", "Probe;Pb", [f"S{i};{'< 0,5' if i % 3 == 0 else f'{i},72'}" for i in range(N)], []),
    "mixed marks": (",", "a;b", [f"x;{i},{i % 10}" if i % 3 else f"x;{i}.{i % 10}" for i in range(N)], []),
    "codes with an E": ("", "lot,n", [f"L{i % 3},{i % 10}E{i % 5}" for i in range(N)], ["* preliminary"]),
    "weeks": ("", "week,n", [f"2023-W{1 + i % 52:02d},{i}" for i in range(N)], []),
    "a cross or nothing": ("", "smoker,n", [f"{'X' * (i % 3 == 0)},{i % 90}" for i in range(N)], []),
    "figures before a year": ("", "month,n", [f"{1 + i % 12:02d}.2021,{i}" for i in range(N)], []),
}
ODD = ["", "see file 4711", "1.234,56", "1,5", "05.04.2021", "13/25/2020", "< 5", "7 kg", "TRUE", "007", "1e400", "5 %"]
LIMIT = dn.Limit(advantage=0.3)


def released(file):
    """Return how to release the statistics of a file whose lines are given, every column's among them."""
    mark, header, *_ = file
    schema = dn.Schema(decimal=mark)
    names = header.replace(";", ",").split(",")
    asked = ["count()", f"count() by {names[0]}", *(f"mean({name})" for name in names)]

    def run(folder_and_lines):
        folder, lines = folder_and_lines
        (folder / "t.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        made = dn.release_statistics(folder / "t.csv", asked, limit=LIMIT, schema=schema)
        return {"numbers": made.to_csv(), "all": str(made), "account": made.certificate.uses}

    return run


def neighbours(file):
    """Yield what was there, and the same with a record fewer, or one with an odd cell in its place."""
    _, header, lines, below = file
    sep, lines = ";" if ";" in header else ",", [*lines, *below]
    yield lines, [lines[:k] + lines[k + 1 :] for k in (0, 1, len(lines) // 2, len(lines) - 1)]
    less = lines[:7] + lines[8:]
    kept = lines[7].split(sep, 1)[0]
    cells = [f'"{odd}"' if sep in odd else odd for odd in ODD]
    yield less, [less[:7] + [line] + less[7:] for line in (f"{kept}{sep}{odd}" for odd in cells)]


def moved(file, folder):
    """Return the largest μ by which a neighbour moved the noisy sums, and everything else that differed."""
    largest, other = 0.0, []
    for lines, near in neighbours(file):
        recorded = Recorded(released(file), (folder, lines))
        assert "error" not in recorded.left, recorded.left["error"]
        for one in near:
            found = recorded.replay((folder, one))
            largest = max(largest, found.mu)
            other += [found.differ] * bool(found.differ)
    return largest, other


@pytest.mark.parametrize("name", FILES)
def test_a_record_moves_the_sums_by_what_is_charged_and_nothing_else(name, tmp_path):
    largest, other = moved(FILES[name], tmp_path)
    assert other == []
    assert 0 < largest <= 2 * norm.ppf(0.65)  # μ of an advantage of 0.3


def test_a_reader_that_looks_at_other_records_is_found(tmp_path, monkeypatch):
    """Negative control: the decimal mark of a column is that of most of its cells."""
    alone = ColumnSchema.read

    def by_most(own, values):
        texts = [str(value) for value in values]
        mark = "," if sum("," in text for text in texts) > sum("." in text for text in texts) else "."
        return alone(replace(own, decimal=mark), values)

    monkeypatch.setattr(ColumnSchema, "read", by_most)
    half = ["x,1.234"] * 200 + ['x,"9,876"'] * 200
    largest, other = moved(("", "a,b", half, []), tmp_path)
    assert other or largest > 2 * norm.ppf(0.65)
