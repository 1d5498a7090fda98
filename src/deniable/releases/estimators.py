"""``MembershipPrivate``: any scikit-learn estimator with a membership guarantee."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import TransformerTags, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from deniable._check import FloatArray, InputError, choice
from deniable._files import stamp, unstamp
from deniable._notebook import Promised
from deniable.releases import release
from deniable.releases.codecs import Codec, PublicFacts, Refit, TwoFunctions, codec_for
from deniable.releases.resampling import Population
from deniable.releases.statistics import public_limits

_ABSENT = 0.1  # largest share of the training parts from which a class may be missing


def _only_where_wrapped(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a method that exists only if the wrapped estimator has it; its AttributeError is the message."""

    def check(self: MembershipPrivate) -> bool:
        getattr(self.estimator, name)
        return True

    decorate: Callable[[Callable[..., Any]], Any] = available_if(check)
    return decorate


def _delegate(name: str, doc: str) -> Any:
    """Return a method that calls the released estimator's."""

    def method(self: MembershipPrivate, X: Any) -> Any:
        return self._ask(name, X)

    method.__name__, method.__doc__ = name, doc
    return _only_where_wrapped(name)(method)


class MembershipPrivate(Promised, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Wrap an estimator so that its released parameters hide who was in training.

    A secret random part of the data trains; its parameters get the least noise that certifies ``advantage``
    (see :func:`deniable.release` for the guarantee and its game). Predictions come from the noised parameters alone.
    What is fixed beforehand comes from the whole data set: the class labels, the order of k-means' clusters.

    Supported: linear, ridge, lasso, Huber and Poisson regression, linear SVM, PCA, covariance estimators,
    Gaussian naive Bayes, k-means, ``StandardScaler``, pipelines of those, and any estimator through ``get_parameters``
    and ``set_parameters``.

    Parameters
    ----------
    estimator
        Unfitted estimator; it is cloned, never fitted itself.
    advantage
        Largest membership advantage of any attack, in (0, 2·min(π, 1 − π)), π = ``fraction``: see
        :func:`deniable.release`.
    noise, fraction, confidence, n_jobs, progress
        As in :func:`deniable.release`.
    n_resamples
        Random resamples behind a sampled certificate. None: as in :func:`deniable.release`, but that "auto" does not
        turn to the thousands of fits of "direct".
    bound
        "auto" is "centre", or "direct" where ``n_resamples`` is given and allows it. "centre" covers every record for
        any estimator. "direct" fits any estimator thousands of times (``n_resamples``), for much less noise.
    bounds
        (low, high), numbers or one for each column: public limits to which the columns are clipped first, in ``fit``
        and in every prediction. Without them, one outlier may determine all the noise. They must not be read off the
        data.
    get_parameters, set_parameters
        For other estimators: fitted estimator → array of fixed shape, and (fresh estimator, array) → None. The second
        must set all that predictions need and nothing else of the fit.
    project_psd
        Whether released covariance matrices are projected to positive semidefinite.
    random_state
        Seeds the resampling; never the training part or the noise, so two fits differ by design.

    Attributes
    ----------
    estimator_
        Estimator with the released parameters.
    certificate_
        The guarantee; see :class:`deniable.releases.HalfCertificate`.
    noise_scale_
        Standard deviation of the noise of each parameter array, by name.
    n_features_in_, feature_names_in_, classes_
        As in scikit-learn; of the whole data set.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> from sklearn.linear_model import HuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1))
    >>> y = X[:, 0] + rng.standard_t(2, size=2000)
    >>> model = dn.MembershipPrivate(HuberRegressor(), advantage=0.4, random_state=0).fit(X, y)
    >>> model.certificate_.advantage <= 0.4
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        advantage: float = 0.2,
        noise: str = "gaussian",
        bound: str = "auto",
        fraction: float = 0.5,
        n_resamples: int | None = None,
        confidence: float = 0.99,
        bounds: tuple[Any, Any] | None = None,
        get_parameters: Callable[[Any], Any] | None = None,
        set_parameters: Callable[[Any, FloatArray], None] | None = None,
        project_psd: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.estimator = estimator
        self.advantage = advantage
        self.noise = noise
        self.bound = bound
        self.fraction = fraction
        self.n_resamples = n_resamples
        self.confidence = confidence
        self.bounds = bounds
        self.get_parameters = get_parameters
        self.set_parameters = set_parameters
        self.project_psd = project_psd
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release the parameters of the estimator, trained on a secret part of (X, y).

        Raises ``InputError`` (nothing is set then) if the guarantee cannot be certified or a training set fails.
        """
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise InputError(f"estimator must be an unfitted scikit-learn estimator, got {self.estimator!r}")
        choice("bound", self.bound, ("auto", "direct", "centre"))
        tags = get_tags(self.estimator)
        rows, target = self._validate(X, y, tags)
        rows = self._within_bounds(rows)
        classes = np.unique(target) if tags.estimator_type == "classifier" else None
        n_train = Population.of(rows, self.fraction).n_train
        if classes is not None:
            _refuse_rare_classes(target, classes, n_train)
        try:
            seeds = check_random_state(self.random_state)
        except ValueError as error:
            raise InputError(f"random_state: {error}") from None
        estimator = _clone_with_seeds(self.estimator, seeds)
        codec = self._codec().prepare(estimator, rows, target)
        shapes = {name: value.shape for name, value in codec.learn(estimator, rows, target).items()}
        task = Refit(estimator, codec, classes, shapes)
        fits_are_few = self.bound == "auto" and self.n_resamples is None
        released = release(
            task,
            (rows,) if target is None else (rows, target),
            advantage=self.advantage,
            noise=self.noise,  # type: ignore[arg-type]  # release checks the words
            bound="centre" if fits_are_few else self.bound,  # type: ignore[arg-type]
            fraction=self.fraction,
            n_resamples=self.n_resamples,
            confidence=self.confidence,
            rng=int(seeds.randint(2**31 - 1)),
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        known = PublicFacts(rows.shape[1], n_train, classes, self.project_psd)
        shell = clone(self.estimator)
        codec.install(shell, task.split(released.value), known)
        self.estimator_ = shell
        self.certificate_ = released.certificate
        self.noise_scale_ = task.split(released.noise_scale)
        if classes is not None:
            self.classes_ = classes
        return self

    predict = _delegate("predict", "Predict from the released parameters.")
    predict_proba = _delegate("predict_proba", "Class probabilities from the released parameters.")
    predict_log_proba = _delegate("predict_log_proba", "Log class probabilities from the released parameters.")
    decision_function = _delegate("decision_function", "Decision values from the released parameters.")
    transform = _delegate("transform", "Transform by the released parameters.")
    mahalanobis = _delegate("mahalanobis", "Squared Mahalanobis distances under the released covariance.")

    def __getstate__(self) -> Any:
        """Drop what a wrapped estimator may have learnt from all data before; only its settings are kept."""
        state = dict(super().__getstate__())
        state["estimator"] = clone(self.estimator)
        return stamp(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a model of this format; refuse others."""
        super().__setstate__(unstamp(state))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        if inner.transformer_tags is not None:
            tags.transformer_tags = TransformerTags(preserves_dtype=[])  # noise is drawn in double precision
        tags.non_deterministic = True
        return tags

    @_only_where_wrapped("score")
    def score(self, X: Any, y: Any = None) -> Any:
        """Score of the released estimator, by its own rule."""
        return self._ask("score", X) if y is None else self._ask("score", X, y)

    @_only_where_wrapped("fit_transform")
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, then transform all given data, not only the training part."""
        return self.fit(X, y).transform(X)

    @_only_where_wrapped("fit_predict")
    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Fit, then predict all given data, not only the training part."""
        return self.fit(X, y).predict(X)

    def _ask(self, method: str, X: Any, *more: Any) -> Any:
        check_is_fitted(self)
        rows = self._within_bounds(self._numbers(X, reset=False))
        return getattr(self.estimator_, method)(rows, *more)

    def _validate(self, X: Any, y: Any, tags: Any) -> tuple[FloatArray, Any]:
        if y is None and not tags.target_tags.required:
            return self._numbers(X, ensure_min_samples=4), None
        multi = tags.target_tags.multi_output
        numeric = tags.estimator_type == "regressor"
        rows, target = self._numbers(X, y, ensure_min_samples=4, multi_output=multi, y_numeric=numeric)
        if tags.estimator_type == "classifier":
            check_classification_targets(target)
        return rows, target

    def _numbers(self, *data: Any, **rules: Any) -> Any:
        """Check the data as scikit-learn does; its own message would quote the cell that is no number."""
        try:
            return validate_data(self, *data, dtype=np.float64, **rules)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
        raise InputError("X and y must be numbers, but a cell is a text; encode or drop its column")

    def _within_bounds(self, rows: FloatArray) -> FloatArray:
        """Clip the columns to their public limits."""
        if self.bounds is None:
            return rows
        low, high = public_limits("bounds", self.bounds)
        if any(np.ndim(end) and np.shape(end) != rows.shape[1:] for end in (low, high)):
            raise InputError(f"bounds must be two numbers, or one pair for each of {rows.shape[1]} columns")
        return np.asarray(np.clip(rows, low, high))

    def _codec(self) -> Codec:
        if (self.get_parameters is None) != (self.set_parameters is None):
            raise InputError("get_parameters and set_parameters must be given together")
        if self.get_parameters is not None and self.set_parameters is not None:
            return TwoFunctions(get_parameters=self.get_parameters, set_parameters=self.set_parameters)
        return codec_for(self.estimator)


def _clone_with_seeds(estimator: Any, seeds: np.random.RandomState) -> Any:
    """Return a clone whose unset random states are seeded, so that all training sets get the same randomness."""
    given = sorted(estimator.get_params().items())
    unset = [name for name, value in given if f"__{name}".endswith("__random_state") and value is None]
    return clone(estimator).set_params(**{name: int(seeds.randint(2**31 - 1)) for name in unset})


def _refuse_rare_classes(target: Any, classes: NDArray[Any], n_train: int) -> None:
    """Refuse what would most likely be useless; decided from the whole data set: reveals nothing about membership."""
    for label in classes:
        size, n = int(np.sum(target == label)), len(target)
        absent = float(np.prod(1 - n_train / np.arange(n, n - size, -1.0).clip(n_train)))
        if absent > _ABSENT:
            raise InputError(
                f"each class needs records in nearly every training part, but a class has {size} of {n} and is "
                f"missing from {absent:.0%} of the parts of {n_train}; merge rare classes or raise fraction"
            )
