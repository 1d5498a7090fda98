"""Files that training runs leave behind: an Opacus checkpoint, or a history as JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from deniable._check import InputError, integer, number, refuse_unknown
from deniable._files import read_json
from deniable._optional import require
from deniable.integrations.opacus import from_opacus
from deniable.mechanisms import Mechanism, SubsampledGaussian, from_plain


def read_history(path: str | Path) -> Mechanism:
    """Return the mechanism in a JSON file: a list of [noise_multiplier, sample_rate, steps], or our certificate.

    Or an accountant that Opacus or opake saved.
    """
    file = _existing(path)
    try:
        history = read_json(file)
    except ValueError as error:
        raise InputError(f"history file {str(path)!r} is not JSON: {error}") from None
    if isinstance(history, dict) and "mechanism" in history and "history" not in history:
        whom = history.get("person") or history.get("unit")
        return from_plain(history["mechanism"]).with_notes(unit=whom if isinstance(whom, str) else None)
    if isinstance(history, dict) and isinstance(history.get("process"), dict):
        return from_opacus(_rows_of_opake(history["process"]))
    if isinstance(history, dict) and {"noise", "batch", "epochs", "n"} <= history.keys():
        return _run_of_passes(history)
    if isinstance(history, dict) and history.keys() == {"noise_multiplier", "sample_rate", "steps"}:
        return SubsampledGaussian(**history)
    if isinstance(history, dict) and "schema_version" in history:
        raise InputError(f"{str(path)!r} is a saved report: give it to deniable verify, annex or compare")
    if isinstance(history, dict) and "log_history" in history:
        raise InputError(
            f"{str(path)!r} is the log of a trainer: it holds ε, but neither its δ nor the noise, rate and steps; give "
            "opake's accountant.json, or write the run, as dpsgd,NOISE,RATE,STEPS or epsilon,EPSILON,DELTA"
        )
    if not isinstance(history, list) and not (isinstance(history, dict) and "history" in history):
        keys = f", got the keys {', '.join(map(repr, history))}" if isinstance(history, dict) else ""
        what = "noise_multiplier, sample_rate and steps (or a list of such rows), or noise, batch, epochs and n"
        raise InputError(f"history file {str(path)!r} must hold {what}{keys}")
    return from_opacus(history)


def _run_of_passes(run: dict[str, Any]) -> Mechanism:
    """DP-SGD of Poisson-sampled batches of about ``batch`` of ``n`` records, in whole passes of whole batches."""
    refuse_unknown("a described run", run, ("noise", "batch", "epochs", "n"))
    n, batch = integer("n", run["n"], at_least=1), number("batch", run["batch"], above=0.0)
    epochs = number("epochs", run["epochs"], above=0.0, below=float("inf"))
    if batch > n:
        raise InputError(f"batch must be at most n, the number of records, got {batch:g} of {n}")
    return SubsampledGaussian(run["noise"], batch / n, math.ceil(epochs) * math.ceil(n / batch))


def _rows_of_opake(process: dict[str, Any]) -> list[list[Any]]:
    """The history of an accountant of opake 0.16: a tree, whose pairs nest a level deeper wherever settings change."""
    rows: list[list[Any]] = []
    stack: list[tuple[Any, int]] = [(process, 1)]
    while stack:
        match stack.pop():
            case {"type": "Composed", "left": left, "right": right}, times:
                stack += [(right, times), (left, times)]
            case {"type": "Repeated", "inner": inner, "count": count}, times:
                stack.append((inner, times * integer("count", count, at_least=0)))
            case {"type": "CachedProcess", "inner": inner}, times:
                stack.append((inner, times))
            case {"type": "Gaussian", "noise_multiplier": sigma}, times:
                rows.append([sigma, 1.0, times])
            case {
                "type": "Poisson", "inner": {"type": "Gaussian", "noise_multiplier": sigma}, "sample_rate": rate,
                "truncated_batch_size": None,
            }, times:  # fmt: skip
                rows.append([sigma, rate, times])
            case {"type": "Identity"}, _:
                pass
            case other, _:
                kind = other.get("type") if isinstance(other, dict) else other
                raise InputError(
                    f"accountant must hold Gaussian steps, of all records or of Poisson batches without a cap, got "
                    f"{kind!r}; write the run itself, as truncated,NOISE,RATE,STEPS,MAX_BATCH,N_RECORDS"
                )
    return rows


def read_opacus(path: str | Path) -> Mechanism:
    """Return the mechanism in a file that ``torch.save`` made of an accountant's state_dict or of a checkpoint.

    The file is read with ``weights_only=True``: no code in it is run.
    """
    file = _existing(path)
    torch = require("torch", purpose="Reading an Opacus file")
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds of errors for a file that is not its own
        raise InputError(
            f"{str(path)!r} could not be read as a torch file of plain data: {str(error).splitlines()[0]}; save the "
            "accountant with torch.save(accountant.state_dict(), path)"
        ) from error
    return from_opacus(content)


def _existing(path: str | Path) -> Path:
    file = Path(path)
    if not file.is_file():
        raise InputError(f"file {str(path)!r} does not exist")
    return file
