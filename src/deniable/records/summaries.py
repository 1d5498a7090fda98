"""Profiles of many records, written to disk a part at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deniable._files import check_writable, replacing
from deniable._optional import require

if TYPE_CHECKING:
    from deniable.records.profile import PrivacyProfile

_ROWS = 262_144  # rows per part written


def write_parquet(profile: PrivacyProfile, path: str | Path, fpr: float) -> None:
    """Write one row per record, in order; the file is complete or does not appear."""
    require("pyarrow", purpose="Writing Parquet")
    import pyarrow as pa
    from pyarrow import parquet

    place = check_writable("path", path, suffixes=(".parquet",))
    columns = {
        "privacy_loss": profile.losses,
        "distance": profile.distance,
        "radius": profile.radii,
    }
    if profile.typical is not None:
        columns |= {"advantage": profile.advantage(), f"tpr_at_fpr_{fpr:g}": profile.tpr(fpr)}
    kinds = pa.schema([("record", pa.int64()), *((name, pa.float64()) for name in columns)])
    kinds = kinds.with_metadata({"warning": profile.warning})
    with replacing(place) as begun, parquet.ParquetWriter(begun, kinds) as writer:
        for at in range(0, len(profile), _ROWS):
            rows = slice(at, at + _ROWS)
            number = np.arange(at, at + len(profile.distance[rows]))
            writer.write_table(pa.table([number, *(values[rows] for values in columns.values())], schema=kinds))
