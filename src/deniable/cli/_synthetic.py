"""``deniable audit --members``: attacks on a synthetic table, from the files that it was and was not made from."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from deniable._check import InputError

if TYPE_CHECKING:
    import pandas as pd

    from deniable.audit.synthetic import SyntheticMethod


def attacked(
    table: Path, members: Path, nonmembers: Path, reference: Path | None, method: str, seed: int | None
) -> Any:
    """Return the scores of an attack on a released table."""
    import deniable as dn

    released, *others = (_frame(path) for path in (table, members, nonmembers, reference) if path is not None)
    absent = [name for other in others for name in released.columns if name not in other]
    if absent:
        raise InputError(f"every table must have the released table's columns; missing: {', '.join(sorted({*absent}))}")
    released, inside, outside, *known = _read_alike([released, *(other[released.columns] for other in others)])
    return dn.attack_synthetic(
        released, inside, outside, known[0] if known else None, method=cast("SyntheticMethod", method), rng=seed
    )


def _frame(path: Path) -> pd.DataFrame:
    from deniable.tables.files import open_file

    opened = open_file(path)
    if opened.problems:
        raise InputError(f"{str(path)!r}: {opened.problems[0]}")
    frame: pd.DataFrame = opened.frame
    return frame


def _read_alike(frames: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Turn the texts of a column into numbers where those of every table are numbers (or missing)."""
    import pandas as pd

    together = pd.concat(frames, ignore_index=True)
    for name in together.columns:
        numbers = pd.to_numeric(together[name], errors="coerce")
        if not (numbers.isna() & together[name].notna() & (together[name].astype(str).str.strip() != "")).any():
            together[name] = numbers.astype(float)
    ends = [0, *itertools.accumulate(map(len, frames))]
    return [together.iloc[a:b] for a, b in itertools.pairwise(ends)]
