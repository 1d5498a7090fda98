"""The losses whose leave-one-out optima deniable knows how to certify.

A loss is a function φ(t, y) of the margins t = xᵀF (one per class) and the target y. Besides its derivatives a
loss states the facts that the certificates of :mod:`deniable.records.neighbours` rest on:

``self_concordance``
    M such that moving the margins by u changes the curvature by a factor within exp(±M·‖u‖) (Bach 2010, generalised
    self-concordance); 0 means constant curvature, ``None`` that no such M exists.
``smoothness``
    the largest curvature, ``None`` if unbounded.
``lipschitz``
    the largest norm of the slope, ``None`` if unbounded: what a mechanism's sensitivity needs.

Margins have the classes on their last axis, of length 1 for every loss but softmax.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from deniable._check import FloatArray, InputError, number, numbers, refuse_sparse, unmasked

Margins = NDArray[Any]  # float64, or long double where the base fit sums its gradient


@dataclass(frozen=True)
class Loss(ABC):
    """Derivatives in the margins and the constants that certificates need.

    Examples
    --------
    See ``privacy_profile``.
    """

    name: ClassVar[str]
    self_concordance: ClassVar[float | None]
    smoothness: ClassVar[float | None]
    lipschitz: ClassVar[float | None]

    @abstractmethod
    def targets(self, y: ArrayLike) -> tuple[FloatArray, int]:
        """Encode the labels or responses; return them and the number of margins per row."""

    @abstractmethod
    def value(self, margins: Margins, y: Margins) -> Margins:
        """φ(t, y), of shape ``margins.shape[:-1]``."""

    @abstractmethod
    def slope(self, margins: Margins, y: Margins) -> Margins:
        """∂φ/∂t, of the shape of ``margins``."""

    @abstractmethod
    def curvature(self, margins: Margins, y: Margins) -> Margins:
        """∂²φ/∂t², with one more axis than ``margins``."""

    @abstractmethod
    def change(self, margins: Margins, step: Margins, y: Margins) -> Margins:
        """slope(t + step) − slope(t), to a relative rounding error of a few units."""

    def largest_curvature(self, margins: Margins) -> Margins:
        """Upper bound of the curvature's eigenvalues at t: ``smoothness`` unless there is none."""
        return np.full(margins.shape[:-1], self.smoothness)

    def kink(self, margins: Margins, y: Margins) -> Margins:
        """Distance of t to the nearest jump of the curvature (only for losses without self-concordance)."""
        return np.full(margins.shape[:-1], np.inf)


class _Scalar(Loss):
    """A loss of one margin, written as functions of t = margins[..., 0]."""

    def targets(self, y: ArrayLike) -> tuple[FloatArray, int]:
        return numbers("y", y), 1

    def value(self, margins: Margins, y: Margins) -> Margins:
        return self._value(margins[..., 0], y)

    def slope(self, margins: Margins, y: Margins) -> Margins:
        return self._slope(margins[..., 0], y)[..., None]

    def curvature(self, margins: Margins, y: Margins) -> Margins:
        return self._curvature(margins[..., 0], y)[..., None, None]

    def change(self, margins: Margins, step: Margins, y: Margins) -> Margins:
        return self._change(margins[..., 0], step[..., 0], y)[..., None]

    def kink(self, margins: Margins, y: Margins) -> Margins:
        return self._kink(margins[..., 0], y)

    @abstractmethod
    def _value(self, t: Margins, y: Margins) -> Margins: ...

    @abstractmethod
    def _slope(self, t: Margins, y: Margins) -> Margins: ...

    @abstractmethod
    def _curvature(self, t: Margins, y: Margins) -> Margins: ...

    @abstractmethod
    def _change(self, t: Margins, step: Margins, y: Margins) -> Margins: ...

    def _kink(self, t: Margins, y: Margins) -> Margins:
        return np.full(t.shape, np.inf)


@dataclass(frozen=True)
class Logistic(_Scalar):
    """log(1 + e^{−yt}) for two labels of any two values; the larger one counts as y = +1.

    Examples
    --------
    See ``privacy_profile``.
    """

    name = "logistic"
    self_concordance = 1.0
    smoothness = 0.25
    lipschitz = 1.0

    def targets(self, y: ArrayLike) -> tuple[FloatArray, int]:
        """Two labels as −1 and +1."""
        return _signs(self.name, y), 1

    def _value(self, t: Margins, y: Margins) -> Margins:
        return np.asarray(np.logaddexp(0, -y * t))

    def _slope(self, t: Margins, y: Margins) -> Margins:
        return -y * expit(-y * t)

    def _curvature(self, t: Margins, y: Margins) -> Margins:
        return expit(t) * expit(-t)

    def _change(self, t: Margins, step: Margins, y: Margins) -> Margins:
        # σ(t+s) − σ(t) = −σ(t)σ(−t)·expm1(−s)/(σ(t) + σ(−t)e^{−s}) for s > 0, and mirrored for s < 0
        ahead = np.where(step > 0, t, -t)
        rest = expit(ahead) + expit(-ahead) * np.exp(-np.abs(step))
        size = expit(t) * expit(-t) * -np.expm1(-np.abs(step)) / np.maximum(rest, np.finfo(rest.dtype).tiny)
        return np.asarray(np.sign(step) * size)


@dataclass(frozen=True)
class Squared(_Scalar):
    """(t − y)²/2.

    Examples
    --------
    See ``privacy_profile``.
    """

    name = "squared"
    self_concordance = 0.0
    smoothness = 1.0
    lipschitz = None

    def _value(self, t: Margins, y: Margins) -> Margins:
        return (t - y) ** 2 / 2

    def _slope(self, t: Margins, y: Margins) -> Margins:
        return t - y

    def _curvature(self, t: Margins, y: Margins) -> Margins:
        return np.ones_like(t)

    def _change(self, t: Margins, step: Margins, y: Margins) -> Margins:
        return step


@dataclass(frozen=True)
class SquaredHinge(_Scalar):
    """max(0, 1 − yt)² for two labels of any two values; the larger one counts as y = +1.

    Examples
    --------
    See ``privacy_profile``.
    """

    name = "squared_hinge"
    self_concordance = None
    smoothness = 2.0
    lipschitz = None

    def targets(self, y: ArrayLike) -> tuple[FloatArray, int]:
        """Two labels as −1 and +1."""
        return _signs(self.name, y), 1

    def _value(self, t: Margins, y: Margins) -> Margins:
        return np.asarray(np.maximum(1 - y * t, 0) ** 2)

    def _slope(self, t: Margins, y: Margins) -> Margins:
        return np.asarray(-2 * y * np.maximum(1 - y * t, 0))

    def _curvature(self, t: Margins, y: Margins) -> Margins:
        return np.where(y * t < 1, 2.0, 0.0)

    def _change(self, t: Margins, step: Margins, y: Margins) -> Margins:
        slack = 1 - y * t
        return np.asarray(-2 * y * (np.maximum(slack - y * step, 0) - np.maximum(slack, 0)))

    def _kink(self, t: Margins, y: Margins) -> Margins:
        return np.asarray(np.abs(1 - y * t))


@dataclass(frozen=True)
class Huber(_Scalar):
    """(t − y)²/2 while t − y is at most ``threshold`` in size, linear beyond.

    Examples
    --------
    See ``privacy_profile``.
    """

    threshold: float = 1.35

    name = "huber"
    self_concordance = None
    smoothness = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", number("threshold", self.threshold, above=0.0))

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        """The slope is clipped at the threshold."""
        return self.threshold

    def _value(self, t: Margins, y: Margins) -> Margins:
        size = np.abs(t - y)
        inner = np.minimum(size, self.threshold)
        return np.asarray(inner * (size - inner / 2))

    def _slope(self, t: Margins, y: Margins) -> Margins:
        return np.asarray(np.clip(t - y, -self.threshold, self.threshold))

    def _curvature(self, t: Margins, y: Margins) -> Margins:
        return np.where(np.abs(t - y) < self.threshold, 1.0, 0.0)

    def _change(self, t: Margins, step: Margins, y: Margins) -> Margins:
        k, error = self.threshold, t - y
        return np.asarray(np.clip(error + step, -k, k) - np.clip(error, -k, k))

    def _kink(self, t: Margins, y: Margins) -> Margins:
        return np.asarray(np.abs(np.abs(t - y) - self.threshold))


@dataclass(frozen=True)
class Poisson(_Scalar):
    """e^t − y·t for counts y ≥ 0 (log link).

    Examples
    --------
    See ``privacy_profile``.
    """

    name = "poisson"
    self_concordance = 1.0
    smoothness = None
    lipschitz = None

    def targets(self, y: ArrayLike) -> tuple[FloatArray, int]:
        """Counts, or any responses of at least 0."""
        return numbers("y", y, at_least=0.0, hint="the Poisson loss is for counts"), 1

    def _value(self, t: Margins, y: Margins) -> Margins:
        return np.asarray(np.exp(t) - y * t)

    def _slope(self, t: Margins, y: Margins) -> Margins:
        return np.exp(t) - y

    def _curvature(self, t: Margins, y: Margins) -> Margins:
        return np.exp(t)

    def _change(self, t: Margins, step: Margins, y: Margins) -> Margins:
        return np.asarray(np.exp(t) * np.expm1(step))

    def largest_curvature(self, margins: Margins) -> Margins:
        """e^t."""
        return np.asarray(np.exp(margins[..., 0]))


@dataclass(frozen=True)
class Softmax(Loss):
    """Cross-entropy of softmax(t) for any number of classes, one weight vector per class (parameters flattened).

    The curvature is a covariance under the class probabilities, so moving the margins by u changes it by at most
    exp(± the range of u), and a range is at most √2·‖u‖.

    Examples
    --------
    See ``privacy_profile``.
    """

    name = "softmax"
    self_concordance = float(np.sqrt(2))
    smoothness = 0.5
    lipschitz = float(np.sqrt(2))

    def targets(self, y: ArrayLike) -> tuple[FloatArray, int]:
        """Class numbers, in the sorted order of the labels."""
        classes, codes = np.unique(_labels(y), return_inverse=True)
        if classes.size < 2:
            raise InputError(f"y must have at least two classes for loss='softmax', got only {classes.tolist()}")
        return codes.astype(np.float64), classes.size

    def value(self, margins: Margins, y: Margins) -> Margins:
        """−log p_y."""
        return np.asarray(-np.log(self._probabilities(margins, y)[1]))

    def slope(self, margins: Margins, y: Margins) -> Margins:
        """p − e_y."""
        return np.asarray(self._probabilities(margins, y)[0] - self._one_hot(margins, y))

    def curvature(self, margins: Margins, y: Margins) -> Margins:
        """Diag(p) − ppᵀ."""
        p = softmax(margins, axis=-1)
        return np.asarray(p[..., :, None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :])

    def change(self, margins: Margins, step: Margins, y: Margins) -> Margins:
        """p∘expm1(step − log Σ p e^step), where nothing cancels, for steps of at most 1; the difference beyond."""
        p = softmax(margins, axis=-1)
        small = np.clip(step, -1, 1)
        log_scale = np.log1p(np.sum(p * np.expm1(small), axis=-1, keepdims=True))
        near = np.max(np.abs(step), axis=-1, keepdims=True) <= 1
        return np.where(near, p * np.expm1(small - log_scale), softmax(margins + step, axis=-1) - p)

    def _one_hot(self, margins: Margins, y: Margins) -> Margins:
        return np.asarray(np.arange(margins.shape[-1]) == y[..., None], dtype=margins.dtype)

    def _probabilities(self, margins: Margins, y: Margins) -> tuple[Margins, Margins]:
        p = softmax(margins, axis=-1)
        return p, np.sum(p * self._one_hot(margins, y), axis=-1)


LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Logistic(), Squared(), SquaredHinge(), Huber(), Poisson(), Softmax())
}


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or ``loss`` itself."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(map(repr, LOSSES))} or a Loss, got {loss!r}")
    return LOSSES[loss]


def _labels(y: ArrayLike) -> NDArray[Any]:
    refuse_sparse("y", y)
    labels = np.asarray(unmasked("y", y))
    if labels.dtype.kind == "c":
        raise InputError("y must hold labels, got complex numbers")
    if labels.dtype == object and len({type(label) for label in labels.ravel().tolist()}) > 1:
        raise InputError("y must have labels of one type (for example, no None among texts)")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InputError(f"y must not contain NaN, row {int(np.flatnonzero(np.isnan(labels))[0])} does")
    return labels


def _signs(name: str, y: ArrayLike) -> FloatArray:
    classes, codes = np.unique(_labels(y), return_inverse=True)
    if classes.size != 2:
        shown = ", ".join(map(repr, classes[:5].tolist()))
        raise InputError(
            f"y must have exactly two labels for loss={name!r}, got {classes.size} ({shown}); "
            "use loss='softmax' for more classes"
        )
    return np.asarray(2.0 * codes - 1.0)
