"""The parameters of a fitted scikit-learn estimator as named arrays, and back into a fresh estimator.

``learn`` fits on some data and returns only the arrays that predictions need; ``install`` writes (noised) arrays into
an estimator that was never fitted. Nothing else of a fit survives: no labels, counts, iteration numbers or caches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import linear_model as linear
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils import get_tags

from deniable._check import FloatArray, InputError
from deniable.releases.evidence import ReleaseError

Arrays = dict[str, FloatArray]


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """What may be written into the released estimator unchanged: functions of the whole data set or of the settings."""

    n_features: int
    n_train: int
    classes: NDArray[Any] | None
    project_psd: bool


@dataclass(frozen=True, eq=False)
class Codec:
    """Reads and writes the parameters of one kind of estimator: fitted attributes, copied by name."""

    names: tuple[str, ...] = ()

    def prepare(self, estimator: BaseEstimator, X: FloatArray, y: Any) -> Codec:
        """Return a codec that may use the whole data set as a reference (never released)."""
        return self

    def learn(self, estimator: BaseEstimator, X: FloatArray, y: Any) -> Arrays:
        """Fit a clone and return its parameters: the attributes that it has."""
        fitted = clone(estimator).fit(X, y)
        values = {name: getattr(fitted, name) for name in self.names}
        return {name: np.asarray(value, dtype=np.float64) for name, value in values.items() if value is not None}

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Write the parameters, made valid, and the classes of the whole data set into the unfitted ``shell``."""
        for name, value in arrays.items():
            setattr(shell, name, float(value) if value.ndim == 0 else value)
        shell.n_features_in_ = known.n_features
        if known.classes is not None:
            shell.classes_ = known.classes


class PoissonCodec(Codec):
    """Coefficients and intercept of a Poisson regression."""

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Set them, and the link function of predictions, which is the same for every fit."""
        super().install(shell, arrays, known)
        fitted = clone(shell).fit(np.zeros((2, 1)), np.ones(2))  # to made-up rows
        vars(shell)["_base_loss"] = vars(fitted)["_base_loss"]


class GaussianNBCodec(Codec):
    """Class means, variances and priors; variances are kept positive and priors a distribution."""

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Clip and rescale priors."""
        prior = np.maximum(arrays["class_prior_"], 1e-9)
        mended = {"var_": _positive(arrays["var_"]), "class_prior_": prior / prior.sum()}
        super().install(shell, arrays | mended, known)


class StandardScalerCodec(Codec):
    """Means and variances of the columns, where the scaler uses them."""

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Set them and the scale."""
        shell.mean_ = shell.var_ = shell.scale_ = None
        super().install(shell, arrays, known)
        if shell.with_std:
            shell.var_ = _positive(arrays["var_"])
            shell.scale_ = np.sqrt(shell.var_)
        shell.n_samples_seen_ = known.n_train


class CovarianceCodec(Codec):
    """Location and covariance; the precision is computed from what is released."""

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Symmetrise, project to positive semidefinite if asked, and invert."""
        covariance = symmetric(arrays["covariance_"], known.project_psd)
        super().install(shell, {**arrays, "covariance_": covariance}, known)
        if getattr(shell, "store_precision", True):
            shell.precision_ = np.linalg.pinv(covariance, hermitian=True)


class PCACodec(Codec):
    """Mean and covariance matrix: components have no stable sign or order that noise could be added to."""

    def learn(self, estimator: BaseEstimator, X: FloatArray, y: Any) -> Arrays:
        """Return mean and covariance (divisor n − 1)."""
        mean = X.mean(axis=0)
        return {"mean_": mean, "covariance": (X - mean).T @ (X - mean) / (len(X) - 1)}

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Diagonalise the released covariance."""
        values, vectors = np.linalg.eigh(symmetric(arrays["covariance"], known.project_psd))
        values, vectors = values[::-1], vectors[:, ::-1].T
        total = max(float(np.abs(values).sum()), np.finfo(float).tiny)
        kept = _n_components(shell.n_components, values, known)
        signs = np.sign(vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)])
        shell.mean_, shell.components_ = arrays["mean_"], np.ascontiguousarray((signs[:, None] * vectors)[:kept])
        shell.explained_variance_ = values[:kept]
        shell.explained_variance_ratio_ = values[:kept] / total
        shell.singular_values_ = np.sqrt(np.maximum(values[:kept], 0.0) * (known.n_train - 1))
        shell.noise_variance_ = float(values[kept:].mean()) if kept < len(values) else 0.0
        shell.n_components_, shell.n_samples_, shell.n_features_in_ = kept, known.n_train, known.n_features


@dataclass(frozen=True, eq=False)
class KMeansCodec(Codec):
    """Cluster centres, in the order of a reference clustering of the whole data set."""

    reference: FloatArray | None = None

    def prepare(self, estimator: BaseEstimator, X: FloatArray, y: Any) -> Codec:
        """Cluster the whole data set once; only its order of clusters is used."""
        return replace(self, reference=self.learn(estimator, X, y)["cluster_centers_"])

    def learn(self, estimator: BaseEstimator, X: FloatArray, y: Any) -> Arrays:
        """Fit, then match the centres to the reference so that labels do not jump between training sets."""
        from scipy.optimize import linear_sum_assignment
        from scipy.spatial.distance import cdist

        centres = super().learn(estimator, X, y)["cluster_centers_"]
        if self.reference is not None:
            centres = centres[linear_sum_assignment(cdist(self.reference, centres, "sqeuclidean"))[1]]
        return {"cluster_centers_": centres}

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Set the centres."""
        super().install(shell, arrays, known)
        vars(shell).update(_n_threads=1, _n_features_out=len(arrays["cluster_centers_"]))  # scikit-learn reads both


@dataclass(frozen=True, eq=False)
class PipelineCodec(Codec):
    """The steps of a pipeline, one after the other; every step's parameters are released with noise."""

    steps: tuple[tuple[str, Codec], ...] = ()  # without those that pass through

    def prepare(self, estimator: BaseEstimator, X: FloatArray, y: Any) -> Codec:
        """Prepare every step on the whole data set, transformed by the steps before it."""
        fitted = clone(estimator).fit(X, y)
        prepared = []
        for name, codec in self.steps:
            step = fitted.named_steps[name]
            prepared.append((name, codec.prepare(clone(step), X, y)))
            if not self._is_last(name):
                X = step.transform(X)
        return PipelineCodec(steps=tuple(prepared))

    def learn(self, estimator: BaseEstimator, X: FloatArray, y: Any) -> Arrays:
        """Learn step by step, transforming by the step as learnt."""
        found: Arrays = {}
        for name, codec in self.steps:
            step = estimator.named_steps[name]
            arrays = codec.learn(step, X, y)
            found |= {f"{name}__{key}": value for key, value in arrays.items()}
            if not self._is_last(name):
                shell = clone(step)
                codec.install(shell, arrays, PublicFacts(X.shape[1], len(X), None, True))
                X = shell.transform(X)
        return found

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Install every step; a step that changes the number of columns passes the new number on."""
        for name, codec in self.steps:
            own = {k.removeprefix(f"{name}__"): v for k, v in arrays.items() if k.startswith(f"{name}__")}
            step, classes = shell.named_steps[name], known.classes if self._is_last(name) else None
            codec.install(step, own, replace(known, classes=classes))
            known = replace(known, n_features=getattr(step, "n_components_", known.n_features))

    def _is_last(self, name: str) -> bool:
        return name == self.steps[-1][0]


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoFunctions(Codec):
    """An estimator given by two functions of the caller."""

    get_parameters: Callable[[Any], Any]
    set_parameters: Callable[[Any, FloatArray], None]

    def learn(self, estimator: BaseEstimator, X: FloatArray, y: Any) -> Arrays:
        """Fit a clone and call ``get_parameters``."""
        return {"parameters": np.asarray(self.get_parameters(clone(estimator).fit(X, y)), dtype=np.float64)}

    def install(self, shell: BaseEstimator, arrays: Arrays, known: PublicFacts) -> None:
        """Set what scikit-learn expects of a fitted estimator, then call ``set_parameters``."""
        super().install(shell, {}, known)
        self.set_parameters(shell, arrays["parameters"])


_COEFFICIENTS = ("coef_", "intercept_")
_CODECS: dict[type, Codec] = {
    PCA: PCACodec(),
    EmpiricalCovariance: CovarianceCodec(("location_", "covariance_")),
    GaussianNB: GaussianNBCodec(("theta_", "var_", "class_prior_")),
    KMeans: KMeansCodec(("cluster_centers_",)),
    linear.PoissonRegressor: PoissonCodec(_COEFFICIENTS),
    StandardScaler: StandardScalerCodec(("mean_", "var_")),
}
# estimators that predict from coef_ and intercept_ (and classes_) alone
_LINEAR = (
    *(linear.ElasticNet, linear.HuberRegressor, linear.Lasso, linear.LinearRegression, linear.Ridge),
    *(linear.SGDRegressor, LinearSVC, LinearSVR),
)


def codec_for(estimator: BaseEstimator) -> Codec:
    """Return the codec of a supported estimator, or raise naming the way out."""
    if isinstance(estimator, Pipeline):
        steps = ((name, codec_for(step)) for name, step in estimator.steps if step not in (None, "passthrough"))
        return PipelineCodec(steps=tuple(steps))
    for kind, codec in _CODECS.items():
        if isinstance(estimator, kind):
            return codec
    if type(estimator) in _LINEAR:
        return Codec(_COEFFICIENTS)
    own = {"classifier": "use deniable.PrivateClassifier, or ", "regressor": "use deniable.PrivateRegressor, or "}
    raise InputError(
        f"estimator={type(estimator).__name__} has no parameters that are known here to bear noise; "
        f"{own.get(get_tags(estimator).estimator_type, '')}give get_parameters (fitted estimator → array) and "
        "set_parameters (fresh estimator, array → None)"
    )


def _positive(variance: FloatArray) -> FloatArray:
    """Return variances of at least 1e-9 of the largest."""
    return np.maximum(variance, 1e-9 * max(float(variance.max()), 1e-9))


def symmetric(matrix: FloatArray, project_psd: bool) -> FloatArray:
    """Return the symmetric part, with negative eigenvalues set to zero if asked (post-processing leaks nothing)."""
    half: FloatArray = (matrix + matrix.T) / 2
    if not project_psd:
        return half
    values, vectors = np.linalg.eigh(half)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _n_components(asked: Any, values: FloatArray, known: PublicFacts) -> int:
    most = min(known.n_features, known.n_train)
    if asked is None:
        return most
    if isinstance(asked, float) and 0 < asked < 1:
        positive = np.maximum(values, 0.0)
        share = np.cumsum(positive) / max(float(positive.sum()), np.finfo(float).tiny)
        return min(int(np.searchsorted(share, asked)) + 1, most)
    if isinstance(asked, int) and 1 <= asked <= most:
        return asked
    raise InputError(f"n_components must be None, a share in (0, 1) or a number from 1 to {most}, got {asked!r}")


@dataclass(frozen=True, eq=False)
class Refit:
    """The algorithm handed to :func:`release`: a part of the data in, the parameters of a fit as one vector out.

    A part that lacks a class gives zeros instead of an error: whether there is an output must not tell who trained.
    ``shapes`` are those of the parameters of a fit to all data, by name.
    """

    estimator: Any
    codec: Codec
    classes: NDArray[Any] | None
    shapes: dict[str, tuple[int, ...]]

    def __call__(self, part: tuple[Any, ...]) -> FloatArray:
        """Return the parameters of a fit to this part of the data."""
        if self.classes is not None and len(np.unique(part[1])) < len(self.classes):
            return np.zeros(sum(int(np.prod(shape)) for shape in self.shapes.values()))
        arrays = self.codec.learn(self.estimator, part[0], part[1] if len(part) > 1 else None)
        if {name: value.shape for name, value in arrays.items()} != self.shapes:
            raise ReleaseError("the estimator's parameters have different shapes on different training parts")
        return np.concatenate([value.ravel() for value in arrays.values()])

    def split(self, flat: FloatArray) -> Arrays:
        """Return the named arrays of a vector."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        parts = np.split(flat, ends[:-1])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
