"""The fast bounds compared with rigorous enclosures of the same numbers."""

from __future__ import annotations

from dataclasses import dataclass

from deniable._check import InputError, number
from deniable._optional import require
from deniable.accounting import tradeoff
from deniable.curves import EVERY_CASE, Tradeoff, with_batches_of
from deniable.mechanisms import Mechanism, parts_of


@dataclass(frozen=True)
class ProvenNumber:
    """One number: its fast bracket, the interval that ball arithmetic proves, and whether they meet.

    Examples
    --------
    See ``prove``.
    """

    name: str
    lower: float
    upper: float
    proven_lower: float
    proven_upper: float

    @property
    def meets(self) -> bool:
        """Whether the two intervals intersect; if not, one of the two engines is wrong."""
        return self.lower <= self.proven_upper and self.proven_lower <= self.upper


@dataclass(frozen=True)
class Proof:
    """Advantage, TPR and ε of one mechanism, each twice; see :class:`ProvenNumber`.

    Examples
    --------
    See ``prove``.
    """

    advantage: ProvenNumber
    tpr: ProvenNumber
    epsilon: ProvenNumber

    @property
    def agrees(self) -> bool:
        """Whether every fast bracket meets the interval that is proven."""
        return all(row.meets for row in (self.advantage, self.tpr, self.epsilon))

    def lines(self) -> list[str]:
        """Return a table: the fast bracket, the proven interval, and the verdict on each."""
        rows = [("", "fast bracket", "proven by ball arithmetic", "")]
        for row in (self.advantage, self.tpr, self.epsilon):
            verdict = "they intersect" if row.meets else "THEY DO NOT INTERSECT: please report this"
            fast, proven = f"[{row.lower!r}, {row.upper!r}]", f"[{row.proven_lower!r}, {row.proven_upper!r}]"
            rows.append((row.name, fast, proven, verdict))
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        return ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]).rstrip()
                for row in rows]  # fmt: skip


def enclosure(mechanism: Mechanism) -> Tradeoff:
    """Return the trade-off of ``mechanism`` with every number enclosed in ball arithmetic: seconds, not milliseconds.

    The truth of :meth:`~deniable.curves.Tradeoff.tpr`, of δ and of the advantage at even odds is proven to lie between
    the two sides, to the last digit.

    Raises
    ------
    ImportError
        Without python-flint, with the line that installs it.
    InputError
        For anything but ``SubsampledGaussian``, ``GaussianDP``, ``PureDP``, ``ApproximateDP`` and compositions of them,
        and for laws that would take too long; see ``docs/methods.md``.

    Examples
    --------
    >>> import deniable as dn
    >>> t = dn.proof.enclosure(dn.GaussianDP(0.5))
    >>> round(t.tpr(0.01), 6), round(t.tpr(0.01, "lower"), 6)
    (0.033899, 0.033899)
    """
    require("flint", purpose="ball arithmetic")
    from deniable.proof.curve import BallTradeoff

    if not isinstance(mechanism, Mechanism):
        raise InputError(f"mechanism must be one of deniable's mechanisms, got {mechanism!r}")
    enclosed = BallTradeoff(parts_of(mechanism), holds_for=EVERY_CASE)
    enclosed.law  # noqa: B018  (raises where there is none)
    return with_batches_of(enclosed, mechanism)


def prove(mechanism: Mechanism, *, prior: float = 0.5, fpr: float = 1e-3, delta: float = 1e-5) -> Proof:
    """Return the default bounds of ``mechanism``, and those of :func:`enclosure`.

    Parameters
    ----------
    mechanism
        What ran.
    prior
        Prior of the advantage, in (0, 1).
    fpr
        False positive rate of the TPR, in [0, 1].
    delta
        δ of ε (both directions), in [0, 1].

    Returns
    -------
    Proof
        Advantage, TPR and ε: the default bounds, next to the proven ones.

    Raises
    ------
    ImportError
        Without python-flint.
    InputError
        For a mechanism that ball arithmetic does not serve; see ``docs/methods.md``.

    Examples
    --------
    >>> import deniable as dn
    >>> found = dn.proof.prove(dn.GaussianDP(0.5))              # by ball arithmetic
    >>> found.advantage.proven_lower <= found.advantage.upper
    True
    """
    pi = number("prior", prior, above=0.0, below=1.0)
    rate = number("fpr", fpr, at_least=0.0, at_most=1.0, hint="it is a rate, not a percentage")
    dlt = number("delta", delta, at_least=0.0, at_most=1.0)
    proven = _bounds(enclosure(mechanism), pi, rate, dlt)  # first: it says what is missing
    fast = _bounds(tradeoff(mechanism), pi, rate, dlt)
    names = (f"advantage at prior {pi:g}", f"TPR at FPR {rate:g}", f"ε at δ = {dlt:g}")
    return Proof(*(ProvenNumber(name, *a, *b) for name, a, b in zip(names, fast, proven, strict=True)))


def _bounds(t: Tradeoff, prior: float, fpr: float, delta: float) -> list[tuple[float, float]]:
    return [
        (t.advantage(prior, "lower"), t.advantage(prior)),
        (t.tpr(fpr, "lower"), t.tpr(fpr)),
        (t.epsilon(delta, side="lower"), t.epsilon(delta)),
    ]
