"""Membership inference privacy (Izzo et al. §3): η in terms of trade-offs and of differential privacy.

η-MIP: whoever sees the output names the membership of a record correctly with probability at most
max(π, 1 − π) + η. In Izzo's game the training set is a uniform subset of *fixed size* k = πn, so that taking a record
out puts another one in: the guarantee that counts is the one for *replacing* a record. A guarantee for adding or
removing one bounds the game in which each record is drawn independently; it does not carry over as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deniable._check import FloatArray, InputError, choice, numbers
from deniable._floats import EPS
from deniable.bounds._common import check_named, plain, raise_by, together
from deniable.bounds.inverse import epsilon_for_advantage
from deniable.bounds.membership import advantage
from deniable.curves import ONE_CASE, Direction, Tradeoff
from deniable.mechanisms import ADJACENCIES
from deniable.risks import replaced


def mip_eta(tradeoff: Tradeoff, *, prior: ArrayLike = 0.5, game: str = "fixed size") -> float | FloatArray:
    """Return the η for which every mechanism bounded by ``tradeoff`` is η-MIP; ½·TV at ``prior=0.5``.

    In general it is the Bayes accuracy minus max(π, 1 − π) (Izzo et al., Definition 1 with k/n = ``prior``).

    Parameters
    ----------
    tradeoff
        Of a mechanism, or of the two worlds "in" and "out" themselves (a release's certificate, a single pair of
        laws), which is taken as it is.
    prior
        k/n, the chance of each record to be in the training set.
    game
        ``"fixed size"``, the paper's: the training set has k records whatever happens, so that leaving one out puts
        another in. A mechanism's curve for adding or removing a record is then taken twice, once each way
        (Mahloujifar et al., Remark 13; :func:`deniable.risks.replaced`). ``"independent"``: each record is drawn by
        itself, and the curve for adding or removing one counts once. At advantage 0.2 the two are η = 0.194 and 0.1.

    Returns
    -------
    float or array
        η in [0, ½], rounded up; a float for a scalar prior, otherwise an array of its shape.

    Raises
    ------
    InputError
        For a curve that does not fit the game: one for replacing a record where records are drawn independently, or
        one of a single record, to add or remove, where the size is fixed.

    Examples
    --------
    >>> import deniable as dn
    >>> b = dn.bounds
    >>> t = dn.tradeoff(dn.GaussianDP(0.5))
    >>> found = b.mip_eta(t), b.mip_from_dp(0.5), b.tpr_from_mip(0.1, fpr=0.01), b.epsilon_for_mip(0.1)
    >>> [round(float(f), 3) for f in found]
    [0.191, 0.122, 0.21, 0.405]
    """
    asked = choice("game", game, ("fixed size", "independent"))
    adjacency = tradeoff.assumptions.adjacency
    if asked == "independent" and adjacency.startswith("replace"):
        raise InputError(
            'game="independent" needs a curve for adding or removing a record, got one for replacing a record; '
            'use game="fixed size", or make the curve with adjacency="add-remove"'
        )
    one_pair = tradeoff.holds_for == ONE_CASE
    of_one = [words for kind, words in ADJACENCIES.items() if kind != "replace"]
    if asked == "fixed size" and not one_pair and adjacency.startswith(("add or remove", *of_one)):
        tradeoff = replaced(tradeoff)
    eta = np.asarray(tradeoff.advantage(check_named("prior", prior))) / 2
    return plain(eta)


def mip_from_dp(
    epsilon: ArrayLike, *, delta: ArrayLike = 0.0, prior: ArrayLike = 0.5, adjacency: str = "replace"
) -> float | FloatArray:
    """Return the η-MIP of every (ε, δ)-DP algorithm: δ + (1 − δ)/(1 + e^{−ε}) − ½ at prior ½; it is attained.

    ``adjacency`` is that of the DP guarantee: ``"replace"``, as the theorem means it, or ``"add-remove"``, which
    counts as (2ε, (1 + e^ε)·δ) because exchanging a record is one removal and one addition.

    Source: Izzo et al., Theorem 4 (any k: hockey sticks of mixtures are jointly convex).

    Parameters
    ----------
    epsilon
        ε ≥ 0 of the guarantee, in nats; infinity is allowed.
    delta
        δ in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).
    adjacency
        ``"replace"`` or ``"add-remove"``: what the two data sets of the guarantee differ in.

    Returns
    -------
    float or array
        η in [0, ½], rounded up; a float for scalars, otherwise an array of the broadcast shape.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, shapes do not broadcast, or the adjacency is unknown.

    Examples
    --------
    See ``mip_eta``.
    """
    eps, dlt = together(epsilon=epsilon, delta=delta)
    if choice("adjacency", adjacency, ("replace", "add-remove")) == "add-remove":
        with np.errstate(over="ignore", invalid="ignore"):
            eps, dlt = 2 * eps, np.where(dlt > 0, np.minimum((1 + np.exp(eps)) * dlt, 1.0), 0.0)
    return plain(np.asarray(advantage(eps, delta=dlt, prior=prior)) / 2)


def epsilon_for_mip(eta: ArrayLike, *, delta: ArrayLike = 0.0) -> float | FloatArray:
    """Return the largest ε whose (ε, ``delta``)-DP (replacing a record) gives η-MIP; ln((1 + 2η)/(1 − 2η)) at δ = 0.

    The way back of Izzo et al., Theorem 4. It does not make an η-MIP algorithm differentially private (Theorem 5).

    Parameters
    ----------
    eta
        Largest gain over guessing allowed, in [0, ½].
    delta
        δ in [0, 1].

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; ε in nats, rounded down.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, shapes do not broadcast, or ε = 0 misses the target.

    Examples
    --------
    See ``mip_eta``.
    """
    return epsilon_for_advantage(2 * check_named("eta", eta), delta=delta)


def tpr_from_mip(eta: ArrayLike, *, fpr: ArrayLike, prior: ArrayLike = 0.5) -> float | FloatArray:
    """Return the largest true positive rate under η-MIP: ``fpr`` + 2η at prior ½.

    In general (η + max(π, 1 − π) − (1 − π)·(1 − fpr))/π. Izzo et al., Theorem 8, prints fpr + η, which publishing the
    training set refutes (erratum E2): η = ½, but the true positive rate is 1 at false positive rate 0.

    Parameters
    ----------
    eta
        Gain of the best attack over guessing, in [0, ½].
    fpr
        False positive rate, in [0, 1].
    prior
        π = P(in) before the attack, in (0, 1).

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; in [0, 1], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``mip_eta``.
    """
    e, alpha, pi = together(eta=eta, fpr=fpr, prior=prior)
    # max(π, 1 − π) − (1 − π) = max(2π − 1, 0), so that nothing cancels
    return plain(raise_by((e + np.maximum(2 * pi - 1, 0.0) + (1 - pi) * alpha) / pi))


def scaled_total_variation(tradeoff: Tradeoff, scale: ArrayLike, direction: Direction = "add") -> float | FloatArray:
    """Return TV_a(X, Y) = ½∫|x − a·y| = H_a(X‖Y) − (1 − a)/2, by default with X = out and Y = in.

    Mahloujifar et al. (footnote 4) call it the hockey stick H_a itself (erratum E11): they agree at a = 1 only. Their
    Definition 4 has a > 0, but their Lemma 7 and Theorem 6 use it at (a + q − 1)/q, which is negative for a < 1 − q
    (erratum E18): for a ≤ 0 the integrand never changes sign, and TV_a is (1 − a)/2 whatever the two laws are.

    Parameters
    ----------
    tradeoff
        Curve of the two worlds.
    scale
        a, any finite number.
    direction
        ``"add"``: X is the world without the record; ``"remove"``: the one with it.

    Returns
    -------
    float or array
        TV_a ≥ |1 − a|/2, rounded up; a float for a scalar, otherwise an array of its shape.

    Raises
    ------
    InputError
        If a scale is NaN or infinite, or the direction is unknown.

    Examples
    --------
    >>> import deniable as dn
    >>> b, t = dn.bounds, dn.tradeoff(dn.GaussianDP(0.5))
    >>> v = b.scaled_total_variation(t, 0.8)
    >>> round(v, 4), round(b.tpr_from_scaled_variation(v, scale=0.8, fpr=0.05), 4)
    (0.1946, 0.1808)
    >>> round(b.advantage_from_scaled_variation(0.3, prior=0.4), 4)
    0.16
    >>> round(float(b.subsampled_variation(0.3, rate=0.1)), 4), round(float(b.subsampled_epsilon(1.0, rate=0.1)), 4)
    (0.03, 0.1586)
    """
    a = numbers("scale", scale, above=-np.inf, below=np.inf)
    positive = np.maximum(a, 0.0)
    hockey_stick, trivial = np.asarray(tradeoff.hockey_stick(positive, direction)), (1 - positive) / 2
    found = hockey_stick - trivial + (positive - a) / 2
    rounding = 2 * EPS * (hockey_stick + np.abs(trivial) + np.abs(a) / 2)
    return plain(np.where(a == 1, hockey_stick, np.where(a <= 0, (1 - a) / 2, found + rounding)))


def subsampled_variation(variation: ArrayLike, *, rate: ArrayLike) -> float | FloatArray:
    """Return TV_a(X', Y) = q·TV_{(a+q−1)/q}(X, Y) for X' = (1 − q)·Y + q·X, from ``variation`` = TV_{(a+q−1)/q}(X, Y).

    Source: Mahloujifar et al., Lemma 7. The scale (a + q − 1)/q may be negative, see :func:`scaled_total_variation`.

    Parameters
    ----------
    variation
        TV_{(a+q−1)/q}(X, Y) ≥ 0 of the mechanism without sampling.
    rate
        q in [0, 1]: the probability with which the record is used.

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape, rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``scaled_total_variation``.
    """
    tv, q = together(variation=variation, rate=rate)
    return plain(raise_by(q * tv, most=np.inf))


def tpr_from_scaled_variation(variation: ArrayLike, *, scale: ArrayLike, fpr: ArrayLike) -> float | FloatArray:
    """Return (2·fpr + 2·TV_a(out, in) + a − 1)/(2a), a bound on the true positive rate for every ``scale`` a > 0.

    At the a for which ``fpr`` is the false positive rate of accusing where in > out/a it is the largest true positive
    rate itself; any other a gives more, so the least over a is ``Tradeoff.tpr``.

    Source: Mahloujifar et al., Propositions 9 and 10 and Corollary 11.

    Parameters
    ----------
    variation
        TV_a(out, in) ≥ 0.
    scale
        a, above 0 and finite.
    fpr
        False positive rate, in [0, 1].

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; in [0, 1], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``scaled_total_variation``.
    """
    tv, a, alpha = together(variation=variation, scale=scale, fpr=fpr)
    rounding = 8 * EPS * (alpha + tv + np.abs(a - 1) / 2)
    return plain(np.clip((alpha + (tv - (1 - a) / 2) + rounding) / a, 0.0, 1.0))


def advantage_from_scaled_variation(variation: ArrayLike, *, prior: ArrayLike) -> float | FloatArray:
    """Return 2(1 − p)·TV_{p/(1−p)}(out, in) − (1 − 2p), the prior advantage for p = ``prior`` of at most ½.

    Mahloujifar et al. (eq. 26, Theorem 21) print + (1 − 2p) (erratum E10), by which equal worlds, where
    TV_a = (1 − a)/2, would have the advantage 2(1 − 2p).

    Parameters
    ----------
    variation
        TV_{p/(1−p)}(out, in), in [0, 1].
    prior
        p = P(in), in (0, ½].

    Returns
    -------
    float or array
        A float for scalars, otherwise an array of the broadcast shape; in [0, 2p], rounded up.

    Raises
    ------
    InputError
        If a value is NaN or outside its range, or shapes do not broadcast.

    Examples
    --------
    See ``scaled_total_variation``.
    """
    p = numbers("prior", prior, above=0.0, at_most=0.5, hint="for a larger one exchange the two worlds")
    tv, p = together(variation=numbers("variation", variation, at_least=0.0, at_most=1.0), prior=p)
    sure = 2 * (1 - p) * tv
    return plain(np.clip(np.where(p == 0.5, tv, sure - (1 - 2 * p) + 4 * EPS * sure), 0.0, 2 * p))
