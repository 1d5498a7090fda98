"""Noisy gradient descent of which only the last iterate is released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from deniable._check import InputError
from deniable._checked import real
from deniable.mechanisms.core import Mechanism
from deniable.mechanisms.fields import Count, NoiseScale, Positive


@dataclass(frozen=True)
class NoisyGradientDescent(Mechanism):
    """w ← w − step_size·(∇J(w) + N(0, σ²I)) on the whole data set, **only the last iterate is released**.

    The bound does not hold for anybody who sees an intermediate iterate, a loss curve or a checkpoint.

    Parameters
    ----------
    noise_multiplier
        σ/s: standard deviation of the noise that is added to the gradient, divided by how far one record can move the
        gradient of J (in Euclidean norm, at any w). For noise added outside the bracket, divide s by the step size.
    steps
        Number of steps, fixed beforehand.
    strong_convexity
        m > 0 with ∇²J ⪰ m·I for **both** data sets: the ridge penalty, for a convex loss with every weight penalised.
    smoothness
        M ≥ m with ∇²J ⪯ M·I for both data sets.
    step_size
        Constant, in (0, 2/M).

    Raises
    ------
    InputError
        Where a condition of the theorem fails: m = 0 (an unpenalised intercept is enough), M < m, step size ≥ 2/M.

    Notes
    -----
    Gaussian DP with μ = (s/σ)·√[(1 − c^t)(1 + c)/((1 + c^t)(1 − c))], c = max(|1 − ηm|, |1 − ηM|): bounded in t, and
    attained by a quadratic J (Bok, Su & Altschuler 2024, arXiv:2403.00278). The start must not depend on the data. For
    J = Σ loss/N + m‖w‖²/2 with a *public* N and gradients of norm at most R: s = R/N; with the data's own n, s = 2R/n.

    Examples
    --------
    See ``MatrixMechanism``.
    """

    noise_multiplier: NoiseScale
    steps: Count
    strong_convexity: Annotated[
        float,
        real(above=0.0, below=math.inf, hint="without it the iterates do not contract: penalise every weight"),
    ]
    smoothness: Positive
    step_size: Positive

    hidden = ("every iterate before the last one, with checkpoints, loss curves and scores computed from them",)

    def _check_together(self) -> None:
        if self.smoothness < self.strong_convexity:
            raise InputError(
                f"smoothness must be at least strong_convexity, got {self.smoothness:g} < {self.strong_convexity:g}"
            )
        if not self.step_size * self.smoothness < 2:
            raise InputError(
                f"step_size must be below 2/smoothness = {2 / self.smoothness:g}, got {self.step_size:g}: "
                "larger steps do not contract"
            )
