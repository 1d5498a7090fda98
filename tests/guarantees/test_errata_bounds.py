"""Errata in the closed forms: for each, the printed formula is refuted and ours holds."""

import itertools

import numpy as np
import pytest
from counterexamples import TwoRecordResponse
from scipy.integrate import quad
from scipy.stats import norm

import deniable as dn
from deniable import bounds, unlearning
from deniable.curves import GaussianTradeoff

# --- E1: Thudi et al. §6 and figure 7 print e^{−ε} where their Corollary 1 proves e^{+ε} --------------------------


def printed_capacity(epsilon: float, prior: float, confidence: float) -> float:
    lower = 1 / (1 + np.exp(-epsilon) * prior / (1 - prior))
    return np.floor(np.log(confidence) / np.log(lower))


def test_e1_printed_deletion_capacity_breaks_its_promise():
    """Randomised response on each record is ε-DP; we look at the output that accuses all who asked for deletion."""
    epsilon, prior, confidence = 1.0, 0.01, 0.8
    keep = 1 / (1 + np.exp(-epsilon))  # each record's bit is published, right with this probability
    out_given_accused = (1 - prior) * (1 - keep) / ((1 - prior) * (1 - keep) + prior * keep)

    printed, ours = (
        printed_capacity(epsilon, prior, confidence),
        unlearning.deletion_capacity(epsilon, prior, confidence),
    )
    assert out_given_accused**printed < 0.3  # the printed capacity leaves far less than the promised 80 %
    assert out_given_accused**ours >= confidence
    assert out_given_accused ** (ours + 1) < confidence  # and ours cannot be raised

    # the same by simulation of one record: of those accused, how many are out?
    rng = np.random.default_rng(11)
    inside = rng.random(400_000) < prior
    accused = np.where(inside, rng.random(inside.size) < keep, rng.random(inside.size) >= keep)
    seen = np.mean(~inside[accused])
    margin = 5 * 0.5 / np.sqrt(accused.sum())
    assert seen > bounds.negative_accuracy(epsilon, prior=prior)[0] - margin
    assert seen < 1 / (1 + np.exp(-epsilon) * prior / (1 - prior)) - margin  # below the printed lower bound


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_e1_overstates_about_e_to_the_2_epsilon_times(epsilon):
    """For small priors ln L ≈ −e^{±ε}·c/N; at ε = 1 the factor is 7.4 (design reference value)."""
    ratio = printed_capacity(epsilon, 1e-6, 0.8) / unlearning.deletion_capacity(epsilon, 1e-6, 0.8)
    assert ratio == pytest.approx(np.exp(2 * epsilon), rel=1e-3)


# --- E2: Izzo et al., Theorem 8 prints TPR ≤ FPR + η; right is FPR + 2η ------------------------------------------


def test_e2_publishing_the_training_set_refutes_the_printed_bound():
    """Six records, a training set of three, published as it is; the attacker looks whether the record is there."""
    rng = np.random.default_rng(5)
    target, rounds = 0, 20_000
    training_sets = np.argsort(rng.random((rounds, 6)), axis=1)[:, :3]
    member = (training_sets == target).any(axis=1)
    says_in = (training_sets == target).any(axis=1)  # the published set contains the record
    tpr, fpr, accuracy = np.mean(says_in[member]), np.mean(says_in[~member]), np.mean(says_in == member)
    eta = accuracy - 0.5
    assert (tpr, fpr, eta) == (1.0, 0.0, 0.5)
    printed = fpr + eta
    assert tpr > printed  # Theorem 8 as printed is false
    assert tpr <= bounds.tpr_from_mip(eta, fpr=fpr)  # with 2η it holds, and is attained


@pytest.mark.parametrize("prior", [0.2, 0.5, 0.7])
def test_e2_corrected_bound_holds_for_random_mechanisms_and_is_attained(prior):
    rng = np.random.default_rng(8)
    tightest = np.inf
    for _ in range(300):
        inside, outside = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        eta = np.maximum(prior * inside, (1 - prior) * outside).sum() - max(prior, 1 - prior)
        for size in range(5):
            for test in itertools.combinations(range(4), size):
                tpr, fpr = inside[list(test)].sum(), outside[list(test)].sum()
                gap = bounds.tpr_from_mip(min(max(eta, 0.0), 0.5), fpr=min(fpr, 1.0), prior=prior) - tpr
                assert gap >= -1e-12
                tightest = min(tightest, gap)
    assert tightest < 1e-9


# --- E10 and E11: Mahloujifar et al., Appendix J and footnote 4 --------------------------------------------------


def integrals(mu: float, prior: float) -> tuple[float, float, float]:
    """By quadrature, for N(0, 1) = out and N(mu, 1) = in: prior advantage, ½∫|out − a·in| and ∫(out − a·in)₊."""
    scale = prior / (1 - prior)
    cross = mu / 2 - np.log(scale) / mu  # where out = a·in

    def pieces(f) -> float:
        return sum(quad(f, low, high, epsabs=1e-13)[0] for low, high in itertools.pairwise([-12.0, cross, mu + 12.0]))

    bayes = pieces(lambda x: max(prior * norm.pdf(x - mu), (1 - prior) * norm.pdf(x)))
    variation = pieces(lambda x: abs(norm.pdf(x) - scale * norm.pdf(x - mu))) / 2
    hockey = pieces(lambda x: max(norm.pdf(x) - scale * norm.pdf(x - mu), 0.0))
    return 2 * (bayes - max(prior, 1 - prior)), variation, hockey


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("prior", [0.1, 0.25, 0.4, 0.5])
def test_e10_the_sign_of_the_last_term(mu, prior):
    advantage, variation, _ = integrals(mu, prior)
    printed = 2 * (1 - prior) * variation + (1 - 2 * prior)
    ours = bounds.advantage_from_scaled_variation(variation, prior=prior)
    assert ours == pytest.approx(advantage, abs=1e-9)
    assert ours == pytest.approx(GaussianTradeoff(mu).advantage(prior), abs=1e-9)
    assert printed - advantage == pytest.approx(2 * (1 - 2 * prior), abs=1e-9)  # wrong unless the prior is one half


def test_e10_equal_worlds_give_nothing_away():
    for prior in (0.1, 0.3):
        scale = prior / (1 - prior)
        variation = (1 - scale) / 2  # ½∫|q − a·q|
        assert 2 * (1 - prior) * variation + (1 - 2 * prior) == pytest.approx(2 * (1 - 2 * prior))  # as printed
        assert bounds.advantage_from_scaled_variation(variation, prior=prior) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("prior", [0.1, 0.4, 0.5])
def test_e11_scaled_variation_is_not_the_hockey_stick(mu, prior):
    _, variation, hockey = integrals(mu, prior)
    scale = prior / (1 - prior)
    t = GaussianTradeoff(mu)
    ours = bounds.scaled_total_variation(t, scale)
    assert t.hockey_stick(scale, "add") == pytest.approx(hockey, abs=1e-9)
    assert ours == pytest.approx(variation, abs=1e-9)
    assert hockey - variation == pytest.approx((1 - scale) / 2, abs=1e-9)  # footnote 4 as printed sets this to 0
    # the two errata together: the advantage from the curve's own scaled variation
    assert bounds.advantage_from_scaled_variation(ours, prior=prior) == pytest.approx(t.advantage(prior), abs=1e-9)


# --- E16: Mahloujifar et al., Appendix G, takes δ for the chance that the privacy loss passes ε --------------------


def chance_to_pass(t, epsilon):
    """P(log ratio > ε | in), from the slope of the hockey stick at γ = e^ε: H_γ = P(L > ε) − γ·Q(L > ε)."""
    gamma, step = np.exp(epsilon), 1e-4
    upper, lower = (t.hockey_stick(gamma * np.exp(s)) for s in (step, -step))
    return t.hockey_stick(gamma) - (upper - lower) / (2 * step)  # H − γ·dH/dγ


@pytest.mark.parametrize(
    ("make", "times"), [(lambda: dn.GaussianDP(1 / 3.7307), 16), (lambda: dn.SubsampledGaussian(1.0, 0.01, 5000), 5)]
)
def test_e16_the_loss_passes_epsilon_far_more_often_than_delta(make, times):
    t, delta = dn.tradeoff(make()), 1e-5
    epsilon = t.epsilon(delta)
    assert chance_to_pass(t, epsilon) / delta == pytest.approx(times, rel=0.1)
    assert t.delta(epsilon) <= delta * (1 + 1e-9)  # and yet it is (ε, δ)-DP


def test_e16_in_closed_form_and_played():
    sigma, delta = 3.7307, 1e-5  # 3.730632, rounded to the safe side
    mu = 1 / sigma
    assert dn.tradeoff(dn.GaussianDP(mu)).epsilon(delta) == pytest.approx(1.0, abs=1e-4)
    passes = norm.sf(1 / mu - mu / 2)  # L = μx − μ²/2 with x ~ N(μ, 1)
    assert passes == pytest.approx(1.6e-4, rel=0.02)
    rng = np.random.default_rng(16)
    loss = mu * (rng.standard_normal(4_000_000) + mu) - mu**2 / 2
    seen = np.mean(loss > 1.0)
    assert seen == pytest.approx(passes, rel=0.2)
    assert seen > 10 * delta  # the printed "with probability 1 − δ"
    # what is true: it passes ε + s with probability δ/(1 − e^{−s}) at most, as H_{e^ε} ≥ (1 − e^{−s})·P(L > ε + s)
    for s in (0.1, 0.5, 1.0):
        assert norm.sf((1 + s) / mu - mu / 2) <= delta / -np.expm1(-s)


# --- E18: Mahloujifar et al., Lemma 7, leaves Definition 4: see tests/test_paper_statements.py ---------------------

# --- E19: Izzo et al., first version: the appendix proves another bound than Theorem 4, and (9) has another limit ---


def test_e19_the_proof_of_theorem_4_gives_more_than_certainty():
    """e^ε·k/n + δ(n − k)/n is above 1 from ε = ln 2 on at k = n/2; the statement is right, and attained."""
    for epsilon, delta in ((0.1, 0.0), (1.0, 0.0), (1.0, 0.1)):
        proven = np.exp(epsilon) / 2 + delta / 2
        stated = 0.5 + bounds.mip_from_dp(epsilon, delta=delta)
        law = TwoRecordResponse(epsilon, delta).law(0)
        assert stated == pytest.approx(np.maximum(law, law[::-1]).sum() / 2, abs=1e-12)
        assert proven > stated
    assert np.exp(1.0) / 2 > 1


def test_e19_expression_9_tends_to_guessing_and_not_to_one():
    """max(k/n, 1 − k/n)·[(1 − p)^k + C·(1 − (1 − p)^k)] as p → 0; were the limit 1, Theorem 5 would not follow."""
    n, k = 6, 3
    published = sum(1 for size in range(1, k + 1) for _ in itertools.combinations(range(n), size))  # C, non-empty sets
    nine = [max(k / n, 1 - k / n) * ((1 - p) ** k + published * (1 - (1 - p) ** k)) for p in (1e-3, 1e-6, 1e-9)]
    assert nine[-1] == pytest.approx(0.5, abs=1e-6)
    assert np.all(np.diff(nine) < 0)
