"""From rows and labels to a privacy profile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from deniable._check import FloatArray, InputError, Seed, choice, integer, number, numbers, seeded
from deniable.records.encoder import read_problem
from deniable.records.fit import Optimum, fit
from deniable.records.losses import Loss, as_loss
from deniable.records.mechanisms import OutputPerturbation
from deniable.records.neighbours import Neighbours, leave_one_out, without_groups
from deniable.records.objective import ObjectivePerturbation
from deniable.records.problem import Intercept, Normalization, Problem, make_problem
from deniable.records.profile import PrivacyProfile
from deniable.records.typical import ExactTypical, SampledTypical, Typical
from deniable.tables import ColumnsOnDisk, Schema, as_source, typed, typed_table

_CONFIDENCE = 0.95  # confidence of the band of quantities over sampled models
_AT_A_TIME = 500_000  # records whose losses are computed at a time, to bound the memory


def privacy_profile(
    X: Any,
    y: ArrayLike | None = None,
    *,
    target: str | None = None,
    schema: Schema | None = None,
    regularization: float,
    mechanism: OutputPerturbation | ObjectivePerturbation | None = None,
    loss: str | Loss = "logistic",
    released: ArrayLike | None = None,
    intercept: Intercept = "none",
    sample_weight: ArrayLike | None = None,
    normalization: Normalization = "mean",
    group: ArrayLike | None = None,
    tolerance: float | None = None,
    n_samples: int = 0,
    rng: Seed = None,
    n_jobs: int | None = None,
) -> PrivacyProfile:
    """Return the privacy profile of a regularised linear model: every record's exposure, certified.

    The model minimises (1/n)Σ φ(x_jᵀf, y_j) + (Λ/2)‖f‖² over the rows that are in.

    Parameters
    ----------
    X, y
        Rows (n, d) and labels or responses (n,). For ``"logistic"`` and ``"squared_hinge"`` any two labels. Or,
        without ``y``, with ``target``: a file, a data frame of pandas, Polars, PyArrow or DuckDB, a dict of columns, or
        rows that need not fit into memory: a Parquet file or folder, a query of DuckDB, a Dask data frame; a list of
        blocks, a function that returns an iterator of them, or an iterator (all kept in a temporary file), a block
        being a pair ``(X, y)`` or, with ``target``, a data frame. Text columns become indicator columns, one per
        value; dates are days. Every pass reads the rows again; results agree with those of arrays to 1e-9 relative,
        however the rows are split. Only with ``OutputPerturbation``, and without ``sample_weight`` and ``group``.
    target, schema
        The column that is predicted; what is declared of how a file that is no Parquet is written.
    regularization
        Λ. With ``normalization="sum"`` the *total* penalty, as in minimise Σ φ + (Λ/2)‖f‖².
    mechanism
        How the model is released; ``OutputPerturbation(epsilon=1.0)`` if not given.
    loss
        ``"logistic"``, ``"squared"``, ``"squared_hinge"``, ``"huber"``, ``"poisson"``, ``"softmax"`` or a ``Loss``.
    released
        The parameters that were released. If not given, one release is simulated.
    intercept
        ``"none"``, ``"regularized"`` or ``"unregularized"``: a column of ones at the end.
    sample_weight
        Weights of the rows, public.
    normalization
        ``"mean"``: the penalty counts per row and shrinks when a record is removed; ``"sum"``: it is fixed.
    group
        One label per row: all rows of a label (a user) are removed together, and the profile has one entry per label,
        in sorted order (``profile.groups``).
    tolerance
        Largest certified relative error (radius/distance) of one row out, before it is iterated. By default 1e-9 where
        iterating all is cheap (rows²·columns ≤ 2e9) and 1e-2 beyond. A record whose certificate cannot reach it
        because of rounding keeps the best radius found, and so do those beyond 20,000 that are iterated, spread evenly
        over all that are to be: see ``radius``. Without a group the model is fitted anew.
    n_samples
        For ``ObjectivePerturbation``: how many models to draw (and fit) for the quantities over typical models, which
        are read from that sample with a confidence band.
    rng
        Only for reproducing simulated draws; by default fresh entropy.
    n_jobs
        Blocks processed in parallel, by joblib or on the cluster of :func:`deniable.records.cluster`.

    Returns
    -------
    PrivacyProfile
        An entry per row or group: certified bounds on what its membership shows.

    Raises
    ------
    InputError
        For arrays whose shapes do not match or that are not finite, rows longer than the mechanism allows, a fit
        without an optimum.

    Examples
    --------
    >>> import numpy as np
    >>> import deniable as dn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(300, 3))
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> p = dn.privacy_profile(X, y, regularization=0.01, mechanism=dn.OutputPerturbation(epsilon=1.0))
    >>> p.advantage().shape, bool(p.advantage().max() <= 1)
    ((300,), True)
    >>> band = p.transition()
    """
    mechanism = OutputPerturbation(epsilon=1.0) if mechanism is None else mechanism
    if not isinstance(mechanism, OutputPerturbation | ObjectivePerturbation):
        raise InputError(f"mechanism must be OutputPerturbation or ObjectivePerturbation, got {mechanism!r}")
    choice("intercept", intercept, ("none", "regularized", "unregularized"))
    choice("normalization", normalization, ("mean", "sum"))
    problem: Problem
    source = as_source(X, target, schema) if y is None else None
    if source is not None:
        if isinstance(mechanism, ObjectivePerturbation) or sample_weight is not None or group is not None:
            raise InputError(
                "rows that are read in blocks need OutputPerturbation and no sample_weight or group: pass arrays for "
                "those"
            )
        problem = read_problem(source, as_loss(loss), regularization, intercept, normalization, n_jobs)
    elif y is None:
        raise InputError(f"y must be given with arrays, target with all else that holds a table: {type(X).__name__}")
    else:
        X, said = typed_table(X, schema), schema or Schema()
        if isinstance(X, pd.DataFrame | ColumnsOnDisk):  # numbers and dates as blocks have them
            X = np.column_stack([typed(X[name], said.column(name)) for name in X.columns])
        problem = make_problem(X, y, regularization, as_loss(loss), intercept, sample_weight, normalization)
    if isinstance(mechanism, ObjectivePerturbation):
        problem, rate = mechanism.prepare(problem)
        sensitivity = None
    else:
        rate = mechanism.rate(problem)
        sensitivity = mechanism.sensitivity(problem) if mechanism.epsilon is not None else None
    model = None if released is None else _released_model(released, problem.size)
    count = integer("n_samples", n_samples, at_least=0)
    base = fit(problem)
    generator = seeded(rng)
    if model is None and isinstance(mechanism, OutputPerturbation):
        model = mechanism.sample(base.centre, rate, rng=generator)
    noise = np.zeros_like(base.centre) if model is None else model - base.centre
    labels: NDArray[np.generic] | None = None
    found: Neighbours
    limit = None if tolerance is None else number("tolerance", tolerance, above=0.0)
    if group is not None:
        if isinstance(mechanism, ObjectivePerturbation):
            raise InputError("group goes with OutputPerturbation: objective perturbation is profiled row by row")
        labels, found = _left_together(base, group, noise, n_jobs)
    else:
        found = leave_one_out(base, noise, limit)
    error = found.radius + base.radius
    typical: Typical | None
    if isinstance(mechanism, ObjectivePerturbation):
        if model is None:
            model = mechanism.sample(problem, rate, base.centre, rng=generator)
        losses, loss_error = mechanism.privacy_loss(problem, model, rate)
        models = [mechanism.sample(problem, rate, base.centre, rng=g) for g in generator.spawn(count)]
        sample = [mechanism.privacy_loss(problem, M, rate)[0] for M in models]
        typical = SampledTypical(np.sort(sample, axis=0), _CONFIDENCE) if count else None
    else:
        assert model is not None  # drawn above
        size = float(np.linalg.norm(noise))
        losses, loss_error = np.empty(len(error)), np.empty(len(error))
        for start in range(0, len(error), _AT_A_TIME):
            some = slice(start, start + _AT_A_TIME)
            losses[some], loss_error[some] = mechanism.privacy_loss(
                size, found.distance[some], found.along[some], error[some], problem.size, rate
            )
        typical = ExactTypical(mechanism.law(problem.size), rate, found.distance, error)
    return PrivacyProfile(
        optimum=base.centre,
        radii=found.radius,
        distance=found.distance,
        distance_error=error,
        released=model,
        losses=losses,
        loss_errors=loss_error,
        mechanism=mechanism,
        rate=rate,
        typical=typical,
        sensitivity=sensitivity,
        regularization=float(regularization),
        loss=problem.loss.name,
        iterations=found.iterations,
        neighbours=found,
        groups=labels,
    )


def _left_together(
    base: Optimum, group: ArrayLike, noise: FloatArray, n_jobs: int | None
) -> tuple[NDArray[np.generic], Neighbours]:
    labels, codes = np.unique(np.asarray(group), return_inverse=True)
    n = base.problem.count
    if codes.shape != (n,):
        raise InputError(f"group must have one label per row of X, got shape {codes.shape} for {n} rows")
    if len(labels) < 2:
        raise InputError("group must have at least two labels: without its only group the data are empty")
    return labels, without_groups(base, codes, noise, n_jobs)


def _released_model(released: ArrayLike, parameters: int) -> FloatArray:
    """Check a released parameter vector."""
    model = numbers("released", released)
    if model.shape != (parameters,) or not np.isfinite(model).all():
        raise InputError(
            f"released must be {parameters} finite parameters (the columns of X, then the intercept if any), "
            f"got shape {model.shape}"
        )
    return model
