"""Where the optimum goes when one record leaves (or joins): every record in one pass, each with a certificate.

Let f be the optimum with all rows in, b_i = −∇F_i(f) the pull of the objective without record i, and H_i its Hessian
at f. One Newton step δ_i = H_i⁻¹ b_i costs O(d²) per record, because H_i differs from one matrix H by a matrix of
rank one (rank = number of classes for softmax).

The certificate bounds the distance from f + δ_i to the exact optimum f_i*. With r = M·R·‖δ_i‖ (M the loss's
self-concordance, R the largest row norm) every row's curvature stays within exp(±r) along the step, so

    ∇F_i(f + δ_i) = Σ_j x_j φ''_j c_j (x_jᵀδ_i),   |c_j| ≤ χ(r) = (e^r − 1 − r)/r,

and with the ridge λ (the smallest penalty), S² = Σ_{j≠i} φ''_j (x_jᵀδ_i)² and ‖(A + λ)⁻¹A^{1/2}‖ ≤ 1/(2√λ),

    (ridge)    ‖f + δ_i − f_i*‖ ≤ B/(1 − M·R·B/2),      B = χ(r)·e^{r/2}·S/(2√λ);
    (general)  ‖f + δ_i − f_i*‖ ≤ −log(1 − q)/(M·R),    q = M·R·e^r·χ(r)·S/m,   m = λ_min(H_i).

The second needs no ridge (an unpenalised intercept). Losses with kinks in place of self-concordance are quadratic
between them: there the gradient after the step is at most κ·Σ_j ‖x_j‖·(‖x_j‖‖δ_i‖ − kink_j)₊, and strong convexity
turns it into a distance. All rounding errors are bounded and added. Records whose certificate is wider than asked
for are iterated (:mod:`deniable.records.refine`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from deniable._check import FloatArray, Indices, InputError
from deniable.records.fit import ROWS, UNIT, Fit

_CHEAP = 2e9  # rows² × columns up to which every record is iterated by default


@dataclass(frozen=True, eq=False)
class Changes:
    """The records that leave (``sign`` +1) or join (−1), each making one neighbouring data set."""

    X: FloatArray
    y: FloatArray
    weights: FloatArray
    margins: FloatArray
    sign: int = 1

    def __getitem__(self, rows: slice | Indices) -> Changes:
        return Changes(self.X[rows], self.y[rows], self.weights[rows], self.margins[rows], self.sign)


@dataclass(frozen=True, eq=False)
class Pivot:
    """What all neighbours share: the matrix H whose low-rank changes are the neighbours' Hessians.

    H holds the penalty that is left when one *typical* record has gone (``typical`` sample weight); records of
    another weight pay for the difference in their certificate.
    """

    fit: Fit
    sign: int
    typical: float
    penalty: FloatArray
    inverse: FloatArray
    pull: FloatArray = field(repr=False)  # H⁻¹(relief ∘ f)
    drift: FloatArray = field(repr=False)  # H⁻¹∇F(f)
    smallest: float
    largest: float
    matrix_error: float
    inverse_error: float

    @property
    def ridge(self) -> float:
        """Strong convexity that the penalty alone guarantees."""
        return float(self.penalty.min())


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How far the optimum moves for each change, with certified radii; where to, for the asking.

    ``distance`` is ‖step‖ and ``along`` step·direction for the direction that the pass was given, (n,). Steps are
    computed again when asked for, but for the changes ``kept_at``, whose steps are ``kept``.
    """

    pivot: Pivot = field(repr=False)
    changes: Changes = field(repr=False)
    distance: FloatArray = field(repr=False)
    along: FloatArray = field(repr=False)
    radius: FloatArray = field(repr=False)
    kept_at: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp), repr=False)
    kept: FloatArray | None = field(default=None, repr=False)
    iterations: int = 0

    def steps(self, records: slice | Indices) -> FloatArray:
        """Displacements from the centre, (records, parameters)."""
        at = np.arange(len(self.distance))[records]
        found = np.empty((len(at), self.pivot.fit.centre.size))
        place = np.searchsorted(self.kept_at, at)
        known = np.zeros(len(at), dtype=bool)
        if self.kept is not None and len(self.kept_at):
            known = self.kept_at[np.minimum(place, len(self.kept_at) - 1)] == at
            found[known] = self.kept[place[known]]
        if not known.all():
            found[~known] = self.first_steps(at[~known])
        return found

    def first_steps(self, at: Indices) -> FloatArray:
        """Newton steps of these changes, (changes, parameters)."""
        found = np.empty((len(at), self.pivot.fit.centre.size))
        for start in range(0, len(at), ROWS):
            some = slice(start, start + ROWS)
            found[some] = LowRank.of(self.pivot, self.changes[at[some]]).newton()[0]
        return found

    def onto(self, directions: FloatArray) -> FloatArray:
        """step·direction for each column of ``directions`` (parameters, k): (n, k)."""
        found = np.empty((len(self.distance), directions.shape[1]))
        for start in range(0, len(found), ROWS):
            rows = slice(start, start + ROWS)
            found[rows] = self.steps(rows) @ directions
        return found

    @property
    def optima(self) -> FloatArray:
        """Parameters of every neighbour, (n, parameters)."""
        return self.pivot.fit.centre + self.steps(slice(None))


def leave_one_out(base: Fit, direction: FloatArray | None = None) -> tuple[Pivot, Changes, Neighbours]:
    """Optima without each record of ``base.problem``, by one blocked pass of Newton steps."""
    problem = base.problem
    changes = Changes(problem.X, problem.y, problem.weights, base.held_margins())
    pivot = make_pivot(base, 1, problem.typical_weight)
    return pivot, changes, one_pass(pivot, changes, direction)


def joined(
    base: Fit, X: FloatArray, y: FloatArray, direction: FloatArray | None = None
) -> tuple[Pivot, Changes, Neighbours]:
    """Optima with each of the rows ``X``, ``y`` (encoded) added, one at a time, by the same pass."""
    margins = X @ base.centre.reshape(-1, base.problem.classes)
    changes = Changes(X, y, np.ones(len(y)), margins, sign=-1)
    pivot = make_pivot(base, -1, 1.0)
    return pivot, changes, one_pass(pivot, changes, direction)


def make_pivot(base: Fit, sign: int, typical: float) -> Pivot:
    """Factorise the matrix that the neighbours share: records of weight ``typical`` leave (+1) or join (−1)."""
    problem = base.problem
    penalty = problem.penalty - sign * typical * problem.relief
    H = base.hessian + np.diag(penalty)
    values = np.linalg.eigvalsh(H)
    if not values[0] > 0:
        raise InputError(
            "without a record the optimum is not unique (collinear columns or too few rows); raise regularization"
        )
    inverse = np.linalg.inv(H)
    inverse = (inverse + inverse.T) / 2
    rounding = base.hessian_error + 8 * UNIT * problem.size * float(values[-1])
    residual = float(np.linalg.norm(H @ inverse - np.eye(problem.size)))
    inverse_error = residual + 4 * UNIT * problem.size * float(np.linalg.norm(H) * np.linalg.norm(inverse))
    return Pivot(
        fit=base,
        sign=sign,
        typical=typical,
        penalty=penalty,
        inverse=inverse,
        pull=inverse @ (problem.relief * base.centre),
        drift=inverse @ base.gradient,
        smallest=max(float(values[0]) - rounding, float(penalty.min())),
        largest=float(values[-1]) + rounding,
        matrix_error=rounding,
        inverse_error=inverse_error,
    )


def one_pass(pivot: Pivot, changes: Changes, direction: FloatArray | None = None) -> Neighbours:
    """One Newton step for every change, with its certificate, in O(records · parameters²)."""
    n = changes.X.shape[0]
    distance, along, radius = np.empty(n), np.zeros(n), np.empty(n)
    bound = RadiusCertificate.of(pivot, changes)
    for start in range(0, n, ROWS):
        rows = slice(start, start + ROWS)
        block = LowRank.of(pivot, changes[rows])
        step, coefficients = block.newton()
        radius[rows] = bound.after_newton(block, step, coefficients)
        distance[rows] = lengths(step)
        if direction is not None:
            along[rows] = step @ direction
    return Neighbours(pivot, changes, distance, along, radius)


def lengths(step: FloatArray) -> FloatArray:
    """‖step_i‖."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", step, step)))


@dataclass(frozen=True, eq=False)
class LowRank:
    """A block of changes with H_i = H − sign·U_i W_i U_iᵀ, where U_i = x_i ⊗ 1 and W_i = s_i·φ''_i."""

    pivot: Pivot
    changes: Changes
    slope: FloatArray  # sign·s_i·φ'_i, (rows, classes)
    curvature: FloatArray  # sign·s_i·φ''_i, (rows, classes, classes)
    solved: FloatArray  # H⁻¹U_i, (rows, classes, parameters)
    leverage: FloatArray  # U_iᵀH⁻¹U_i, (rows, classes, classes)

    @classmethod
    def of(cls, pivot: Pivot, changes: Changes) -> LowRank:
        """Solve with H for every row of the block: the one large matrix product of the pass."""
        problem = pivot.fit.problem
        d, k = problem.X.shape[1], problem.classes
        signed = changes.sign * changes.weights
        slope = problem.loss.slope(changes.margins, changes.y) * signed[:, None]
        curvature = problem.loss.curvature(changes.margins, changes.y) * signed[:, None, None]
        solved = (changes.X @ pivot.inverse.reshape(d, k * d * k)).reshape(-1, k, d * k)
        leverage = cls._apply(changes.X, solved.reshape(-1, k, d, k))
        return cls(pivot, changes, slope, curvature, solved, leverage)

    @staticmethod
    def _apply(X: FloatArray, values: FloatArray) -> FloatArray:
        """U_iᵀv_i for each row i of ``values`` (rows, ..., d, classes)."""
        if values.ndim == 3:
            return np.asarray(np.einsum("id,idc->ic", X, values))
        return np.asarray(np.einsum("id,iadc->iac", X, values))

    def shape(self, values: FloatArray) -> FloatArray:
        """See flat parameters as (rows, columns, classes)."""
        return values.reshape(-1, self.changes.X.shape[1], self.slope.shape[1])

    def project(self, values: FloatArray) -> FloatArray:
        """U_iᵀ v_i."""
        return self._apply(self.changes.X, self.shape(values))

    def amplify(self, projected: FloatArray) -> FloatArray:
        """W_i(I − U_iᵀH⁻¹U_i W_i)⁻¹ z, the factor of the low-rank update of an inverse."""
        k = self.slope.shape[1]
        inner = np.eye(k) - self.leverage @ self.curvature
        try:
            return np.asarray((self.curvature @ np.linalg.solve(inner, projected[..., None]))[..., 0])
        except np.linalg.LinAlgError:
            raise InputError(
                "one record alone determines a parameter, so without it there is no optimum; raise regularization"
            ) from None

    def solve(self, values: FloatArray) -> FloatArray:
        """H_i⁻¹ v_i for each row."""
        plain = values @ self.pivot.inverse
        return plain + self._spread(self.amplify(self.project(plain)))

    def newton(self) -> tuple[FloatArray, FloatArray]:
        """δ_i = H_i⁻¹ b_i, with b_i = U_i·slope + sign·s_i·relief∘f − ∇F(f); also the coefficients of H⁻¹U_i."""
        common = self._relief_share()[:, None] * self.pivot.pull - self.pivot.drift
        projected = np.einsum("iac,ic->ia", self.leverage, self.slope) + self.project(common)
        coefficients = self.slope + self.amplify(projected)
        return common + self._spread(coefficients), coefficients

    def pull(self) -> FloatArray:
        """b_i, (rows, parameters)."""
        fit = self.pivot.fit
        own = np.einsum("id,ic->idc", self.changes.X, self.slope).reshape(len(self.slope), -1)
        return np.asarray(own) + self._relief_share()[:, None] * (fit.problem.relief * fit.centre) - fit.gradient

    def largest_pull(self) -> FloatArray:
        """Upper bound of ‖b_i‖."""
        fit = self.pivot.fit
        own = np.linalg.norm(self.slope, axis=1) * np.linalg.norm(self.changes.X, axis=1)
        relief = self.changes.weights * float(np.linalg.norm(fit.problem.relief * fit.centre))
        return np.asarray(own + relief + float(np.linalg.norm(fit.gradient)) + fit.gradient_error) * (1 + 1e-12)

    def energies(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """b_iᵀδ_i = δ_iᵀH_iδ_i, and the penalty's part of it."""
        fit, share = self.pivot.fit, self._relief_share()
        along = step @ np.column_stack([fit.problem.relief * fit.centre, fit.gradient])
        total = np.einsum("ic,ic->i", self.slope, self.project(step)) + share * along[:, 0] - along[:, 1]
        kept = step**2 @ np.column_stack([fit.problem.penalty, fit.problem.relief])
        return total, kept[:, 0] - share * kept[:, 1]

    def slope_error(self) -> FloatArray:
        """Bound ‖x_i‖ times the rounding error of record i's slope at its margins."""
        loss, changes = self.pivot.fit.problem.loss, self.changes
        curved = np.abs(self.curvature).max(axis=(1, 2))
        if loss.self_concordance is None:
            curved = np.maximum(curved, changes.weights * (loss.smoothness or np.inf))
        margins = 1 + np.abs(changes.margins).max(axis=1)
        slopes = np.linalg.norm(self.slope, axis=1)
        return np.asarray(8 * UNIT * (slopes + curved * margins) * np.linalg.norm(changes.X, axis=1))

    def left_penalty(self) -> FloatArray:
        """Total penalty in each neighbouring problem, (rows, parameters)."""
        problem = self.pivot.fit.problem
        return problem.penalty - self._relief_share()[:, None] * problem.relief

    def eigenvalue(self) -> FloatArray:
        """Lower bound of λ_min(H_i)."""
        keep = np.ones(len(self.slope))
        if self.pivot.sign > 0:  # H_i ⪰ (1 − ‖W^{1/2}U_iᵀH⁻¹U_iW^{1/2}‖)·H
            share = np.einsum("iab,iba->i", self.leverage, self.curvature)
            keep = np.maximum(1 - share * (1 + 1e-10) - 1e-12, 0.0)
        return np.maximum(keep * self.pivot.smallest, self.pivot.ridge) - self._weight_gap()

    def ridge(self) -> FloatArray:
        """Strong convexity from the penalty alone, for each neighbouring problem."""
        return np.maximum(self.pivot.ridge - self._weight_gap(), 0.0)

    def _relief_share(self) -> FloatArray:
        return self.pivot.sign * self.changes.weights

    def _weight_gap(self) -> FloatArray:
        gap = np.abs(self.changes.weights - self.pivot.typical)
        return gap * float(self.pivot.fit.problem.relief.max())

    def _spread(self, coefficients: FloatArray) -> FloatArray:
        if coefficients.shape[1] == 1:
            return coefficients * self.solved[:, 0]
        return np.asarray(np.einsum("ic,icp->ip", coefficients, self.solved))


@dataclass(frozen=True, eq=False)
class RadiusCertificate:
    """Radii from what is the same for every record: the loss's constants, row norms and sorted kinks."""

    pivot: Pivot
    reach: float  # M·R
    kinks: FloatArray = field(repr=False)  # kink_j/‖x_j‖, increasing
    mass: FloatArray = field(repr=False)  # running Σ s_j‖x_j‖² and Σ s_j‖x_j‖²·kink_j/‖x_j‖
    moment: FloatArray = field(repr=False)

    @classmethod
    def of(cls, pivot: Pivot, changes: Changes) -> RadiusCertificate:
        """Sort the kinks once, or note the self-concordance; rows that join count among the rows."""
        problem = pivot.fit.problem
        concordance = problem.loss.self_concordance
        kinks = np.empty(0)
        weight = np.empty(0)
        if concordance is None:
            margins = pivot.fit.held_margins()
            with np.errstate(divide="ignore", invalid="ignore"):
                at = np.where(problem.norms > 0, problem.loss.kink(margins, problem.y) / problem.norms, np.inf)
            order = np.argsort(at)
            kinks, weight = at[order], (problem.weights * problem.norms**2)[order]
        finite = np.where(np.isfinite(kinks), kinks, 0.0)
        longest = problem.longest
        if changes.sign < 0:
            longest = max(longest, float(np.linalg.norm(changes.X, axis=1).max()) * (1 + 1e-12))
        return cls(
            pivot,
            (concordance or 0.0) * longest,
            kinks,
            np.concatenate([[0.0], np.cumsum(weight)]),
            np.concatenate([[0.0], np.cumsum(weight * finite)]),
        )

    def after_newton(self, block: LowRank, step: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Radius around f + δ_i after one Newton step."""
        fit = self.pivot.fit
        length = np.sqrt(np.einsum("ij,ij->i", step, step))
        rounding = self.newton_rounding(block, coefficients, length)
        lam, m = block.ridge(), block.eigenvalue()
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if fit.problem.loss.self_concordance is None:
                radius = (self._kinked_gradient(block, length) + rounding) / lam
            else:
                energy, penalised = block.energies(step)
                slack = 1e-12 * np.abs(energy) + rounding * length
                spread = np.sqrt(np.maximum(energy - penalised, 0.0) + slack)
                radius = newton_radius(self.reach, length, spread, rounding, lam, m)
            radius = np.fmin(radius, block.largest_pull() / lam + length)  # strong convexity at f itself
        radius = np.where(np.isnan(radius), np.inf, radius)
        return radius * (1 + 1e-10) + 4 * UNIT * float(np.linalg.norm(fit.centre))

    def after_gradient(self, block: LowRank, length: FloatArray, gradient_norm: FloatArray) -> FloatArray:
        """Radius around f + step whose gradient is known: strong convexity, or self-concordance without a ridge."""
        lam, m = block.ridge(), block.eigenvalue()
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            radius = np.where(lam > 0, gradient_norm / lam, np.inf)
            if self.pivot.fit.problem.loss.self_concordance is not None:
                radius = np.fmin(radius, gradient_radius(self.reach, length, gradient_norm, m))
        return radius * (1 + 1e-10) + 4 * UNIT * float(np.linalg.norm(self.pivot.fit.centre))

    def _kinked_gradient(self, block: LowRank, length: FloatArray) -> FloatArray:
        """κ·Σ_j s_j‖x_j‖²·(‖δ‖ − kink_j/‖x_j‖)₊ from the sorted kinks, with a row that joins."""
        crossed = np.searchsorted(self.kinks, length)
        loss, changes = self.pivot.fit.problem.loss, block.changes
        smoothness = loss.smoothness or np.inf
        if changes.sign < 0:
            norms = np.linalg.norm(changes.X, axis=1)
            over = np.maximum(norms * length - loss.kink(changes.margins, changes.y), 0.0)
            own = smoothness * changes.weights * norms * over
            return np.asarray(self._crossed(crossed, length, smoothness) + own)
        return self._crossed(crossed, length, smoothness)

    def _crossed(self, crossed: Indices, length: FloatArray, smoothness: float) -> FloatArray:
        rounding = 1e-12 * length * self.mass[crossed]
        return np.asarray(smoothness * (length * self.mass[crossed] - self.moment[crossed] + rounding))

    def newton_rounding(self, block: LowRank, coefficients: FloatArray, length: FloatArray) -> FloatArray:
        """Bound ‖H_i δ_i − b_i‖ as computed: errors of H, of its inverse, of b_i, and other sample weights."""
        pivot, fit = self.pivot, self.pivot.fit
        norms = np.sqrt(np.einsum("ij,ij->i", block.changes.X, block.changes.X))
        share = np.abs(block.changes.weights) * float(np.linalg.norm(fit.problem.relief * fit.centre))
        used = np.linalg.norm(coefficients, axis=1) * norms + share + float(np.linalg.norm(fit.gradient))
        with np.errstate(divide="ignore"):
            amplified = 1 + np.einsum("iab,iba->i", np.abs(block.leverage), np.abs(block.curvature)) / np.maximum(
                1 - np.einsum("iab,iba->i", block.leverage, block.curvature), UNIT
            )
        inverse = (4 * pivot.inverse_error + 64 * UNIT * amplified) * used * amplified + block.slope_error()
        return np.asarray(inverse + (pivot.matrix_error + block._weight_gap()) * length + fit.gradient_error)


def newton_radius(
    reach: float, length: FloatArray, spread: FloatArray, rounding: FloatArray, ridge: FloatArray, m: FloatArray
) -> FloatArray:
    """The two certificates of the module's text for Newton steps of norm ``length``; ``spread`` is S.

    ``rounding`` bounds ‖H_iδ_i − b_i‖ as computed. Infinite (or NaN) where neither applies.
    """
    r = np.minimum(reach * length, 500.0)
    chi = _chi(r)
    bent = chi * np.exp(r / 2) * spread / (2 * np.sqrt(ridge))
    by_ridge = np.where(reach * bent < 2, (bent + rounding / ridge) / (1 - reach * bent / 2), np.inf)
    return np.asarray(np.fmin(by_ridge, gradient_radius(reach, length, chi * spread * np.sqrt(m) + rounding, m)))


def gradient_radius(reach: float, length: FloatArray, gradient_norm: FloatArray, m: FloatArray) -> FloatArray:
    """−log(1 − q)/(M·R), q = M·R·e^r·‖∇F_i‖/m, at distance ``length`` from where λ_min is m; ‖∇F_i‖/m if M = 0."""
    tilted = np.exp(np.minimum(reach * length, 500.0)) * gradient_norm / m
    if reach == 0:
        return np.where(m > 0, tilted, np.inf)
    q = reach * tilted
    return np.where((q < 1) & (m > 0), -np.log1p(-np.minimum(q, 1)) / reach, np.inf)


def _chi(r: FloatArray) -> FloatArray:
    """(e^r − 1 − r)/r, at least r/2."""
    series = r / 2 * (1 + r / 3 * (1 + r / 4 * (1 + r / 5 * (1 + r / 6))))
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (np.expm1(r) - r) / r
    return np.where(r < 1e-2, series * (1 + 1e-10), exact * (1 + 1e-10))


def default_tolerance(records: int, parameters: int) -> float:
    """1e-9 where iterating every record is cheap, 1 % (usually no iteration at all) beyond."""
    return 1e-9 if float(records) ** 2 * parameters <= _CHEAP else 1e-2
