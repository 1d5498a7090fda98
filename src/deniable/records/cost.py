"""Estimated cost of a profile of many records, or of an attack, scaled from measurements."""

from __future__ import annotations

from dataclasses import dataclass

from deniable._check import integer, number

# CPU seconds = rows·(_ROW + _ENTRY·columns + _PAIR·columns²), of one profile from Parquet with its curves, without
# imports; benchmarks/scale/fit.py fits them to what measure.py beside it found (one thread)
_ROW, _ENTRY, _PAIR = 1.6e-6, 5.4e-8, 2.3e-10
PASSES = 9  # passes over all rows: one to check them, about seven for the fit, one for the records
_HELD = 8 * 8  # bytes per record: what the profile holds, and what its curves need
_PROCESS = 1.5e8  # bytes that the interpreter and its libraries take
_BUFFERS = 2.4  # row groups that each worker holds: as stored, as read, as a matrix


@dataclass(frozen=True)
class ProfileCost:
    """Estimates, not bounds: expect half to twice the figures.

    Attributes
    ----------
    seconds
        Wall-clock seconds, if all workers are as fast as the machine where the cost model was fitted.
    cpu_seconds
        CPU seconds of all workers together.
    read_bytes
        Bytes read from storage over all passes, uncompressed.
    wire_bytes
        Bytes between workers and this process: sums of parts and, once, four numbers per record.
    memory, worker_memory
        Bytes of memory of this process, which holds eight numbers per record, and of each worker.
    """

    rows: int
    columns: int
    workers: int
    seconds: float
    cpu_seconds: float
    read_bytes: float
    wire_bytes: float
    memory: float
    worker_memory: float


@dataclass(frozen=True)
class RetrainingCost:
    """Estimates, not bounds, of retraining models: shadow models of an attack, resamples of a release.

    Attributes
    ----------
    seconds, cpu_seconds
        Wall-clock seconds, if all workers are as fast as the machine where one training was timed, and CPU seconds.
    wire_bytes
        Bytes between workers and this process: the data once per worker; per model and record, membership and a number.
    memory
        Bytes of memory of this process, which collects one number per model and record.
    """

    rows: int
    columns: int
    models: int
    workers: int
    seconds: float
    cpu_seconds: float
    wire_bytes: float
    memory: float


def retraining_cost(rows: int, models: int, training: float, *, columns: int = 1, workers: int = 1) -> RetrainingCost:
    """Return the cost of training many models on halves of the data.

    Parameters
    ----------
    rows, columns
        Shape of the data.
    models
        Number of models.
    training
        Seconds that one training takes, measured.
    workers
        Processes that work at a time.
    """
    n, d = integer("rows", rows, at_least=1), integer("columns", columns, at_least=1)
    count, many = integer("models", models, at_least=1), integer("workers", workers, at_least=1)
    one = number("training", training, above=0.0)
    data = 8.0 * n * (d + 1)
    return RetrainingCost(
        rows=n,
        columns=d,
        models=count,
        workers=many,
        seconds=one * -(-count // many),
        cpu_seconds=one * count,
        wire_bytes=0.0 if many == 1 else data * many + 9.0 * n * count,
        memory=_PROCESS + data + 2 * 8.0 * n * count,  # as they come, and as one array
    )


def profile_cost(rows: int, columns: int, *, workers: int = 1, row_group: int = 262_144) -> ProfileCost:
    """Return the cost of ``privacy_profile`` on a Parquet folder.

    Parameters
    ----------
    rows, columns
        Shape of the table; a text column counts once per distinct value.
    workers
        Processes that work at a time.
    row_group
        Rows of a row group of the files (pyarrow's default is 1,048,576).
    """
    n, d = integer("rows", rows, at_least=1), integer("columns", columns, at_least=1)
    many, grouped = integer("workers", workers, at_least=1), min(integer("row_group", row_group, at_least=1), n)
    cpu = n * (_ROW + _ENTRY * d + _PAIR * d * d)
    tasks = -(-n // max(grouped, 262_144))
    used = min(many, tasks)
    passes = -(-tasks // used) / tasks  # the last round of tasks may leave workers idle
    sums = 8.0 * (2 * d * d + 3 * d)
    wire = 0.0 if many == 1 else PASSES * tasks * 2 * sums + 32.0 * n
    alone = _PROCESS + _BUFFERS * 8 * grouped * (d + 1)
    held = float(_HELD * n)
    return ProfileCost(
        rows=n,
        columns=d,
        workers=many,
        seconds=cpu * passes,
        cpu_seconds=cpu,
        read_bytes=8.0 * n * (d + 1) * PASSES,
        wire_bytes=wire,
        memory=held + (alone if many == 1 else _PROCESS + 2 * sums * used),
        worker_memory=alone,
    )
