"""The base of all mechanisms, guarantees known by their parameters, and the Poisson-subsampled Gaussian."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, Self

from deniable import testing
from deniable._check import InputError, integer
from deniable.mechanisms.fields import Checked, Count, NoiseScale, NotNegative, Rate, real

_MOST_RECORDS = 1000  # of a person: as many terms has the likelihood ratio

# what the two worlds differ in, and how a curve names it
POISSON = "each record joins a batch by its own coin (Poisson); a shuffled loader is another run"
A_LINE = "a record is a line of a file: a cell with line ends fills several, and each counts by itself"
ADJACENCIES = {
    "add-remove": "add or remove one record",
    "replace": "replace one record",
    "zero-out": "the contribution of one record becomes 0, and nothing else changes",
    "event": "adjacency as its author meant it; JAX Privacy plans: a record zeroed out, unless INDEPENDENT",
}


class Mechanism(Checked):
    """Base of all mechanisms; ``a + b`` is the (adaptive) composition of the two.

    ``adjacency`` says what the two worlds of its curve differ in: a key of :data:`ADJACENCIES`. The same curve also
    holds for the worlds in ``also``. What must stay secret for the curve to hold is in ``hidden``; ``sampling`` says
    how records come into batches where that is not by Poisson sampling. ``notes`` and ``unit``, whom it hides, come
    from whatever held it, and go with it into every sum, curve and file: see :meth:`with_notes`.

    Examples
    --------
    See ``PureDP``.
    """

    adjacency: str = "add-remove"
    sampling: str = ""
    also: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unit: str | None = None

    def __post_init__(self) -> None:
        if isinstance(inner := vars(self).get("mechanism"), Mechanism):
            vars(self).update({name: getattr(inner, name) for name in ("adjacency", "also", "hidden", "notes", "unit")})
        super().__post_init__()
        if testing.insecure():
            vars(self)["notes"] = testing.marked(self.notes, True)

    def with_notes(self, notes: Sequence[str] = (), unit: str | None = None) -> Self:
        """Return this mechanism with what goes with it wherever it is held: more notes, and whom it hides."""
        notes, unit = ((*notes, A_LINE), "record") if unit == "line of the file" else (notes, unit)
        if not notes and unit in (None, self.unit):
            return self
        found, every = copy(self), tuple(dict.fromkeys((*notes, *self.notes)))
        vars(found).update(notes=testing.marked(every, False), unit=unit or self.unit)
        return found

    def __add__(self, other: Mechanism) -> Composition:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return Composition((self, other))


def a_mechanism(name: str, value: Any) -> Mechanism:
    """Return ``value`` if it is a mechanism."""
    if not isinstance(value, Mechanism):
        raise InputError(f"{name} must be one of deniable's mechanisms, got {value!r}")
    return value


@dataclass(frozen=True)
class PureDP(Mechanism):
    """Any mechanism that is ``epsilon``-differentially private.

    Examples
    --------
    >>> import deniable as dn
    >>> mechanism = dn.PureDP(0.5) + dn.GaussianDP(0.3) + dn.ApproximateDP(0.1, 1e-6)
    >>> isinstance(mechanism, dn.Mechanism), isinstance(mechanism, dn.Composition)
    (True, True)
    >>> round(dn.tradeoff(mechanism).advantage(), 4)
    0.2523
    """

    epsilon: NotNegative


@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """Any mechanism that is (``epsilon``, ``delta``)-differentially private.

    Examples
    --------
    See ``PureDP``.
    """

    epsilon: NotNegative
    delta: Annotated[float, real(at_least=0.0, at_most=1.0)]


@dataclass(frozen=True)
class GaussianDP(Mechanism):
    """Any mechanism no easier to attack than telling N(0, 1) from N(``mu``, 1) (Dong, Roth & Su 2022).

    Examples
    --------
    See ``PureDP``.
    """

    mu: NotNegative


def _records(name: str, value: Any) -> int:
    count = integer(name, value, at_least=1)
    if count > _MOST_RECORDS:
        raise InputError(f"{name} must be at most {_MOST_RECORDS:,}, got {count:,}; use t.group(k)")
    return count


@dataclass(frozen=True)
class SubsampledGaussian(Mechanism):
    """One phase of DP-SGD: ``steps`` Poisson-subsampled Gaussian steps, all of them visible to the attacker.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise divided by the clipping norm; above 0 and finite.
    sample_rate
        Probability with which each record enters each step, in (0, 1]; 1 means full batch.
    steps
        Number of steps, a whole number of at least 1.
    records_per_person
        Number k of records that are added or removed together: those of one person, each drawn and clipped separately.

    Notes
    -----
    The record is *added or removed*: out, a step releases N(0, σ²); in, (1−q)·N(0, σ²) + q·N(1, σ²)
    (Mahloujifar et al., Theorem 6). For a person of k records it is Σ_j Bin(k, q)(j)·N(j, σ²) (Ganesh 2024).
    Batches of a fixed size, or drawn by shuffling, are not this mechanism.

    Examples
    --------
    >>> import deniable as dn
    >>> t = dn.tradeoff(dn.SubsampledGaussian(noise_multiplier=1.0, sample_rate=0.01, steps=5000))
    >>> isinstance(t, dn.Tradeoff), round(t.advantage(), 4), round(t.tpr(1e-5), 6), round(t.epsilon(1e-5), 3)
    (True, 0.3508, 0.00047, 4.202)
    """

    noise_multiplier: NoiseScale
    sample_rate: Rate
    steps: Count
    records_per_person: Annotated[int, _records] = 1

    also = ("zero-out",)  # a record that contributes 0 to sums is as good as absent


@dataclass(frozen=True)
class Composition(Mechanism):
    """Several mechanisms run on the same data, each possibly chosen after seeing the outputs before it.

    Nested compositions are flattened. The *queries* may depend on earlier outputs; the parameters (noise, rate, number
    of steps) are fixed beforehand. A noise level, a sampling rate or a moment to stop that was chosen after looking at
    outputs is outside the theorem: without a filter, adding up what was actually spent is not a bound.

    Examples
    --------
    See ``PureDP``.
    """

    mechanisms: tuple[Mechanism, ...]

    def __init__(self, mechanisms: Iterable[Mechanism]) -> None:
        flat: list[Mechanism] = []
        given = tuple(mechanisms)
        for part in given:
            if not isinstance(part, Mechanism):
                raise InputError(f"mechanisms must contain mechanisms only, got {part!r}; see deniable.mechanisms")
            if isinstance(part, Grouped):
                raise InputError(
                    f"mechanisms must not be grouped one by one, got {part!r}; group them together: "
                    f"Grouped(Composition([...]), {part.records_per_person})"
                )
            flat.extend(parts_of(part))
        if not flat:
            raise InputError("mechanisms must not be empty; a composition needs at least one mechanism")
        units = {part.unit for part in given} - {None}
        if len(units) > 1:
            whom = " and ".join(sorted(map(repr, units)))
            raise InputError(f"releases must hide the same unit, got {whom}: these do not add up")
        notes = dict.fromkeys(note for part in given for note in part.notes)
        vars(self).update(notes=testing.marked(tuple(notes), False), unit=next(iter(units), None))
        vars(self)["hidden"] = tuple(dict.fromkeys(secret for part in flat for secret in part.hidden))
        object.__setattr__(self, "mechanisms", tuple(flat))

    @property
    def adjacency(self) -> str:  # type: ignore[override]
        """The first that all parts have in common."""
        return self._adjacencies[0]

    @property
    def also(self) -> tuple[str, ...]:  # type: ignore[override]
        """Others that all parts have in common."""
        return self._adjacencies[1:]

    @property
    def _adjacencies(self) -> tuple[str, ...]:
        each = [(part.adjacency, *part.also) for part in self.mechanisms]
        common = tuple(kind for kind in each[0] if all(kind in kinds for kinds in each))
        if not common:
            found = ", ".join(sorted({kinds[0] for kinds in each}))
            raise InputError(
                f"mechanisms must have one adjacency, got {found}: bounds for different pairs of worlds do not add up"
            )
        meant = {"event"} & {kinds[0] for kinds in each}  # whoever states one part's worlds states those of all
        return (*meant, *(kind for kind in common if kind not in meant))


@dataclass(frozen=True)
class Grouped(Mechanism):
    """Any ``mechanism``, seen by a person of whom several records are in or out together.

    ``dn.tradeoff`` gives the curve of ``mechanism`` applied ``records_per_person`` times, :func:`deniable.risks.group`:
    a bound for every mechanism, however the person's records are drawn. For Poisson-sampled Gaussian steps
    :class:`SubsampledGaussian` with ``records_per_person`` is exact and sharper.

    Parameters
    ----------
    mechanism
        What ran, described for one record; of several runs the composition of all. Where it states a public number of
        records, that is the number with all of the person's records.
    records_per_person
        Most records that one person has.

    Examples
    --------
    >>> import deniable as dn
    >>> run = dn.SubsampledGaussian(1.0, 0.01, 1000)
    >>> person = dn.mechanisms.Grouped(run, 3)                        # whose three records may all be in the data
    >>> round(dn.tradeoff(run).advantage(), 3), round(dn.tradeoff(person).advantage(), 3)
    (0.161, 0.458)
    """

    mechanism: Annotated[Mechanism, a_mechanism]
    records_per_person: Annotated[int, _records]

    def _check_together(self) -> None:
        if self.unit == "record":  # nobody has said whose several records are
            vars(self)["unit"] = None


def leaves_of(mechanism: Mechanism) -> tuple[Mechanism, ...]:
    """Return what ran at last: the parts of compositions, groups and tuned runs."""
    inner = [getattr(part, "mechanism", part) for part in parts_of(mechanism)]
    outer = zip(parts_of(mechanism), inner, strict=True)
    return tuple(leaf for part, one in outer for leaf in ((one,) if part is one else leaves_of(one)))


def sampling_of(leaves: Iterable[Mechanism]) -> str:
    """Return how records come into the batches of what ran, in one line; "" where all of them are in each."""
    lines = [POISSON if getattr(leaf, "sample_rate", 1.0) < 1 else leaf.sampling for leaf in leaves]
    return "; ".join(filter(None, dict.fromkeys(lines)))


def parts_of(mechanism: Mechanism) -> tuple[Mechanism, ...]:
    """Return the parts of a composition, or the one mechanism that is not composed."""
    return mechanism.mechanisms if isinstance(mechanism, Composition) else (mechanism,)
