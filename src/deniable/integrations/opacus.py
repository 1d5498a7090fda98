"""Mechanisms from Opacus accountants, and gradient norms recorded during training.

Neither Opacus nor torch is imported: their objects are used as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, Indices, InputError, choice, integer
from deniable.accounting import NormRecorder
from deniable.mechanisms import Composition, Mechanism, ShuffledBatches, SubsampledGaussian

# all three record the same thing, Poisson-subsampled Gaussian steps, and differ only in how they bound ε
_ACCOUNTANTS = ("rdp", "prv", "gdp")
_CHECKPOINT_KEY = "privacy_accountant_state_dict"


def from_opacus(accountant: Any, *, loader: Any = None, sampling: str = "poisson") -> Mechanism:
    """Return the mechanism that an Opacus accountant has recorded.

    Parameters
    ----------
    accountant
        One of

        - an accountant of Opacus (``RDPAccountant``, ``PRVAccountant``, ``GaussianAccountant``), or a
          ``PrivacyEngine``, whose accountant is then taken;
        - an accountant's ``state_dict()``, or a checkpoint dictionary that holds one, such as
          ``torch.load(path)`` returns after ``PrivacyEngine.save_checkpoint``;
        - a history: a list of (noise_multiplier, sample_rate, steps);
        - an optimizer that :func:`deniable.make_private` returned.
    loader
        The data loader that the run drew its batches from. If it is given and is not one that samples as Opacus's
        ``DPDataLoader`` does, or whose data set takes a record several times from its parts, the run is refused: it has
        a different curve. The one that ``BatchMemoryManager`` makes
        counts as the loader that it cuts into parts.
    sampling
        How batches were drawn: ``"poisson"``, or ``"shuffled"`` (``poisson_sampling=False``) in whole epochs, with a
        curve of its own, known as a bracket for zeroing out one record: :class:`~deniable.ShuffledBatches`. Of another
        sampler describe the run itself, as by :class:`~deniable.RandomAllocation`.

    Returns
    -------
    Mechanism
        A :class:`SubsampledGaussian`, or a :class:`Composition` of them in the order in which they ran. Neighbouring
        phases with equal parameters are merged.

    Raises
    ------
    InputError
        For an accountant that is not one of the three, an empty history, a phase that has no bound, or a ``loader``
        that does not sample by Poisson or holds a record several times.

    Notes
    -----
    Only the recorded parameters are used, never the accountant's own bound. Opacus records the same history
    with ``poisson_sampling=False``, although batches are then drawn by shuffling and the mechanism is a different one:
    the history does not show which, so pass the ``loader``, or make sure that Poisson sampling was on.

    The mechanism assumes that noise, rates and steps were fixed beforehand. A history whose later phases were chosen by
    what earlier ones released (noise raised after a look at the loss, training stopped for a validation score) looks
    the same, but the curve of the steps that happened to run is then **no bound**: attacks were seen at an advantage of
    0.51 on runs for which it says 0.38. Fix a schedule and use the curve of all of it, however early training stops.

    Examples
    --------
    >>> import deniable as dn
    >>> mechanism = dn.from_opacus([(1.0, 0.01, 5000)])             # a history: noise multiplier, sample rate, steps
    >>> mechanism
    SubsampledGaussian(noise_multiplier=1.0, sample_rate=0.01, steps=5000, records_per_person=1)
    """
    if hasattr(accountant, "private_run"):
        run, notes = accountant.private_run, accountant.private_run.notes
        return from_opacus(run.engine, loader=loader, sampling=sampling).with_notes(notes, "record")
    shuffled = choice("sampling", sampling, ("poisson", "shuffled")) == "shuffled"
    (_require_shuffled if shuffled else require_poisson)(loader)
    phases = [phase for index, row in enumerate(_history(accountant)) for phase in _phase(index, row)]
    if not phases:
        raise InputError("accountant must have recorded at least one step; its history is empty")
    rate = getattr(_batches(loader), "sample_rate", 0.0)
    if not rate <= max(phase.sample_rate for phase in phases) * (1 + 1e-9):
        raise InputError(
            f"loader must be the one of the run: it samples at {rate:g}, more than any step that is recorded"
        )
    merged = [
        SubsampledGaussian(sigma, rate, sum(phase.steps for phase in run))
        for (sigma, rate), run in groupby(phases, key=lambda phase: (phase.noise_multiplier, phase.sample_rate))
    ]
    found = [_in_epochs(phase) for phase in merged] if shuffled else merged
    return found[0] if len(found) == 1 else Composition(found)


def _in_epochs(phase: SubsampledGaussian) -> Mechanism:
    """The phase as epochs of 1/rate batches each, as Opacus records it for a loader without Poisson sampling."""
    batches = round(1 / phase.sample_rate)
    if abs(batches * phase.sample_rate - 1) > 1e-9 or phase.steps % batches:
        raise InputError(
            "sample_rate must be 1/(batches an epoch) and steps whole epochs if batches divide the data, got "
            f"{phase.sample_rate:g} and {phase.steps}; describe the run by deniable.ShuffledBatches with the last "
            "epoch counted in full"
        )
    return ShuffledBatches(phase.noise_multiplier, batches, phase.steps // batches)


def _batches(loader: Any) -> Any:
    """The sampler that draws a loader's batches; BatchMemoryManager only cuts those of another one into parts."""
    sampler: Any = getattr(loader, "batch_sampler", None)
    return sampler.sampler if type(sampler).__name__ == "BatchSplittingSampler" else sampler


def _records(loader: Any) -> tuple[str, bool]:
    """The kind of a loader's sampler of records, and whether it draws some of them again."""
    batches = _batches(loader)
    sampler = getattr(loader if batches is None else batches, "sampler", None)
    return type(sampler).__name__, bool(getattr(sampler, "replacement", False))


def _require_shuffled(loader: Any) -> None:
    """Raise ``InputError`` if a given ``loader`` visibly does not divide the data, shuffled, once an epoch."""
    require_each_once(loader)
    kind, again = _records(loader)
    if loader is not None and (kind not in ("RandomSampler", "DistributedSampler") or again):
        raise InputError(
            f"loader must shuffle the data once an epoch (DataLoader(shuffle=True)) for sampling='shuffled', got the "
            f"sampler {kind}{' with replacement' if again else ''}; weighted draws give some records a higher "
            "rate, for which no bound is known here"
        )


def require_poisson(loader: Any) -> None:
    """Raise ``InputError`` if a given ``loader`` visibly does not draw each record, once, independently at one rate.

    Examples
    --------
    See ``make_private``.
    """
    require_each_once(loader)
    if loader is None or type(_batches(loader)).__name__.endswith("UniformWithReplacementSampler"):
        return
    kind, again = _records(loader)
    how = "shuffled batches are another mechanism, whose curve can lie above: say sampling='shuffled'"
    if again:
        how = "with replacement a batch may hold a record several times, for which no bound is known here"
    if kind == "WeightedRandomSampler":
        how = "weighted draws give some records a higher rate than the accountant recorded"
    raise InputError(
        f"loader must be the DPDataLoader that make_private returns with poisson_sampling=True, got "
        f"{type(loader).__name__}: {how}; see deniable.make_private"
    )


def require_each_once(loader: Any) -> None:
    """Raise ``InputError`` if the data set of a loader visibly takes a record several times; none is read.

    Examples
    --------
    See ``make_private``.
    """
    held: dict[Any, list[Indices]] = {}
    data = getattr(loader, "dataset", ())
    if not hasattr(data, "__len__"):
        return
    for source, rows in _sources(data, np.arange(len(data))):
        held.setdefault(source, []).append(rows)
    counts = (np.unique(np.concatenate(rows), return_counts=True)[1] for rows in held.values())
    most = max((int(count.max()) for count in counts), default=1)
    if most > 1:
        raise InputError(
            f"loader must hold each record once, got a data set that takes one from its parts {most} times, so that it "
            f"counts {most} times; take it once, or describe the run by deniable.SubsampledGaussian(…, "
            f"records_per_person={most}), and calibrate that"
        )


def _sources(data: Any, rows: Indices) -> Iterator[tuple[Any, Indices]]:
    """The innermost data sets that items of subsets, concatenations and wrappers come from, and their places there."""
    inner: Any = getattr(data, "dataset", None)
    parts = getattr(data, "datasets", None)
    if inner is not None and hasattr(data, "indices"):
        yield from _sources(inner, np.asarray(data.indices, dtype=np.intp)[rows] % len(inner))
    elif hasattr(inner, "__len__") and len(inner) == len(data):
        yield from _sources(inner, rows)
    elif parts is not None and hasattr(data, "cumulative_sizes"):
        ends = np.asarray(data.cumulative_sizes)
        part_of = np.searchsorted(ends, rows, side="right")
        for k, part in enumerate(parts):
            yield from _sources(part, rows[part_of == k] - (ends[k] - len(part)))
    elif rows.size:
        tensors = getattr(data, "tensors", None)  # two data sets may hold the same ones
        yield tensors[0].data_ptr() if tensors else id(data), rows


def _history(source: Any) -> Iterable[Any]:
    """The list of (noise_multiplier, sample_rate, steps) in any of the accepted objects."""
    if isinstance(source, Mapping):
        if _CHECKPOINT_KEY in source:
            return _history(source[_CHECKPOINT_KEY])
        if "history" in source and "mechanism" in source:
            return _history_of(source["mechanism"], source["history"])
        raise InputError(
            "accountant must be a state_dict with the keys 'history' and 'mechanism', or a checkpoint with the key "
            f"{_CHECKPOINT_KEY!r}, got the keys {sorted(map(str, source))}"
        )
    if hasattr(source, "history") and hasattr(source, "mechanism"):
        return _history_of(source.mechanism(), source.history)
    if hasattr(source, "accountant"):
        if "Adaptive" in type(source).__name__:
            raise InputError(
                f"accountant must be of an engine that releases noisy gradients alone, got {type(source).__name__}: it "
                "releases noisy counts of clipped records as well, which its accountant does not hold"
            )
        return _history(source.accountant)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return source
    raise InputError(
        "accountant must be an Opacus accountant, its state_dict or a history list of "
        f"(noise_multiplier, sample_rate, steps), got {type(source).__name__}"
    )


def _history_of(mechanism: Any, history: Iterable[Any]) -> Iterable[Any]:
    if mechanism not in _ACCOUNTANTS:
        raise InputError(
            f"accountant must be one of Opacus's {', '.join(_ACCOUNTANTS)}, got the mechanism {mechanism!r}; if all "
            "its steps were Poisson-subsampled Gaussians, hand over the history list itself"
        )
    return history


def _phase(index: int, row: Any) -> list[SubsampledGaussian]:
    """The phase of a row; none without steps: an accountant begins one with new settings before it takes a step."""
    try:
        sigma, rate, steps = row
    except (TypeError, ValueError):
        raise InputError(
            f"history[{index}] must be a triple (noise_multiplier, sample_rate, steps), got {row!r}"
        ) from None
    try:
        return [SubsampledGaussian(sigma, rate, steps)] if integer("steps", steps, at_least=0) else []
    except InputError as error:
        raise InputError(f"history[{index}]: {error}") from None


class GradientNorms(NormRecorder):
    """Keeps the gradient norm of every record that Opacus draws, for :func:`~deniable.accounting.individual_tradeoffs`.

    Create it after ``make_private``, and call ``batch`` before each ``optimizer.step()`` with its records (a data set
    that returns each record's index along with it is the simplest way)::

        norms = GradientNorms(optimizer, records=len(data))
        for index, x, y in loader:
            norms.batch(index)
            ...
            optimizer.step()
        individual_tradeoffs(norms, clip=optimizer.max_grad_norm, mechanism=from_opacus(engine))

    Virtual steps (``BatchMemoryManager``) work: call ``batch`` before each of them.

    Parameters
    ----------
    optimizer
        Opacus's ``DPOptimizer`` (flat clipping). Per-layer, adaptive and ghost clipping are refused.
    records
        Number of records in the training set.

    Notes
    -----
    With Poisson sampling a record's norm becomes known only in the steps that drew it; in all others it counts as the
    clipping norm (see :class:`NormRecorder`). At small sampling rates the curves are then close to the worst case.
    Norms of records outside the batch, from a separate pass over them, can be handed to :meth:`add`.

    Examples
    --------
    See ``make_private``.
    """

    def __init__(self, optimizer: Any, records: int) -> None:
        super().__init__(records)
        if type(optimizer).__name__ != "DPOptimizer":
            raise InputError(f"optimizer must be Opacus's DPOptimizer (flat clipping), got {type(optimizer).__name__}")
        self._pending: ArrayLike | None = None
        accumulate, hook = optimizer.clip_and_accumulate, optimizer.step_hook

        def clip_and_accumulate() -> None:
            self._take(optimizer.grad_samples)
            accumulate()

        def step_hook(stepping: Any) -> None:
            if hook is not None:
                hook(stepping)
            self.end_step()

        optimizer.clip_and_accumulate = clip_and_accumulate
        optimizer.attach_step_hook(step_hook)

    def batch(self, indices: ArrayLike) -> None:
        """State which records the next call of ``optimizer.step()`` processes, in the order of the batch."""
        self._pending = indices

    def _take(self, grad_samples: Sequence[Any]) -> None:
        """Per-record norms over all parameters, in double precision: in single, long sums lose up to percents."""
        count = len(grad_samples[0])
        if self._pending is None and count:
            raise InputError("indices of the batch must be given to batch() before each optimizer.step()")
        norms = np.sqrt(sum((_sums_of_squares(g) for g in grad_samples), np.zeros(count))) * (1 + 1e-10)  # roundings
        self.add(np.empty(0, dtype=np.intp) if self._pending is None else self._pending, norms)
        self._pending = None


def _sums_of_squares(grad_sample: Any) -> FloatArray:
    """Return the squared norm of each row of a tensor of per-record gradients, in double precision, shape (rows,)."""
    if not len(grad_sample):
        return np.zeros(0)
    rows = grad_sample.detach().reshape(len(grad_sample), -1)
    if str(rows.device).startswith("mps"):  # knows no double precision
        rows = rows.cpu()
    at_once = max(1, 2**22 // max(1, rows.shape[1]))
    parts = [rows[i : i + at_once].double().square().sum(-1).cpu().numpy() for i in range(0, len(rows), at_once)]
    return np.asarray(np.concatenate(parts), dtype=np.float64)
