"""Algorithms for the coefficients on one table: which was tried, with which figure; why the fit is what it is.

python benchmarks/training/algorithms.py [--splits 10]          # about three minutes

All get the same rows: a ±1 code of edges with equally many records, found without privacy (it is not what is compared
here), norm at most 1, logistic loss, and the same target, a membership advantage of at most 0.1 or 0.462 (adding or
removing one record). Noise is NumPy's. The rule that deniable uses has no setting here; every other algorithm gets its
best setting for each data set and target, by held-out AUC on other splits than those shown, and the number of records
for nothing. Accounting:

- descents: √T/σ Gaussian DP; Poisson subsampling: deniable's exact curve (σ is searched);
- last iterate only (Bok, Su & Altschuler, arXiv:2403.00278): strongly convex, μ = (s/σ)·√[(1−c^T)(1+c)/((1+c^T)(1−c))];
- objective perturbation with Gaussian noise: a Gaussian release of the gradient composed with the determinant's
  ln(1 + ¼/λ)-DP. That is *less* than its published analysis charges, so its row is optimistic;
- one noisy Newton step: the sums for gradient and Hessian (sufficient statistics of the quadratic), half of μ² each;
- individual filters: noise for 80 % of the steps, a record leaves before it would pass its budget.
"""

import argparse

import numpy as np
from data import load
from harness import gdp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import deniable as dn

CLIP, STEPS = 0.5, 400
CHOOSING = 6  # splits on which settings are chosen
SETS = {"breast_cancer": (16, None), "skewed": (8, 4000), "small": (16, None)}
TARGETS = (0.1, 0.462)


def rows_of(name: str, split: int):
    """Codes of a training and a test part, with their labels as 0 and 1."""
    data = load(name)
    bins, most = SETS[name]
    y = (data.y == np.unique(data.y)[1]).astype(float)
    chosen = np.arange(len(y)) if most is None else np.random.default_rng(0).permutation(len(y))[:most]
    train, test = train_test_split(chosen, test_size=0.25, random_state=split)
    blocks = []
    for _, column in data.X.items():
        values = column.to_numpy(dtype=float)
        edges = np.unique(np.nanquantile(values[train], np.arange(1, bins) / bins))
        code = np.where(values[:, None] >= edges, 1.0, -1.0) / np.sqrt(edges.size)
        code[np.isnan(values)] = 0.0
        blocks.append(code)
    Z = np.hstack([*blocks, np.ones((len(y), 1))]) / np.sqrt(len(blocks) + 1)
    return Z[train], y[train], Z[test], y[test]


def descent(Z, y, mu, rng, *, momentum=0.95, steps=STEPS, averaged=True, travel=3.0, keep=1.0, clip=CLIP):
    """deniable's rule, or one of its parts left out; ``keep`` below 1: individual filters."""
    n, d = Z.shape
    sd = clip * np.sqrt(keep * steps) / mu
    reach = min(travel * mu, travel)
    step = min(reach * (1 - momentum) / steps, 14 / n)
    left, norms = np.full(n, mu**2), (Z * Z).sum(axis=1)
    w, v, mean = np.zeros(d), np.zeros(d), np.zeros(d)
    for t in range(steps):
        r = np.clip(expit(Z @ w) - y, -clip, clip)
        if keep < 1:
            cost = (r / sd) ** 2 * norms
            left = np.where(cost <= left, left, -1.0)  # counted before use, and gone for good
            r, left = np.where(left >= 0, r, 0.0), left - cost * (left >= 0)
        v = momentum * v + Z.T @ r + rng.normal(0, sd, d)
        w = w - step * v
        mean += w * (t >= steps // 2)
    return mean / (steps - steps // 2) if averaged else w


def subsampled(Z, y, mu, rng, *, rate, travel, sigma):
    n, d = Z.shape
    step = travel * min(mu, 1) * 0.05 / STEPS
    w, v, mean = np.zeros(d), np.zeros(d), np.zeros(d)
    for t in range(STEPS):
        batch = rng.random(n) < rate
        r = np.clip(expit(Z[batch] @ w) - y[batch], -CLIP, CLIP)
        v = 0.95 * v + (Z[batch].T @ r + rng.normal(0, CLIP * sigma, d)) / rate
        w = w - step * v
        mean += w * (t >= STEPS // 2)
    return mean / (STEPS - STEPS // 2)


def last_iterate(Z, y, mu, rng, *, ridge):
    n, d = Z.shape
    step = 1 / (n / 4 + 2 * ridge)
    c = 1 - step * ridge
    shift = np.sqrt((1 - c**STEPS) * (1 + c) / ((1 + c**STEPS) * (1 - c)))
    w = np.zeros(d)
    for _ in range(STEPS):
        r = np.clip(expit(Z @ w) - y, -CLIP, CLIP)
        w = w - step * (Z.T @ r + ridge * w + rng.normal(0, CLIP * shift / mu, d))
    return w


def objective(Z, y, mu, rng, *, ridge, target):
    pure = np.log1p(0.25 / ridge)
    if dn.tradeoff(dn.PureDP(pure)).advantage() >= target:
        return np.zeros(Z.shape[1])
    gaussian = dn.calibrate(lambda m: dn.PureDP(pure) + dn.GaussianDP(m), (1e-4, mu), advantage=target, tolerance=1e-3)
    noise = rng.normal(0, 1 / gaussian, Z.shape[1])  # the loss is not clipped: its gradient has norm up to 1

    def value(w):
        score = Z @ w
        gradient = Z.T @ (expit(score) - y) + ridge * w + noise
        return np.logaddexp(0, score).sum() - y @ score + ridge / 2 * w @ w + noise @ w, gradient

    return minimize(value, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x


def newton(Z, y, mu, rng, *, ridge):
    d, each = Z.shape[1], mu / np.sqrt(2)
    gradient = Z.T @ (0.5 - y) + rng.normal(0, 0.5 / each, d)
    noise = np.triu(rng.normal(0, 0.25 / each, (d, d)))
    hessian = Z.T @ Z / 4 + noise + np.triu(noise, 1).T
    values, axes = np.linalg.eigh(hessian)
    return -axes @ ((axes.T @ gradient) / (np.maximum(values, 0) + ridge))


def candidates(mu: float, target: float):
    """{name: [one fit for each setting]}."""
    sigma = {
        q: dn.calibrate(
            lambda s, q=q: dn.SubsampledGaussian(s, q, STEPS), (0.3, 4000), advantage=target, tolerance=1e-3
        )
        for q in (0.1, 0.3)
    }

    def made(function, **options):
        return lambda Z, y, rng: function(Z, y, mu, rng, **options)

    ridges = (0.3, 1.0, 3.0, 10.0, 30.0)
    return {
        "deniable's rule: momentum, average of the second half, 400 steps": [made(descent)],
        "the same with individual filters": [made(descent, keep=0.8)],
        "the same, other lengths of the path": [made(descent, travel=t) for t in (1.0, 2.0, 6.0, 12.0)],
        "without momentum": [made(descent, momentum=0.0, travel=t) for t in (1.5, 3.0, 6.0)],
        "last step instead of the average": [made(descent, averaged=False, travel=t) for t in (1.5, 3.0, 6.0)],
        "50 steps": [made(descent, steps=50, travel=t) for t in (1.5, 3.0, 6.0)],
        "residuals clipped at ¼": [made(descent, clip=0.25, travel=t) for t in (3.0, 6.0, 12.0)],
        "residuals not clipped (norm up to 1)": [made(descent, clip=1.0, travel=t) for t in (1.5, 3.0, 6.0)],
        "Poisson subsampling": [
            made(subsampled, rate=q, travel=t, sigma=sigma[q]) for q in sigma for t in (1.5, 3.0, 6.0)
        ],
        "accounting of the last iterate only": [made(last_iterate, ridge=r) for r in ridges],
        "objective perturbation, Gaussian": [made(objective, ridge=r, target=target) for r in ridges],
        "one noisy Newton step": [made(newton, ridge=r) for r in (3.0, 30.0, 300.0)],
    }


def aucs(fit, parts, seed: int) -> list[float]:
    """Held-out AUC on each split, the mean over two draws of the noise."""
    return [
        float(np.mean([roc_auc_score(ty, tz @ fit(z, y, np.random.default_rng([k, seed, turn]))) for turn in (0, 1)]))
        for k, (z, y, tz, ty) in enumerate(parts)
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=10)
    splits = parser.parse_args().splits
    heads = [f"{name}, {target}" for name in SETS for target in TARGETS]
    table: dict[str, list[str]] = {}
    for name in SETS:
        shown = [rows_of(name, split) for split in range(splits)]
        others = [rows_of(name, split) for split in range(splits, splits + CHOOSING)]
        for target in TARGETS:
            for label, settings in candidates(gdp(target), target).items():
                best = 0
                if len(settings) > 1:
                    best = int(np.argmax([np.mean(aucs(fit, others, k)) for k, fit in enumerate(settings)]))
                found = aucs(settings[best], shown, 1000)
                said = "" if len(settings) == 1 else f" (best of {len(settings)})"
                error = np.std(found, ddof=1) / np.sqrt(splits)
                table.setdefault(label + said, []).append(f"{np.mean(found):.3f} ± {error:.3f}")
    print("| algorithm | " + " | ".join(heads) + " |\n|" + "---|" * (1 + len(heads)))
    for label, cells in table.items():
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
