"""Izzo et al., Theorems 4, 5 and 8: the bound from (ε, δ) is attained, MIP is not DP, and TPR ≤ FPR + 2η (erratum E2).

Left: randomised response against Theorem 4. Right: the algorithm that tells one training set apart is η-MIP with
η = 1/C(n, n/2) and differentially private for no ε; beside it the exact η of publishing the training set.
"""

from math import comb

import matplotlib.pyplot as plt
import numpy as np
from counterexamples import SubsetIndicator, TwoRecordResponse
from optimal_attack import exact_membership

import deniable as dn


def simulated_accuracy(mechanism, games, rng):
    """Right guesses of the best attack on randomised response: outputs 0 and 1 speak for record 0."""
    records = rng.integers(2, size=games)
    return float(np.mean((mechanism.sample(records, rng=rng) >= 2) == records))


def publishing(n, k, p):
    """Exact η of publishing each training record with probability p (v1, Theorem 5), over every published set."""
    total = 0.0
    for size in range(k + 1):
        chance = p**size * (1 - p) ** (k - size) / comb(n, k)
        with_it = chance * comb(n - size, k - size)  # times the sets that contain record 0, and those that do not
        inside, outside = comb(n - 1 - size, k - 1 - size) if size < k else 0, comb(n - 1 - size, k - size)
        total += comb(n - 1, size - 1) * with_it if size else 0.0
        total += comb(n - 1, size) * chance * max(inside, outside)
    return total - max(k / n, 1 - k / n)


def make(reduced):
    rng, games = np.random.default_rng(5), 5_000 if reduced else 100_000
    epsilons = np.linspace(0, 5, 11 if reduced else 51)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    exact_gap = simulated_gap = 0.0
    for delta in (0.0, 0.05, 0.2):
        promised = 0.5 + dn.bounds.mip_from_dp(epsilons, delta=delta)
        attained, played = [], []
        for epsilon in epsilons:
            mechanism = TwoRecordResponse(float(epsilon), delta)
            attained.append(0.5 + np.abs(mechanism.law(0) - mechanism.law(1)).sum() / 4)
            played.append(simulated_accuracy(mechanism, games, rng))
        line = left.plot(epsilons, promised, label=f"Theorem 4, δ = {delta:g}")[0]
        left.plot(epsilons, played, ".", color=line.get_color(), label="randomised response, played")
        exact_gap = max(exact_gap, float(np.max(np.abs(promised - attained))))
        simulated_gap = max(simulated_gap, float(np.max(np.abs(promised - played))))
    proven = np.exp(epsilons) / 2  # first version, appendix: e^ε·k/n + δ(n − k)/n, here at δ = 0
    left.plot(epsilons[proven < 1.3], proven[proven < 1.3], "k:", label="what v1's appendix proves, δ = 0 (E19)")
    left.set(xlabel="ε", ylabel="accuracy of the best attack", title="Theorem 4 is attained", ylim=(0.48, 1.2))
    left.legend(fontsize=7)

    small, n, k = 1e-9, 6, 3  # expression (9) of v1 as p → 0
    sets = sum(comb(n, size) for size in range(1, k + 1))
    nine = 0.5 * ((1 - small) ** k + sets * (1 - (1 - small) ** k))
    sizes = np.arange(4, 11 if reduced else 13, 2)
    told, published = [], []
    for n in sizes:
        records = np.arange(n, dtype=float)
        indicator = SubsetIndicator(int(n))
        told.append(exact_membership(indicator, records).worst / 2)
        published.append(exact_membership(lambda part: part, records).worst / 2)
    formula = np.array([SubsetIndicator(int(n)).eta for n in sizes])
    right.semilogy(sizes, formula, "-", label="1/C(n, n/2)")
    right.semilogy(sizes, told, "o", label="D ↦ 1{D = D*}: exact η")
    right.semilogy(sizes, published, "s--", label="D ↦ D: exact η; TPR 1 at FPR 0")
    right.set(xlabel="n", ylabel="η", title="Theorem 5 (both have ε = ∞)")
    right.legend(fontsize=8)
    # the algorithm that separates MIP from DP for a given η, and what Theorem 8 says of publishing everything
    return figure, {
        "theorem_4_at_epsilon_1": float(dn.bounds.mip_from_dp(1.0)),
        "theorem_4_largest_exact_gap": exact_gap,
        "theorem_4_largest_simulated_gap": simulated_gap,
        "theorem_5_largest_error": float(np.max(np.abs(formula - told))),
        "theorem_5_n_for_eta_0.01": SubsetIndicator.for_eta(0.01).n,
        "e19_proven_at_epsilon_1": float(np.exp(1.0) / 2),
        "e19_limit_of_expression_9": float(nine),
        "v1_theorem_5_largest_error": max(abs(publishing(6, 3, p) - p / 2) for p in (0.01, 0.3, 1.0)),
        "e2_eta_of_publishing": float(published[-1]),
        "e2_tpr_at_fpr_0_as_printed": float(published[-1]),  # FPR + η
        "e2_tpr_at_fpr_0_corrected": float(dn.bounds.tpr_from_mip(published[-1], fpr=0.0)),
    }
