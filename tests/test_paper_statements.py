"""Numbered statements of the papers that no other test covers, by enumeration or quadrature beside our functions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.stats import laplace, norm

import deniable as dn
from deniable import bounds
from deniable.curves import ApproximateTradeoff, GaussianTradeoff

# --- Thudi et al. --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [0, 3])
def test_thudi_lemma_1_and_theorem_1_by_enumerating_all_data_sets(target):
    """Data sets with and without x* pair off, at odds P(in)/P(out); so randomised response attains Theorem 1."""
    rng, epsilon = np.random.default_rng(1), 0.7
    chance = rng.uniform(0.05, 0.95, size=5)  # P_x(1), each record independently
    probability = {
        chosen: math.prod(p if x in chosen else 1 - p for x, p in enumerate(chance))
        for size in range(6)
        for chosen in map(frozenset, itertools.combinations(range(5), size))
    }
    inside = [chosen for chosen in probability if target in chosen]
    assert {chosen - {target} for chosen in inside} == set(probability) - set(inside)  # a bijection
    odds = (1 - chance[target]) / chance[target]
    for chosen in inside:
        assert probability[chosen - {target}] == pytest.approx(probability[chosen] * odds, rel=1e-12)

    keep = 1 / (1 + math.exp(-epsilon))  # the record's bit, published truthfully with this probability: ε-DP
    says_in = {chosen: keep if target in chosen else 1 - keep for chosen in probability}
    joint = sum(probability[chosen] * says_in[chosen] for chosen in inside)
    posterior = joint / sum(probability[chosen] * says_in[chosen] for chosen in probability)
    assert posterior == pytest.approx(bounds.positive_accuracy(epsilon, prior=chance[target])[1], rel=1e-12)


@given(st.floats(0, 30), st.floats(0, 1), st.floats(0, 1))
def test_jayaraman_advantage_is_the_curve_less_the_rate(epsilon, delta, fpr):
    found = bounds.jayaraman_advantage(epsilon, fpr=fpr, delta=delta)
    assert found == pytest.approx(ApproximateTradeoff(epsilon, delta).tpr(fpr) - fpr, abs=1e-12)
    assert found <= bounds.humphries(epsilon, delta=delta) * (1 + 1e-12)


def test_jayaraman_advantage_is_largest_where_it_is_humphries_bound():
    for epsilon, delta in ((0.5, 0.0), (2.0, 0.1), (40.0, 0.0)):
        fpr = (1 - delta) / (1 + math.exp(epsilon))
        assert bounds.jayaraman_advantage(epsilon, fpr=fpr, delta=delta) == pytest.approx(
            bounds.humphries(epsilon, delta=delta), rel=1e-12
        )
    assert bounds.jayaraman_advantage(1e-9, fpr=1e-9) == pytest.approx(1e-18, rel=1e-6)  # nothing cancels
    assert bounds.jayaraman_advantage(np.inf, fpr=[0.0, 0.25]).tolist() == [0.0, 0.75]


# --- Izzo et al. ---------------------------------------------------------------------------------------------------


def game(n, k, laws):
    """Laws of the output given that each record is in or out: (n, outputs) each, from {subset: law of the output}."""
    inside = [np.mean([law for subset, law in laws.items() if x in subset], axis=0) for x in range(n)]
    outside = [np.mean([law for subset, law in laws.items() if x not in subset], axis=0) for x in range(n)]
    assert len(laws) == math.comb(n, k)
    return np.array(inside), np.array(outside)


def gain(inside, outside, prior):
    """η of each record: Proposition 2's integral less guessing."""
    return np.maximum(prior * inside, (1 - prior) * outside).sum(axis=1) - max(prior, 1 - prior)


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 2), (5, 4)])
def test_izzo_theorem_3_no_post_processing_raises_eta(n, k):
    rng, falls = np.random.default_rng(2), []
    for _ in range(60):
        laws = {s: rng.dirichlet(0.3 * np.ones(6)) for s in map(frozenset, itertools.combinations(range(n), k))}
        kernel = rng.dirichlet(0.3 * np.ones(4), size=6)  # a randomised function of the output
        before = gain(*game(n, k, laws), k / n)
        after = gain(*game(n, k, {s: law @ kernel for s, law in laws.items()}), k / n)
        assert np.all(after <= before + 1e-12)
        falls.append(before.max() - after.max())
    assert max(falls) > 0.05  # it is not that nothing happens
    told = {s: np.eye(math.comb(n, k))[i] for i, s in enumerate(map(frozenset, itertools.combinations(range(n), k)))}
    peeking = gain(*game(n, k, told), k / n)  # negative control: a "function" that looks at the training set again
    assert peeking.max() == pytest.approx(min(k / n, 1 - k / n))


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 2), (5, 3)])
def test_izzo_proposition_6_holds_for_random_private_mechanisms_and_theorem_1_says_the_same(n, k):
    """Whatever is seen, the odds of "out" grow by e^ε at most, ε measured over the replacements of one record."""
    rng, closest = np.random.default_rng(3), np.inf
    subsets = [frozenset(s) for s in itertools.combinations(range(n), k)]
    swaps = [(s, t) for s in subsets for t in subsets if len(s & t) == k - 1]
    for trial in range(80):
        if trial % 4:
            laws = {s: rng.dirichlet(2 * np.ones(4)) for s in subsets}
        else:  # tells with odds e^{±ε} whether record 0 is in: attains the bound
            laws = {s: np.array([0.75, 0.25] if 0 in s else [0.25, 0.75]) for s in subsets}
        epsilon = max(float(np.log(laws[s] / laws[t]).max()) for s, t in swaps)
        inside, outside = game(n, k, laws)
        posterior = k / n * inside / (k / n * inside + (1 - k / n) * outside)
        odds, before = (1 - posterior) / posterior, (n - k) / k
        assert np.all(odds <= math.exp(epsilon) * before * (1 + 1e-12))
        low, high = bounds.positive_accuracy(epsilon, prior=k / n)
        assert np.all((low <= posterior * (1 + 1e-12)) & (posterior <= high * (1 + 1e-12)))
        closest = min(closest, float(np.min(math.exp(epsilon) * before / odds)))
    assert closest == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("n", "k"), [(4, 2), (6, 3), (5, 2), (5, 3)])
@pytest.mark.parametrize("p", [0.01, 0.3, 1.0])
def test_izzo_v1_theorem_5_publishing_each_record_with_probability_p(n, k, p):
    """η = p/2 at k = n/2, by enumerating every published set; and no ε, since a record's name appears or cannot."""
    outputs = [frozenset(o) for size in range(n + 1) for o in itertools.combinations(range(n), size)]
    laws = {
        s: np.array([p ** len(o) * (1 - p) ** (k - len(o)) if o <= s else 0.0 for o in outputs])
        for s in map(frozenset, itertools.combinations(range(n), k))
    }
    inside, outside = game(n, k, laws)
    eta = gain(inside, outside, k / n)
    if 2 * k <= n:  # an unpublished record is always likelier to be out: only its name speaks, with probability π·p
        np.testing.assert_allclose(eta, k / n * p, atol=1e-12)
    else:  # "in" is the better guess beforehand, and not to be published must first outweigh it
        assert np.all(eta <= min(k / n * p, 1 - k / n) + 1e-12)
    named = np.array([0 in o for o in outputs])
    assert inside[0][named].sum() == pytest.approx(p)
    assert outside[0][named].sum() == 0  # an event that only members cause: no ε, and δ ≥ p


def corollary_14(eta, moment):
    """Inequality (12) of the proof with e^x ≤ 1 + (e − 1)x, at α = 2/(M + 2), γ = M/(M + 2): a bound of η."""
    c, gamma = (6.16 / eta) ** (1 + 2 / moment), moment / (moment + 2)
    shrink = 2 * c ** (-2 * gamma) + (1 + (math.e - 1) + 4) * c**-gamma
    return shrink / 2 + math.e * c**-gamma + 2 * c**-moment


@pytest.mark.parametrize("moment", [2, 3, 4, 6, 100])
def test_izzo_corollary_14_its_constant_suffices_in_the_proof_and_hardly_less(moment):
    for eta in (1e-4, 0.01, 0.1, 0.5):
        assert corollary_14(eta, moment) <= eta
    assert corollary_14(0.5, 2) * 6.16 / 0.5 == pytest.approx(6.1597, abs=5e-5)  # the paper's number


@pytest.mark.parametrize("prior", [0.2, 0.5, 0.7])
def test_mip_eta_of_a_run_is_that_of_replacing_a_record(prior):
    """Izzo's game keeps the size. A clipped sum that loses +1 and gains −1 moves by 2: the curve is attained."""
    run = dn.tradeoff(dn.GaussianDP(0.507))
    attained = GaussianTradeoff(2 * 0.507).advantage(prior) / 2
    assert bounds.mip_eta(run, prior=prior) == pytest.approx(attained, rel=1e-12)
    assert bounds.mip_eta(run, prior=prior, game="independent") == run.advantage(prior) / 2
    assert bounds.mip_eta(run, prior=0.5) == pytest.approx(0.194, abs=5e-4)  # not 0.100

    steps = dn.SubsampledGaussian(1.0, 0.05, 40)
    twice = bounds.mip_eta(dn.tradeoff(steps), prior=prior)  # of a curve alone, a removal followed by an addition
    replacing = bounds.mip_eta(dn.tradeoff(steps, adjacency="replace"), prior=prior)
    assert bounds.mip_eta(dn.tradeoff(steps), prior=prior, game="independent") < replacing <= twice
    assert bounds.mip_eta(dn.tradeoff(steps), prior=prior, game="independent") <= twice
    with pytest.raises(dn.InputError, match="replacing a record"):
        bounds.mip_eta(dn.tradeoff(steps, adjacency="replace"), game="independent")
    alone = dn.accounting.individual_tradeoffs(np.full((1, 40), 0.5), 1.0, steps)[0]
    with pytest.raises(dn.InputError, match="every content"):
        bounds.mip_eta(alone)


# --- Mahloujifar et al. --------------------------------------------------------------------------------------------

CURVES = {
    "gaussian": (lambda: dn.tradeoff(dn.GaussianDP(1.3))),
    "run": (lambda: dn.tradeoff(dn.SubsampledGaussian(1.0, 0.05, 100))),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("fpr", [1e-4, 0.01, 0.3])
def test_mahloujifar_corollary_11_equals_the_curve(name, fpr):
    """The least of its bound over a is ``tpr`` to 1e-7; every a gives a bound (Propositions 9 and 10)."""
    t = CURVES[name]()

    def bound(log_a):
        a = math.exp(log_a)
        return bounds.tpr_from_scaled_variation(bounds.scaled_total_variation(t, a), scale=a, fpr=fpr)

    exact = t.tpr(fpr)
    assert all(bound(x) >= exact - 1e-12 for x in np.linspace(-8, 3, 12))
    best = minimize_scalar(bound, bounds=(-8, 3), method="bounded", options={"xatol": 1e-9})
    assert best.fun == pytest.approx(exact, abs=1e-7)


def test_mahloujifar_propositions_9_and_10_by_enumeration():
    rng = np.random.default_rng(4)
    for _ in range(50):
        x, y, a = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6)), rng.uniform(0.2, 3)
        accused = y > x / a
        variation = np.abs(x - a * y).sum() / 2
        assert y[accused].sum() == pytest.approx((2 * variation + 2 * x[accused].sum() + a - 1) / (2 * a))  # Prop. 10
        found = bounds.tpr_from_scaled_variation(variation, scale=a, fpr=min(x[accused].sum(), 1))
        assert found == pytest.approx(y[accused].sum(), abs=1e-12)
        for size in range(7):
            for test in map(list, itertools.combinations(range(6), size)):
                if x[test].sum() <= x[accused].sum():
                    assert y[test].sum() <= y[accused].sum() + 1e-12  # Proposition 9
                assert (
                    y[test].sum()
                    <= bounds.tpr_from_scaled_variation(variation, scale=a, fpr=min(x[test].sum(), 1)) + 1e-12
                )


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("a", [0.2, 1.0, 3.0])
def test_mahloujifar_lemma_5_scaled_variation_grows_with_the_distance(law, a):
    """For Gaussians, as stated; for Laplace noise too, which is what the paper's extension of Theorem 6 asks for."""
    density = {"gaussian": norm.pdf, "laplace": laplace.pdf}[law]
    distances = np.linspace(0.05, 4, 12)

    def variation(r):
        return quad(lambda x: abs(density(x) - a * density(x - r)), -40, 44, points=[0, r, r / 2], limit=800)[0] / 2

    found = np.array([variation(r) for r in distances])
    assert np.all(np.diff(found) >= -1e-9)
    assert found[-1] > found[0] + 0.1
    if law == "laplace":
        ours = [bounds.scaled_total_variation(dn.tradeoff(dn.Laplace(1.0, sensitivity=r)), a) for r in distances]
        np.testing.assert_allclose(ours, found, atol=1e-7)
    if law == "gaussian":
        ours = [bounds.scaled_total_variation(GaussianTradeoff(r), a) for r in distances]
        np.testing.assert_allclose(ours, found, atol=1e-8)
        # in the plane only the distance counts: a grid over the whole plane for two directions of the same length
        x = np.linspace(-9, 9, 361)
        for shift in ((2.0, 0.0), (1.2, 1.6)):
            plain, moved = (np.outer(norm.pdf(x - u), norm.pdf(x - v)) for u, v in ((0.0, 0.0), shift))
            total = np.abs(plain - a * moved).sum() * (x[1] - x[0]) ** 2 / 2
            assert total == pytest.approx(bounds.scaled_total_variation(GaussianTradeoff(2.0), a), abs=2e-3)


@pytest.mark.parametrize("scale", [1.7, 1.0, 0.95, 0.9, 0.5, 0.05])
def test_mahloujifar_lemma_7_and_erratum_e18_at_negative_scales(scale):
    """Subsampling is q·TV at (a + q − 1)/q, negative for a < 1 − q, where Definition 4 is not defined."""
    rate, mu = 0.1, 1.5
    sampled = dn.tradeoff(dn.SubsampledGaussian(1 / mu, rate, 1))
    inner = (scale + rate - 1) / rate
    # H0 = the world with the record: X' = (1 − q)·Y + q·X against Y
    outer = bounds.scaled_total_variation(sampled, scale, "remove")
    found = bounds.subsampled_variation(bounds.scaled_total_variation(GaussianTradeoff(mu), inner, "remove"), rate=rate)
    assert found == pytest.approx(outer, abs=1e-9)
    direct = quad(lambda x: abs(norm.pdf(x - mu) - inner * norm.pdf(x)), -20, 22, points=[0, mu], limit=400)[0] / 2
    assert bounds.scaled_total_variation(GaussianTradeoff(mu), inner, "remove") == pytest.approx(direct, abs=1e-8)
    if scale < 1 - rate:  # E18: clipping the scale into Definition 4's range, or the formula of the hockey stick, fails
        assert inner < 0
        clipped = bounds.subsampled_variation(bounds.scaled_total_variation(GaussianTradeoff(mu), 0.0), rate=rate)
        assert clipped < outer - 1e-3


def random_learner(rng, points, size, transcripts=5, finals=3):
    """A random learning algorithm on multisets of ``size`` points: law of the transcript; the final model is a part."""
    final = rng.integers(finals, size=transcripts)
    laws = {s: rng.dirichlet(0.5 * np.ones(transcripts)) for s in itertools.combinations_with_replacement(points, size)}
    return laws, np.eye(finals)[final]


def yeom(laws, view, weights, size):
    """Advantage in YIG or YFM: a record of the training set, or a fresh one, exactly."""
    points = range(len(weights))
    joint = np.zeros((2, len(weights), view.shape[1]))
    for data in itertools.product(points, repeat=size):
        chance, law = math.prod(weights[z] for z in data), laws[tuple(sorted(data))] @ view
        for z in data:
            joint[1, z] += chance / size * law
        for z in points:
            joint[0, z] += chance * weights[z] * law
    return np.abs(joint[1] - joint[0]).sum() / 2


def chosen(laws, view, size, points):
    """Advantage in OIG or OFM of appendix H: the attacker picks the data and the pair that replace each other."""
    return max(
        np.abs(laws[tuple(sorted((*rest, a)))] @ view - laws[tuple(sorted((*rest, b)))] @ view).sum() / 2
        for rest in itertools.combinations_with_replacement(points, size - 1)
        for a, b in itertools.combinations(points, 2)
    )


def test_mahloujifar_propositions_15_and_16_and_corollary_17_by_enumeration():
    rng, tightest = np.random.default_rng(6), np.inf
    for _ in range(40):
        weights, size = rng.dirichlet(np.ones(3)), 3
        laws, final = random_learner(rng, range(3), size)
        everything = np.eye(final.shape[0])
        oig, ofm = (chosen(laws, view, size, range(3)) for view in (everything, final))
        yig, yfm = (yeom(laws, view, weights, size) for view in (everything, final))
        assert ofm <= oig + 1e-12  # Proposition 15
        assert yfm <= yig + 1e-12
        assert yig <= oig + 1e-12  # Proposition 16
        assert max(yig, yfm, ofm) <= oig + 1e-12  # Corollary 17
        tightest = min(tightest, oig - ofm)
    assert tightest < 0.05


# --- Izzo et al.: the lemmas, and the game of equation 1 --------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 3), (6, 3), (6, 5)])
def test_izzo_lemma_12_every_set_without_the_record_has_a_partner_with_it(n, k):
    """For k ≥ n/2 there is an injection that swaps one element for x*; for k = n/2 a bijection; for less none."""

    def matched(size):
        inside = [s for s in map(frozenset, itertools.combinations(range(n), size)) if 0 in s]
        outside = [s for s in map(frozenset, itertools.combinations(range(n), size)) if 0 not in s]
        edges = csr_array([[int(len(s & t) == size - 1) for t in inside] for s in outside])
        assert set(edges.sum(axis=1)) == {size}  # (k, n − k)-biregular
        assert set(edges.sum(axis=0)) == {n - size}
        return np.all(maximum_bipartite_matching(edges, perm_type="column") >= 0), len(outside), len(inside)

    covers, without, with_it = matched(k)
    assert covers
    assert without == with_it * (n - k) / k
    if n - k < k:
        assert not matched(n - k)[0]  # negative control: below n/2 the sets without the record are too many


def test_izzo_lemma_13_the_generalised_chebyshev_inequality():
    """P(‖X − EX‖ > tσ) ≤ t^{−k} for σ^k ≥ E‖X − EX‖^k: in every norm, and attained by a two-point law."""
    x = np.random.default_rng(13).standard_t(7, size=(20_000, 4))
    for order in (1, 2, np.inf):
        size = np.linalg.norm(x - x.mean(axis=0), order, axis=1)
        for k in (2, 4, 6):
            sigma = np.mean(size**k) ** (1 / k)
            for t in (1.5, 3.0):
                assert np.mean(size > t * sigma) <= t**-k
    p, k = 0.04, 2.0  # ‖X‖ is 1 with probability p and 0 otherwise
    assert p == pytest.approx((1 / p ** (1 / k)) ** -k)


def test_izzo_equation_1_and_the_blood_pressure_example():
    """A model that is any use names its population; whether a person of that population trained is another question."""
    rng, d, train, runs = np.random.default_rng(14), 3, 400, 300
    theta = {0: np.array([1.0, 0.0, 0.0]), 1: np.array([0.0, 1.0, 0.5])}  # without and with the disease

    def people(count, y):
        x = rng.standard_normal((count, d))
        return x, x @ theta[y] + 0.3 * rng.standard_normal(count)

    residuals = {"member": [], "same population": [], "others": []}
    for _ in range(runs):
        x, z = people(train, 1)
        fitted = np.linalg.lstsq(x, z, rcond=None)[0]
        asked = {"member": (x[:20], z[:20]), "same population": people(20, 1), "others": people(20, 0)}
        for name, (u, v) in asked.items():
            residuals[name].extend(np.abs(v - u @ fitted))
    scores = {name: -np.array(values) for name, values in residuals.items()}

    def advantage(nonmember):
        both = np.concatenate([scores["member"], scores[nonmember]])
        tried = np.quantile(both, np.linspace(0, 1, 101))
        return max(np.mean(scores["member"] > t) - np.mean(scores[nonmember] > t) for t in tried)

    assert advantage("others") > 0.4  # no noise that leaves the model useful prevents it
    assert advantage("same population") < 0.05  # equation 1: bounded by the curve for replacing a record, below


def test_izzo_equation_1_is_bounded_by_the_curve_for_replacing_a_record():
    """A member of the training set against a fresh draw: Yeom's game, at most what replacing a record can tell."""
    rng = np.random.default_rng(15)
    for _ in range(20):
        weights, size = rng.dirichlet(np.ones(3)), 3
        laws, _ = random_learner(rng, range(3), size)
        everything = np.eye(5)
        assert yeom(laws, everything, weights, size) <= chosen(laws, everything, size, range(3)) + 1e-12


def test_izzo_renyi_and_concentrated_guarantees_bound_eta():
    """§3.4 and §6: every zCDP or Rényi guarantee has a curve and so an η; a Gaussian mechanism keeps it."""
    mu, orders = 0.5, np.array([1.01, 1.5, 2, 4, 8, 16, 64])
    exact = GaussianTradeoff(mu).advantage() / 2
    for guarantee in (dn.ZeroConcentratedDP(mu**2 / 2), dn.RenyiDP(orders, orders * mu**2 / 2)):
        found = bounds.mip_eta(dn.tradeoff(guarantee), game="independent")
        assert exact <= found <= 2 * exact + 0.01
    assert found <= bounds.mip_eta(dn.tradeoff(guarantee)) <= 0.5  # one removal and one addition
    pure = dn.tradeoff(dn.RenyiDP([np.inf], [mu]))
    assert bounds.mip_eta(pure, game="independent") == pytest.approx(bounds.mip_from_dp(mu), rel=1e-6)
