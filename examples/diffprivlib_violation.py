"""Does IBM diffprivlib 0.6.6 keep the ε of its logistic regression? An audit in two steps, in two environments.

    pip install diffprivlib==0.6.6 "scikit-learn<1.8"                 # an environment of its own
    python examples/diffprivlib_violation.py train scores.npz         # there: trains, writes scores
    python examples/diffprivlib_violation.py audit scores.npz         # where deniable is installed

    # or, without choosing the number of trainings beforehand: stop at the first one that breaks the promise
    python examples/diffprivlib_violation.py stream 100 | deniable audit - epsilon,2

The model is ``LogisticRegression(epsilon=2, data_norm=R, fit_intercept=False)`` with everything else at its default.
Neighbouring data sets: three rows, of which one is replaced. Two rows are zero and carry both classes; the third is
(R, 0) with label 1 ("member") or (0, R) with label 0 ("nonmember").

The attack is the likelihood ratio of the released coefficients. With noise b the coefficients θ solve
Σ∇l(θ) + λθ + b = 0, so their density is that of b at b(θ) times det(Σ∇²l(θ) + λI). diffprivlib charges the determinant
c·R with c = 1/4, but the curvature of a row of norm R is c·R²: for R > 1 the determinant tells more than was paid for.
"""

import sys
import time
import warnings

import numpy as np

EPSILON = 2.0
RUNS = {12.0: 40_000, 1.0: 15_000, 0.5: 15_000}  # data_norm: trainings in each world


def data(norm: float, member: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the three rows and labels of one world."""
    third = [norm, 0.0] if member else [0.0, norm]
    return np.array([[0.0, 0.0], [0.0, 0.0], third]), np.array([0, 1, int(member)])


def effective(norm: float) -> tuple[float, float]:
    """Return the ridge λ and the noise scale that diffprivlib uses for C = 1 (its Vector mechanism)."""
    left = EPSILON - 2 * np.log1p(norm / 4)
    if left > 0:
        return 1.0, 2 * norm / left
    return norm / 4 / np.expm1(EPSILON / 4), 2 * norm / (EPSILON / 2)


def log_density(theta: np.ndarray, norm: float, member: bool) -> np.ndarray:
    """Log density of released coefficients, shape (n, 2), up to a constant that both worlds share."""
    X, y = data(norm, member)
    ridge, scale = effective(norm)
    p = 1 / (1 + np.exp(-theta @ X.T))
    b = -((p - y) @ X + ridge * theta)
    curvature = np.einsum("ni,ij,ik->njk", p * (1 - p), X, X) + ridge * np.eye(2)
    return np.linalg.slogdet(curvature)[1] - np.linalg.norm(b, axis=1) / scale


def fit(norm: float, member: bool, runs: int) -> np.ndarray:
    """Train in one world and return the attack's scores, shape (runs,)."""
    from diffprivlib.models import LogisticRegression

    X, y = data(norm, member)
    theta = np.empty((runs, 2))
    for run in range(runs):
        model = LogisticRegression(epsilon=EPSILON, data_norm=norm, fit_intercept=False)
        theta[run] = model.fit(X, y).coef_[0]
    return np.round(log_density(theta, norm, True) - log_density(theta, norm, False), 6)


def stream(norm: str) -> None:
    """Train in both worlds in turn and print a line a training, until nobody reads any more."""
    warnings.simplefilter("ignore")
    try:
        print("score,member", flush=True)
        while True:
            for member in (True, False):
                print(f"{fit(float(norm), member, 1)[0]},{int(member)}", flush=True)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough


def train(path: str) -> None:
    """Train diffprivlib's model many times in both worlds and write the attack's scores."""
    warnings.simplefilter("ignore")
    scores = {}
    for norm, runs in RUNS.items():
        start = time.perf_counter()
        for member in (True, False):
            scores[f"{'member' if member else 'nonmember'}_{norm:g}"] = fit(norm, member, runs)
        print(f"data_norm {norm:g}: {2 * runs} trainings in {time.perf_counter() - start:.0f} s", flush=True)
    np.savez(path, **scores)


def audit(path: str) -> None:
    """Judge the promised epsilon by the scores."""
    import deniable as dn

    promise = dn.tradeoff(dn.PureDP(EPSILON))
    with np.load(path) as scores:
        for norm in RUNS:
            found = dn.audit_scores(scores[f"member_{norm:g}"], scores[f"nonmember_{norm:g}"], confidence=0.95)
            print(f"data_norm = {norm:g}, promised epsilon = {EPSILON:g}")
            print(f"  measured {found.epsilon()}")
            print("  " + str(found.compare(promise)).replace("\n", "\n  "))


if __name__ == "__main__":
    {"train": train, "audit": audit, "stream": stream}[sys.argv[1]](sys.argv[2])
