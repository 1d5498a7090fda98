"""Leave-one-out by the definition: refit without each row with SciPy, sharing nothing with the library."""

import numpy as np
from scipy.optimize import minimize, root
from scipy.special import expit, logsumexp, softmax


def objective(loss, X, y, penalty, weights=None, threshold=1.35):
    """Return value, gradient and Hessian functions of Σ s·φ(xᵀf, y) + ½Σ penalty·f²."""
    s = np.ones(len(y)) if weights is None else weights

    def parts(t):
        if loss == "logistic":
            return np.logaddexp(0, -y * t), -y * expit(-y * t), expit(t) * expit(-t)
        if loss == "squared":
            return (t - y) ** 2 / 2, t - y, np.ones_like(t)
        if loss == "squared_hinge":
            short = np.maximum(1 - y * t, 0)
            return short**2, -2 * y * short, 2.0 * (short > 0)
        if loss == "huber":
            e = t - y
            inside = np.abs(e) <= threshold
            return (
                np.where(inside, e**2 / 2, threshold * (np.abs(e) - threshold / 2)),
                np.clip(e, -threshold, threshold),
                inside.astype(float),
            )
        if loss == "poisson":
            return np.exp(t) - y * t, np.exp(t) - y, np.exp(t)
        raise ValueError(loss)

    def value(f):
        return s @ parts(X @ f)[0] + penalty @ f**2 / 2

    def gradient(f):
        return X.T @ (s * parts(X @ f)[1]) + penalty * f

    def hessian(f):
        return X.T @ ((s * parts(X @ f)[2])[:, None] * X) + np.diag(penalty)

    return value, gradient, hessian


def optimum(loss, X, y, penalty, weights=None):
    """Return the minimiser, polished by plain Newton steps on the gradient."""
    value, gradient, hessian = objective(loss, X, y, penalty, weights)
    f = minimize(value, np.zeros(X.shape[1]), jac=gradient, hess=hessian, method="trust-exact", tol=1e-10).x
    for _ in range(6):
        f = f - np.linalg.solve(hessian(f), gradient(f))
    return f


def softmax_optimum(X, codes, classes, penalty):
    """Return the minimiser of the softmax cross-entropy with a ridge, (d·classes,)."""
    one_hot = np.eye(classes)[codes]

    def gradient(flat):
        F = flat.reshape(-1, classes)
        return (X.T @ (softmax(X @ F, axis=1) - one_hot)).ravel() + penalty * flat

    def value(flat):
        F = flat.reshape(-1, classes)
        T = X @ F
        return np.sum(logsumexp(T, axis=1) - T[np.arange(len(X)), codes]) + penalty * flat @ flat / 2

    start = minimize(value, np.zeros(X.shape[1] * classes), jac=gradient, method="BFGS", tol=1e-9).x
    return root(gradient, start, method="hybr", tol=1e-14).x
