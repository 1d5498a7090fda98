"""Whatever a table comes in, each of its cells is read alone: other records and types of columns change no code."""

import numpy as np
import pandas as pd
import pytest

from deniable.tables import read_cells
from deniable.tables.columnar import on_disk
from deniable.tables.files import open_table
from oracles.sheets import xlsx

N = 12
RNG = np.random.default_rng(0)
BASE = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "income": RNG.lognormal(10, 1, N).round(2),
        "town": RNG.choice(["Ulm", "Köln", "7", "Rome, Texas"], N),
        "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 9_000_000, N), unit="s"),
        "member": RNG.random(N) < 0.5,
    }
)
ODD = pd.DataFrame(
    {
        "age": ["see Müller", None, 1.5, "45,5", True, "2021-04-19", 10**30],
        "income": ["1,234.50", "n.a.", "inf", None, "€ 7", "-", 3],
        "town": [7, "ULM", None, "TRUE", "19.04.2021", " Ulm ", '"Ulm"'],
        "joined": ["19.04.2021", "soon", None, "0001-01-01", 7, "04/05/2021", ""],
        "member": ["yes", None, 1, "TRUE", "no", 2.5, ""],
    },
    dtype=object,
)


def of_csv(frame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    return open_table(folder / "t.csv").frame


def of_parquet(frame, folder):
    try:
        frame.to_parquet(folder / "t.parquet", index=False)
    except (TypeError, ValueError, OverflowError):  # a file has one type a column
        frame.astype(str).to_parquet(folder / "t.parquet", index=False)
    return open_table(folder / "t.parquet").frame


def of_feather(frame, folder):
    frame.astype(str).to_feather(folder / "t.feather")
    return open_table(folder / "t.feather").frame


def of_excel(frame, folder):
    pytest.importorskip("python_calamine")
    rows = frame.astype(object).where(frame.notna(), None).to_numpy(dtype=object)
    cells = [[cell.item() if hasattr(cell, "item") else cell for cell in row] for row in rows]
    (folder / "t.xlsx").write_bytes(xlsx({"people": [list(frame.columns), *cells]}))
    return open_table(folder / "t.xlsx").frame


def of_dask(frame, _):
    return on_disk(pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3, sort=False))


READERS = {
    "frame": lambda frame, _: frame,
    "objects": lambda frame, _: frame.astype(object),
    "texts": lambda frame, _: frame.astype(str),
    "categories": lambda frame, _: frame.astype("category"),
    "array": lambda frame, _: pd.DataFrame(frame.to_numpy(), columns=frame.columns),
    "csv": of_csv,
    "parquet": of_parquet,
    "feather": of_feather,
    "excel": of_excel,
    "blocks": lambda frame, _: on_disk([frame[:5], frame[5:].convert_dtypes() if len(frame) > 5 else frame[5:]]),
    "dask": of_dask,
}


def codes(frame, read, folder):
    opened = read(frame.reset_index(drop=True), folder)
    columns = [read_cells(opened[name]) for name in BASE.columns]
    return [*zip(*((*zip(c.kind.tolist(), c.spelled, strict=True),) for c in columns), strict=True)]


@pytest.mark.parametrize("name", READERS)
def test_other_records_and_types_change_no_code(name, tmp_path):
    alone = codes(BASE, READERS[name], tmp_path)
    wrong = []
    for i in range(len(ODD)):
        joined = pd.concat([BASE.astype(object), ODD[i : i + 1]], ignore_index=True)
        found = codes(joined, READERS[name], tmp_path)
        wrong += [] if found[:N] == alone else [("joined by", i)]
        rows = RNG.permutation(N + 1)[: N - 2]
        again = codes(joined.iloc[rows].infer_objects(), READERS[name], tmp_path)
        wrong += [] if again == [found[row] for row in rows] else [("shuffled, dropped and retyped", i)]
    assert wrong == []
    assert name == "frame" or alone == codes(BASE, READERS["frame"], tmp_path)  # whatever it comes in
