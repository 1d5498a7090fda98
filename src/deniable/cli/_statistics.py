"""``deniable release``: tables for publication."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deniable._check import InputError
from deniable._files import check_writable, write_atomically
from deniable.cli._picture import checked_picture
from deniable.cli._ranges import read_ranges


def release_table(
    data: str,
    statistics: Sequence[str],
    *,
    eta: float,
    out: Path | None,
    plot: Path | None,
    certificate: Path | None,
    ranges: Path | None,
    given_ranges: Sequence[str],
    given_categories: Sequence[str],
    suppress_below: float,
    as_json: bool,
) -> None:
    """Release the statistics of a file, write what was asked for and print the rest."""
    if out is not None:
        check_writable("--out", out, suffixes=(".csv", ".json"))
    if certificate is not None:
        check_writable("--certificate", certificate, suffixes=(".json",))
    checked_picture(plot)
    from deniable.noise import release_statistics

    public: dict[str, Any] = dict(read_ranges(ranges) or {})
    public |= dict(_range(text) for text in given_ranges) | dict(_categories(text) for text in given_categories)
    made = release_statistics(data, list(statistics), eta=eta, ranges=public, suppress_below=suppress_below)
    if certificate is not None:  # first: no table may exist without its certificate
        made.certificate.to_json(certificate)
    if plot is not None:
        picture = io.BytesIO()
        made.plot().savefig(picture, format=plot.suffix[1:].lower(), dpi=150)
        write_atomically(plot, picture.getvalue())
    if out is not None:
        made.to_csv(out) if out.suffix.lower() == ".csv" else made.to_json(out)
    print(made.to_json() if as_json else made)


def _range(text: str) -> tuple[str, tuple[float | str, float | str]]:
    name, _, limits = text.rpartition("=")
    low, _, high = limits.partition(":")
    try:
        return _named(name), (_end(low), _end(high))
    except ValueError:
        raise InputError(
            f"--range must be NAME=LOW:HIGH, as in income=0:200000 or admitted=2020-01-01:2024-12-31, got {text!r}"
        ) from None


def _end(text: str) -> float | str:
    return text if text.count("-") == 2 and "e" not in text.lower() else float(text)


def _categories(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, labels = text.partition("=")
    try:
        return _named(name), tuple(label.strip() for label in labels.split(",") if label.strip())
    except ValueError:
        raise InputError(f"--categories must be NAME=LABEL,LABEL, as in region=North,South, got {text!r}") from None


def _named(name: str) -> str:
    if not name:
        raise ValueError
    return name
