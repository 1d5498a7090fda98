"""Individual accounting: what an attacker could do against *this* record, given how large its gradients were.

A record whose clipped gradient had norm r ≤ C in a step moved that step's mean by r/C of what the worst record could:
the step is a subsampled Gaussian with noise σ·C/r. Composing a record's own steps gives its own trade-off.

All records are inverted together. With A(γ) = ∫ min(p, γq) = 1 − H_γ(in‖out) and φ(t) = ∫ √(pq)·e^{itL},

    A(γ) = √γ/π · ∫₀^∞ Re[φ(t)·e^{−itε}] / (t² + ¼) dt,     ε = log γ,

because min(p, γq) = √(γpq)·e^{−|L−ε|/2}. log φ is a sum over steps, hence linear in the number of steps at each noise
level: one matrix product for all records. The trapezoid sum with spacing 2π/Λ is A(γ) plus its aliases
∫ min(p·e^{kΛ/2}, γq·e^{−kΛ/2}), k ≠ 0, which together are at most (1 + γ)/(e^{Λ/2} − 1). That bound, one for the
neglected nodes and one for rounding are taken off A, so that every H is an upper bound whatever Λ is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, integer, number
from deniable._floats import EPS, MOST_EXPONENT
from deniable.accounting.dispatch import tradeoff
from deniable.accounting.gradient_norms import NormRecorder, norm_array, shares
from deniable.accounting.sizes import DIGITS, MOST, POINTS
from deniable.accounting.steps.ratios import log_ratio
from deniable.accounting.transform.composed import PrivacyLoss
from deniable.accounting.transform.decay import PLACES, lifts, shifted
from deniable.accounting.transform.line import Phases
from deniable.accounting.trapezoid import even_aliases, falling_rest
from deniable.curves import Assumptions, EnvelopeTradeoff
from deniable.mechanisms import Mechanism, SubsampledGaussian, parts_of

_THRESHOLDS = 129  # thresholds ε of a record's curve, symmetric about 0
_NEGLECTED = 1e-12  # what is aimed at for the neglected part of an integral
_Shares = list[tuple[NDArray[np.intp], FloatArray]]  # of every step: records, and r/C of each

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_GAME = Assumptions(
    notes=(
        "individual: holds for this record with the gradient norms of this run, taken as if fixed beforehand",
        "computed from the data: an assessment for the data owner, not something to publish",
    )
)


@dataclass(frozen=True, eq=False)
class IndividualTradeoffs:
    """One trade-off a record, or a run; ``self[i]`` is the i-th, and the methods give all at once.

    Attributes
    ----------
    log_gamma, remove, add
        Arrays of shape (records, points): upper bounds on both hockey sticks of every record.
    runs
        What ran, where the curves are those of :func:`tradeoffs`.

    Notes
    -----
    Upper bounds only. Those of records depend on the data: they are for the owner of the data, not for publication, and
    saying a record's own bound aloud can itself reveal it. A record's norms are taken as if they had been fixed
    beforehand, although in training they depend on earlier noise.

    Examples
    --------
    See ``individual_tradeoffs``.
    """

    log_gamma: FloatArray
    remove: FloatArray
    add: FloatArray
    runs: tuple[Mechanism, ...] = ()

    def __len__(self) -> int:
        return int(self.remove.shape[0])

    def __getitem__(self, record: int) -> EnvelopeTradeoff:
        game, whose = _GAME, "one record's gradient norms in one run"
        if self.runs:
            alone = tradeoff(self.runs[record])
            game, whose = alone.assumptions, alone.holds_for
        method, mine = "transform inversion of the record's own steps", (self.log_gamma, self.remove, self.add)
        return EnvelopeTradeoff(*(x[record] for x in mine), method=method, assumptions=game, holds_for=whose)

    def __iter__(self) -> Iterator[EnvelopeTradeoff]:
        return (self[record] for record in range(len(self)))

    def advantage(self, prior: float = 0.5) -> FloatArray:
        """Return every record's membership advantage, shape (records,)."""
        if prior == 0.5:  # γ = 1 is a point of every curve
            return np.asarray(self.remove[self.log_gamma == 0])
        return np.array([curve.advantage(prior) for curve in self])

    def tpr(self, fpr: float) -> FloatArray:
        """Return every record's largest true positive rate at one false positive rate, shape (records,)."""
        return np.array([curve.tpr(fpr) for curve in self])


def tradeoffs(runs: Iterable[Mechanism]) -> IndividualTradeoffs:
    """Return the curves of many DP-SGD runs together, from above: of other noise, rates or steps along an axis.

    Of many runs that is several times faster than :func:`deniable.tradeoff` of one after the other. The advantage at
    even odds is as sharp; a true positive rate may be 2 % higher.

    Parameters
    ----------
    runs
        Each a :class:`SubsampledGaussian` of one record a person, or a :class:`Composition` of them.

    Returns
    -------
    IndividualTradeoffs
        Upper bounds on every attack, a curve per run.

    Raises
    ------
    InputError
        If a run is not one of the above.

    Examples
    --------
    >>> import deniable as dn
    >>> found = dn.accounting.tradeoffs(dn.SubsampledGaussian(1.0, 0.01, steps) for steps in (500, 5000))
    >>> print(found.advantage().round(6))
    [0.114083 0.350833]
    """
    from scipy.sparse import csr_array  # slow to import

    every = tuple(runs)
    if not every:
        raise InputError("runs must contain at least one run, got none")
    losses = [PrivacyLoss.of(_phases(run)) for run in every]
    noise, rate, steps = (
        np.concatenate([getattr(loss, name) for loss in losses]) for name in ("noise", "rate", "steps")
    )
    whose = np.repeat(np.arange(len(every)), [loss.steps.size for loss in losses])
    kinds, which = np.unique([noise, rate], axis=1, return_inverse=True)
    counts = csr_array((steps, (whose, which.ravel())), shape=(len(every), kinds.shape[1]))
    gaussian = np.array([loss.gaussian for loss in losses]) * (1 + 4 * EPS)
    return _invert(_Tally(PrivacyLoss(kinds[0], kinds[1], np.ones(kinds.shape[1]), 0.0), counts, gaussian), every)


def individual_tradeoffs(
    gradient_norms: ArrayLike | NormRecorder, clip: float, mechanism: Mechanism, *, levels: int = 64
) -> IndividualTradeoffs:
    """Return each record's own trade-off from the sizes of its gradients in a DP-SGD run.

    This is a data-dependent assessment for the owner of the data. It is not a differential-privacy guarantee, and not
    something to publish: the norms, and with them the curves, are computed from the data.

    Parameters
    ----------
    gradient_norms
        Array of shape (records, steps): the norm that each record's gradient had, *or would have had* if it
        was not drawn into the batch; NaN where it is unknown, which counts as ``clip``. Or a :class:`NormRecorder`.
    clip
        Clipping norm C of the run; larger norms count as C.
    mechanism
        The run, step by step: :class:`SubsampledGaussian` of one record a person, or a :class:`Composition` of them, of
        as many steps as there are columns.
    levels
        Norms are rounded *up* to this many levels, i·C/levels, unless there are no more different norms than that.

    Returns
    -------
    IndividualTradeoffs
        Upper bounds on every attack, a curve per record.

    Raises
    ------
    InputError
        If norms are negative or have the wrong shape, or the mechanism is not one of the above.

    Notes
    -----
    Source: the monotonicity in the sensitivity of Mahloujifar et al., Lemma 5 and Theorem 6, applied with each step's
    realised sensitivity r/C (as in individual accounting, Feldman & Zrnic 2021).

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> norms = np.random.default_rng(0).lognormal(-1, 1, size=(100, 50))     # of each record's gradient at each step
    >>> run = dn.SubsampledGaussian(1.0, 0.01, 50)
    >>> curves = dn.accounting.individual_tradeoffs(norms, 1.0, run)
    >>> bool(np.all(curves.advantage() <= dn.tradeoff(run).advantage() + 1e-9))
    True
    """
    limit = number("clip", clip, above=0.0, below=np.inf)
    count = integer("levels", levels, at_least=1)
    phases = _phases(mechanism)
    total = sum(phase.steps for phase in phases)
    if isinstance(gradient_norms, NormRecorder):
        records, columns = gradient_norms.records, list(gradient_norms.steps())
    else:
        array = norm_array(gradient_norms)
        records, everyone = array.shape[0], np.arange(array.shape[0])
        columns = [(everyone, column) for column in array.T]
    if len(columns) != total:
        raise InputError(f"gradient_norms must cover each of the run's {total} steps, got {len(columns)} steps")
    known = [(where, shares(norms, limit)) for where, norms in columns]
    return _invert(_tally(known, records, phases, count))


def _phases(mechanism: Mechanism) -> list[SubsampledGaussian]:
    phases = []
    for part in parts_of(mechanism):
        if not isinstance(part, SubsampledGaussian) or part.records_per_person != 1:
            raise InputError(
                "mechanism must be a SubsampledGaussian with records_per_person=1, or a Composition of them, got "
                f"{part!r}: of nothing else are many curves known here; dn.tradeoff(mechanism) bounds all"
            )
        phases.append(part)
    return phases


@dataclass(frozen=True, eq=False)
class _Tally:
    """How often each record passed each kind of step.

    ``kinds`` lists one step of every kind (noise, rate), ``counts`` has shape (records, kinds); ``gaussian`` is what
    the full-batch steps add to μ² of each record.
    """

    kinds: PrivacyLoss
    counts: csr_array
    gaussian: FloatArray

    def total(self, per_kind: NDArray[Any]) -> NDArray[Any]:
        """Sum over each record's steps of a quantity given per kind (first axis)."""
        return np.asarray(self.counts @ per_kind)

    def of(self, records: NDArray[np.intp]) -> _Tally:
        """The part that concerns some records, without kinds that none of them met."""
        counts = self.counts[records]
        used = np.unique(counts.indices)
        kinds = PrivacyLoss(self.kinds.noise[used], self.kinds.rate[used], self.kinds.steps[used], 0.0)
        return _Tally(kinds, counts[:, used], self.gaussian[records])


def _share_levels(shares: _Shares, levels: int) -> FloatArray:
    """0, the levels to which shares are rounded up, and 1: the shares themselves if there are few of them."""
    known: FloatArray = np.array([0.0, 1.0])
    for _, share in shares:
        known = np.union1d(known, share)
        if known.size > levels + 1:
            return np.arange(levels + 1) / levels
    return known


def _tally(shares: _Shares, records: int, phases: list[SubsampledGaussian], levels: int) -> _Tally:
    """Count, for every record and phase, the steps at each level of r/C; unknown steps are at level 1."""
    from scipy.sparse import csr_array, hstack  # slow to import

    grid = _share_levels(shares, levels)
    gaussian = np.zeros(records)
    noise, rate, blocks = [np.empty(0)], [np.empty(0)], [csr_array((records, 0))]
    start = 0
    for phase in phases:
        block = np.zeros((records, grid.size))
        for where, share in shares[start : start + phase.steps]:
            block[where, np.searchsorted(grid, share)] += 1
        block[:, -1] += phase.steps - block.sum(axis=1)
        start += phase.steps
        # noise is lowered by a few roundings, for those of r/C and of the division here
        sigma = phase.noise_multiplier * (1 - 8 * EPS) / grid[1:]
        if phase.sample_rate == 1:
            gaussian += block[:, 1:] @ (1 / sigma**2) * (1 + grid.size * EPS)
        else:
            noise.append(sigma)
            rate.append(np.full(sigma.size, phase.sample_rate))
            blocks.append(csr_array(block[:, 1:]))
    kinds = PrivacyLoss(np.concatenate(noise), np.concatenate(rate), np.ones(sum(map(len, noise))), 0.0)
    return _Tally(kinds, hstack(blocks, format="csr"), gaussian * (1 + len(phases) * EPS))


def _invert(tally: _Tally, runs: tuple[Mechanism, ...] = ()) -> IndividualTradeoffs:
    """Hockey sticks of all records, in groups of similar spread."""
    records = tally.gaussian.size
    spread = np.sqrt(tally.total(tally.kinds.line(0.5).phases.moments[1]) + tally.gaussian)
    reach = _reach(tally, spread)
    log_gamma = np.tile(np.linspace(-1.0, 1.0, _THRESHOLDS), (records, 1))
    hockey_sticks = np.zeros((2, records, _THRESHOLDS))
    exposed = np.flatnonzero(spread > 0)  # a record whose gradient was always 0 leaves no trace
    octaves = np.floor(np.log2([reach[exposed], np.sqrt(reach[exposed] / spread[exposed])]))
    kinds, member = np.unique(octaves, axis=1, return_inverse=True)
    for key in range(kinds.shape[1]):
        group = exposed[member == key]
        widest = float(spread[group].max())
        log_gamma[group] *= min(8 * widest + widest**2, DIGITS)
        overlap = _overlap(tally.of(group), log_gamma[group[0]], widest, float(reach[group].max()))
        hockey_sticks[0, group] = 1 - overlap
        hockey_sticks[1, group] = 1 - np.exp(log_gamma[group]) * overlap[:, ::-1]  # H_γ(out‖in) = 1 − γ·A(1/γ)
    remove, add = np.clip(hockey_sticks * (1 + 8 * EPS), np.maximum(-np.expm1(log_gamma), 0.0), 1.0)
    return IndividualTradeoffs(log_gamma, remove, add, runs)


def _reach(tally: _Tally, spread: FloatArray) -> FloatArray:
    """Λ: so wide that the law of L and its aliases hardly overlap. The choice decides tightness, not soundness."""
    kinds, met = tally.kinds, tally.counts.copy()
    if kinds.noise.size:
        met.data = log_ratio(9 + 1 / kinds.noise, kinds.noise, kinds.rate)[met.indices]  # loss of a single step
        spread = spread + np.asarray(met.max(axis=1).todense()).ravel() / 8
    return np.asarray(2 * (8 * spread + spread**2))


def _overlap(tally: _Tally, log_gamma: FloatArray, width: float, period: float) -> FloatArray:
    """Lower bounds on A(γ) = ∫ min(p, γq), shape (records, thresholds)."""
    spacing = 2 * np.pi / period
    base = tally.kinds.line(0.5).phases
    log_start = tally.total(np.log1p(base.excess)) - tally.gaussian / 8
    end, neglected = _truncation(tally, base, log_start, width, spacing)
    total = np.zeros((log_start.size, log_gamma.size))
    rounding = np.zeros(log_start.size)
    turning = 4 * EPS * (tally.gaussian + np.abs(log_gamma).max())  # of e^{−itε} and the Gaussian part, per unit of t
    nodes = spacing * np.arange(math.ceil(float(end.max()) / spacing) + 1)
    for t in np.array_split(nodes, math.ceil(nodes.size * log_start.size / MOST)):
        active = np.flatnonzero(end >= t[0])
        line = tally.kinds.line(0.5, float(t[-1])).phases
        log_phi = log_start[active, None] + np.asarray(tally.counts[active] @ line.log_ratios(t, spacing))
        phi = np.exp(log_phi - np.multiply.outer(tally.gaussian[active], t**2 / 2))
        phi *= spacing / np.pi / (t**2 + 0.25) * np.where(t == 0, 0.5, 1.0)
        angle = np.multiply.outer(t, log_gamma)
        total[active] += phi.real @ np.cos(angle) + phi.imag @ np.sin(angle)
        weight = (
            spacing / np.pi / (t**2 + 0.25) * np.exp(log_start[active, None])
        )  # where φ is small, M^{T − 1} may not be
        blur = 2 * tally.total(line.step_rounding + line.left_out) + turning
        # |Π(M + ΔM) − ΠM| ≤ ΠM(½)·(e^S − 1), S the sum of |ΔM|/M(½) over the steps: all orders of the errors
        errors = np.multiply.outer(blur[active], np.hypot(t, 0.5))
        rounding[active] += (weight * np.expm1(np.minimum(errors, MOST_EXPONENT))).sum(axis=1)
        rounding[active] += 64 * EPS * (1 + np.abs(log_start[active])) * np.abs(phi).sum(axis=1)
    gamma = np.exp(log_gamma)
    aliases = even_aliases(period, gamma) * (1 + 8 * EPS)
    return np.asarray(np.sqrt(gamma) * (total - (neglected + 2 * rounding)[:, None]) - aliases)


def _truncation(
    tally: _Tally, base: Phases, log_start: FloatArray, width: float, spacing: float
) -> tuple[FloatArray, FloatArray]:
    """For each record where its sum may stop, and a bound on (1/π)·Σ spacing·|φ|/(t² + ¼) over the nodes beyond."""
    counts, total = np.asarray(tally.counts.max(axis=0).todense()).ravel(), float(tally.counts.sum(axis=1).max())
    for places in (PLACES[4:15:2], PLACES):  # the first are mostly enough
        edges: FloatArray = np.unique(np.minimum(places / width, POINTS * spacing))
        moved = shifted(base, edges, lifts(counts, total, 4)) if counts.size else np.zeros((0, edges.size))
        height = np.exp(log_start[:, None] + tally.total(moved) - np.multiply.outer(tally.gaussian, edges**2 / 2))
        beyond = falling_rest(edges, height, spacing)
        if np.all(beyond[:, -1] <= _NEGLECTED):
            break
    stop = np.minimum(np.sum(beyond > _NEGLECTED, axis=1), edges.size - 1)
    return edges[stop], beyond[np.arange(stop.size), stop]
