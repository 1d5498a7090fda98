"""What a profile of many records will take, before it starts: from measurements, carried to other sizes."""

from __future__ import annotations

from dataclasses import dataclass

from deniable._check import integer

# CPU seconds = _START + rows·(_ROW + _ENTRY·columns + _PAIR·columns²), of one profile from Parquet with its curves;
# benchmarks/records/cost_model.py measures them (one thread)
_START, _ROW, _ENTRY, _PAIR = 1.4, 1.4e-6, 6.9e-8, 1.3e-9
PASSES = 9  # over all rows: one to check, about seven of the fit, one of the records
_HELD = 8 * 8  # bytes per record: what the profile holds, and what its curves need
_PROCESS = 2e8  # bytes of the interpreter and its libraries
_BUFFERS = 4.0  # row groups in memory, in each worker: as stored, as read, as a matrix


@dataclass(frozen=True)
class ProfileCost:
    """Estimates, not bounds: expect half to twice.

    Attributes
    ----------
    seconds
        On the clock, if all workers are as fast as the machine where the model was fitted.
    cpu_seconds
        Of all workers together.
    read_bytes
        From storage, over all passes, uncompressed.
    wire_bytes
        Between workers and this process: sums of parts and, once, four numbers per record.
    memory, worker_memory
        Of this process, which holds eight numbers per record, and of each worker.
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


def profile_cost(rows: int, columns: int, *, workers: int = 1, group: int = 262_144) -> ProfileCost:
    """Return what ``privacy_profile`` of a Parquet folder takes.

    Parameters
    ----------
    rows, columns
        Of the table; a text column counts once a value.
    workers
        Processes that work at a time.
    group
        Rows of a row group of the files (pyarrow's default is 1,048,576).
    """
    n, d = integer("rows", rows, at_least=1), integer("columns", columns, at_least=1)
    many, group = integer("workers", workers, at_least=1), min(integer("group", group, at_least=1), n)
    cpu = n * (_ROW + _ENTRY * d + _PAIR * d * d)
    tasks = -(-n // max(group, 262_144))
    used = min(many, tasks)
    passes = -(-tasks // used) / tasks  # the last round of tasks may leave workers idle
    sums = 8.0 * (2 * d * d + 3 * d)
    wire = 0.0 if many == 1 else PASSES * tasks * 2 * sums + 32.0 * n
    alone = _PROCESS + _BUFFERS * 8 * group * (d + 1)
    held = float(_HELD * n)
    return ProfileCost(
        rows=n,
        columns=d,
        workers=many,
        seconds=_START + cpu * passes,
        cpu_seconds=_START + cpu,
        read_bytes=8.0 * n * (d + 1) * PASSES,
        wire_bytes=wire,
        memory=held + (alone if many == 1 else _PROCESS + 2 * sums * used),
        worker_memory=alone,
    )
