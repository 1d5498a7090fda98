"""One curve, other risks: what follows from a membership curve for secrets, predicates, groups and replaced records.

TPR(·) is the upper ROC, H0: the record is absent (law Q of the output), H1: it is present with content z (law P_z). It
is concave and non-decreasing. Everything here needs a curve that holds **for every content z and every rest of the
data**. Certificates of releases, curves of single records and profiles do not: n identical secret records and their
mean have membership advantage 0 without any noise, since which of them were drawn changes nothing, and yet everything
is published. Such curves are refused.

Sources: Hayes, Mahloujifar & Balle 2023 (reconstruction), Dong, Roth & Su 2022 (groups), Cohen & Nissim 2020 (singling
out as a legal notion). The proofs are in the docstrings.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, integer, numbers
from deniable._floats import EPS
from deniable.curves import (
    EVERY_CASE,
    BracketTradeoff,
    ChainTradeoff,
    Direction,
    GaussianTradeoff,
    Side,
    Tradeoff,
)


def require_universal(tradeoff: Tradeoff, asked: str) -> None:
    """Raise ``InputError`` unless ``tradeoff`` holds for every content of the record and every rest of the data."""
    if not tradeoff.universal:
        raise InputError(
            f"{asked} needs a curve that holds for every content of a record and every rest of the data; this one "
            f"holds for {tradeoff.holds_for} only, and nothing follows from it for a secret that it did not vary (n "
            "identical secret records and their mean: no membership leaks, everything is published); use the curve of "
            "the mechanism, dn.tradeoff(mechanism)"
        )


def reconstruction(tradeoff: Tradeoff, baseline: ArrayLike, side: Side = "upper") -> float | FloatArray:
    """Return the largest probability of guessing a secret of a record: TPR(κ).

    ``baseline`` is κ = E_x max_a Pr(a ∈ B(z) | x), what the best guess reaches that never sees the output: z the
    record's content, x all that the attacker knows beforehand (the other records included), B(z) the guesses that count
    as right. It covers reconstruction, attribute inference and linkage. With m equally likely candidates κ = 1/m.

    *Proof.* Fix x. The guess a depends on the output and x. Success = E_z P_z(a ∈ B(z)) ≤ E_z TPR(Q(a ∈ B(z))), as
    {a ∈ B(z)} is a test for the presence of z; by concavity ≤ TPR(E_z Q(a ∈ B(z))), and under Q the output tells
    nothing of z, so that E_z Q(a ∈ B(z)) = E_a Pr(a ∈ B(z) | x) ≤ max_a Pr(a ∈ B(z) | x). Average over x: Jensen again.

    *The lower side* says what cannot be improved from the curve alone: some mechanism with this curve reaches TPR(κ).
    Let the output of the empty data set be uniform on a circle of length 1, and that of the record z a point at
    distance y from z, clockwise, y of density TPR'(y). Its curve is TPR; with z uniform and a guess right if it lies at
    most κ after z, blind guessing reaches κ and naming the output TPR(κ). A given mechanism may allow less.

    Parameters
    ----------
    tradeoff
        A curve that holds for every record and data set, such as that of a mechanism.
    baseline
        κ in [0, 1], any shape.
    side
        ``"upper"``: no attacker does better; ``"lower"``: see below.

    Returns
    -------
    float or array
        A probability, rounded to ``side``; a float for a scalar, otherwise an array of the shape of ``baseline``.

    Raises
    ------
    InputError
        If the curve does not hold for every record and data set, or a baseline is not in [0, 1].

    Examples
    --------
    See ``attribute``.
    """
    require_universal(tradeoff, "reconstruction")
    numbers("baseline", baseline, at_least=0.0, at_most=1.0, hint="it is the chance of guessing right blindly")
    return tradeoff.tpr(baseline, side)


def attribute(tradeoff: Tradeoff, prior: ArrayLike, weights: ArrayLike | None = None, side: Side = "upper") -> float:
    """Return the largest probability of naming a record's attribute, given all its other data and the output.

    Parameters
    ----------
    tradeoff
        A curve that holds for every record and data set.
    prior
        P(attribute = a | x), shape (situations, values) or (values,) for a single situation; rows add up to 1. What the
        attacker knows (x) differs between situations, and with it the best blind guess: the largest prior of the
        attribute alone is unsafe wherever attributes correlate.
    weights
        How likely each situation is (equally, if None).
    side
        As in :func:`reconstruction`, which this is at κ = Σ_x weight_x · max_a prior[x, a].

    Returns
    -------
    float
        A probability, rounded to ``side``.

    Raises
    ------
    InputError
        If the curve does not hold for every record and data set, or ``prior`` or ``weights`` are no distributions.

    Examples
    --------
    >>> import deniable as dn
    >>> t = dn.tradeoff(dn.PureDP(1.0))
    >>> prior = [0.7, 0.2, 0.1]                                     # what is known of a secret without the release
    >>> round(dn.risks.best_guess(prior), 3), round(dn.risks.attribute(t, prior), 3)
    (0.7, 0.89)
    >>> round(dn.risks.reconstruction(t, 0.001), 5), round(dn.risks.singling_out(t, 1000, 1e-6), 5)
    (0.00272, 0.00272)
    >>> round(dn.risks.group(t, 2).epsilon(0.0), 6)
    2.0
    """
    return float(reconstruction(tradeoff, best_guess(prior, weights, side), side))


def best_guess(prior: ArrayLike, weights: ArrayLike | None = None, side: Side = "upper") -> float:
    """Return κ of :func:`attribute`: how often the best guess from the ``prior`` is right, rounded to ``side``.

    Parameters
    ----------
    prior, weights
        As for :func:`attribute`.
    side
        ``"upper"`` or ``"lower"``: where the result is rounded to.

    Returns
    -------
    float
        κ, a probability.

    Raises
    ------
    InputError
        If ``prior`` or ``weights`` are no distributions, or their shapes do not match.

    Examples
    --------
    See ``attribute``.
    """
    rows = np.atleast_2d(numbers("prior", prior, at_least=0.0, at_most=1.0))
    if rows.ndim != 2 or rows.size == 0 or not np.allclose(rows.sum(axis=1), 1.0, rtol=0.0, atol=1e-6):
        raise InputError("prior must hold distributions: shape (situations, values), each row adding up to 1")
    w = np.ones(len(rows)) if weights is None else numbers("weights", weights, at_least=0.0, below=np.inf)
    if w.shape != (len(rows),) or not w.sum() > 0:
        raise InputError(f"weights must be {len(rows)} numbers that are not all 0, one per situation")
    best = float(np.sum(w / w.sum() * rows.max(axis=1)))
    slack = 8 * EPS * len(rows) * (1 if side == "upper" else -1)
    return min(max(best * (1 + slack), 0.0), 1.0)


def singling_out(tradeoff: Tradeoff, n: ArrayLike, weight: ArrayLike, side: Side = "upper") -> float | FloatArray:
    """Return the largest probability that a predicate read off the output matches exactly one of the ``n`` records.

    The records are drawn independently from a population in which the predicate (which may depend on the output)
    has weight at most ``weight``: the probability that a fresh person matches it.

    *Proof.* P(exactly one matches) ≤ Σ_i P(record i matches). Fix the other n − 1 records and write z for the i-th
    and W for the predicate: P(z ∈ W) = E_z P_z(z ∈ W) ≤ TPR(E_z Q(z ∈ W)) = TPR(E_W weight(W)) ≤ TPR(w), as in
    :func:`reconstruction`, since under Q the output does not depend on z. Hence at most min(1, n·TPR(w)). With a
    curve for replacing a record Q is the output for a fixed record instead, and the same holds.

    *The lower side* needs no output at all: a predicate fixed beforehand of weight v = min(w, 1/n) matches exactly
    one record with probability n·v·(1 − v)^{n−1} (if the population has predicates of every weight).

    Parameters
    ----------
    tradeoff
        A curve that holds for every record and data set, such as that of a mechanism.
    n
        Number of records, at least 1.
    weight
        w in [0, 1]; broadcast against ``n``.
    side
        ``"upper"``: no attacker does better; ``"lower"``: see below.

    Returns
    -------
    float or array
        A probability, rounded to ``side``; a float for scalars, otherwise an array of the broadcast shape.

    Raises
    ------
    InputError
        If the curve does not hold for every record and data set, or a value is outside its range.

    Examples
    --------
    See ``attribute``.
    """
    require_universal(tradeoff, "singling_out")
    counts = numbers("n", n, at_least=1.0, below=np.inf, hint="it is the number of records")
    if not np.array_equal(counts, np.floor(counts)):
        raise InputError(f"n must be a whole number of records, got {n!r}")
    w = numbers("weight", weight, at_least=0.0, at_most=1.0, hint="it is the share of the population that matches")
    counts, w = np.broadcast_arrays(counts, w)
    if side == "upper":
        found = np.minimum(counts * np.asarray(tradeoff.tpr(w, side)) * (1 + 2 * EPS), 1.0)
    elif side == "lower":
        v = np.minimum(w, 1 / counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(counts == 1, 1.0, np.exp((counts - 1) * np.log1p(-v)))
        found = np.maximum(counts * v * alone * (1 - 1e-12 - 4 * EPS * counts * v), 0.0)
    else:
        raise InputError(f"side must be one of 'upper', 'lower', got {side!r}")
    return float(found) if found.ndim == 0 else np.asarray(found)


def group(tradeoff: Tradeoff, k: int) -> Tradeoff:
    """Return the curve for a group of ``k`` records that are all in or all out: TPR∘…∘TPR, k times.

    *Proof.* Let R_j be the law with j of the records. R_j(S) ≤ TPR(R_{j−1}(S)) for every test S, and TPR is
    non-decreasing; substitute k times. For the Gaussian pair this is the pair with k·μ, and the sum of k equal
    vectors attains it. For DP-SGD :class:`~deniable.SubsampledGaussian` with ``records_per_person``, where it is
    offered, is sharper.

    The lower side is that of one record: a group of which the others change nothing.

    Parameters
    ----------
    tradeoff
        A curve that holds for every record and data set, such as that of a mechanism.
    k
        Number of records of the group, at least 1.

    Returns
    -------
    Tradeoff
        The group's curve; its assumptions name the size.

    Raises
    ------
    InputError
        If the curve does not hold for every record and data set, or ``k`` is no whole number above 0.

    Examples
    --------
    See ``attribute``.
    """
    require_universal(tradeoff, "group")
    count = integer("k", k, at_least=1, hint="it is the number of records of the group")
    if count == 1:
        return tradeoff
    many = {
        "add or remove one record": f"add or remove a group of {count} records",
        "replace one record": f"replace a group of {count} records",
    }
    adjacency = many.get(tradeoff.assumptions.adjacency, f"{count} times: {tradeoff.assumptions.adjacency}")
    remove: Direction = "remove"
    return _walk(tradeoff, (remove,) * count, adjacency, f"composed {count} times for a group")


def replaced(tradeoff: Tradeoff, *, any_mechanism: bool = False) -> Tradeoff:
    """Return the curve for *replacing* one record: TPR_add∘TPR_remove of a curve for adding or removing one.

    *Proof.* From the data with z' to those without it, and on to those with z: for every test S,
    P_z(S) ≤ TPR_add(Q(S)) and Q(S) ≤ TPR_remove(P_z'(S)). For the Gaussian pair this is exactly 2μ, which a sum of
    vectors attains that z and z' pull apart.

    *Lower side.* With ``any_mechanism=True`` the curve stands for all mechanisms with a guarantee, and the bound is
    attained by one of them: let Q be uniform on [0, 1), P_z have the density TPR_add'(u), and P_z' the cumulative
    distribution with TPR_remove(P_z'[0, u)) = u. Then p_z/p_z' decreases and the tests [0, u) are optimal. So an ε-DP
    mechanism allows TPR = min(e^{2ε}x, x + 1 − e^{−ε}, 1 − e^{−2ε}(1 − x)), which is less than what 2ε-DP does.
    Otherwise it is that of the two directions themselves: a record z' (or z) that changes nothing.
    """
    require_universal(tradeoff, 'adjacency="replace"')
    was = tradeoff.assumptions.adjacency
    now = was.replace("add or remove", "replace") if was.startswith("add or remove") else "replace one record"
    return _walk(tradeoff, ("add", "remove"), now, "a removal followed by an addition", any_mechanism)


def _walk(
    tradeoff: Tradeoff, ways: tuple[Direction, ...], adjacency: str, how: str, attained: bool = False
) -> Tradeoff:
    """Return the curve of a walk along one curve in these directions, in closed form where the curve is Gaussian."""
    assumptions = replace(tradeoff.assumptions, adjacency=adjacency)
    if isinstance(tradeoff, GaussianTradeoff):
        exact = len(ways) == 2  # no product by 2 is rounded
        mu = len(ways) * tradeoff.mu
        return replace(tradeoff, mu=mu if exact else _up(mu), assumptions=assumptions)
    if isinstance(tradeoff, BracketTradeoff):
        above = _walk(replace(tradeoff.above, holds_for=EVERY_CASE), ways, adjacency, how)
        return replace(tradeoff, above=above, assumptions=assumptions)
    return ChainTradeoff(
        tuple((tradeoff, way) for way in ways),
        attained,
        method=f"{tradeoff.method}; {how}",
        assumptions=assumptions,
        confidence=tradeoff.confidence,
        holds_for=EVERY_CASE,
    )


def _up(value: float) -> float:
    return float(np.nextafter(value, np.inf)) if 0 < value < np.inf else value
