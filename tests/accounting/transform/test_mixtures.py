"""Transforms of mixtures, atoms and flat laws against sums over as many points as it takes."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom, norm

import deniable as dn
from deniable._floats import EPS
from deniable.accounting.steps.base import TooSlowError
from deniable.accounting.steps.gaussian_mixture import several_records, truncated_poisson
from deniable.accounting.steps.laplace import BoundedRangeStep, LaplaceStep
from deniable.accounting.steps.sampled_gaussian import ReplacedGaussianStep
from deniable.accounting.transform.laws import _gauss, law_of
from deniable.accounting.transform.mixtures import Mixture

CEILING = 10.5


def random_mixtures(count: int, seed: int):
    """Laws of persons with up to 30 records, of replaced records, and of truncated batches; with c, large ones, too."""
    rng = np.random.default_rng(seed)
    while count:
        sigma, rate, kind = 10 ** rng.uniform(-0.4, 1.2), 10 ** rng.uniform(-6, -0.1), count % 3
        if kind == 0:
            step = ReplacedGaussianStep(sigma, rate)
        elif kind == 1:
            step = several_records(dn.SubsampledGaussian(sigma, rate, 1, records_per_person=int(rng.integers(2, 30))))
        else:
            batch = max(1, int(rng.uniform(0.8, 1.6) * 400 * rate))
            step = truncated_poisson(dn.TruncatedPoisson(sigma, rate, 1, batch, 400), float(rng.choice([0.0, 0.98])))
        law = law_of(step)
        assert isinstance(law, Mixture)
        c = float(rng.choice([0.5, rng.uniform(0, 1), 1 + 10 ** rng.uniform(-2, 1.6), -(10 ** rng.uniform(-2, 2))]))
        ceiling = CEILING + law.steepest if rng.uniform() < 0.7 or law.steepest * max(c, 1) > 60 else math.inf
        count -= 1
        yield law, c, ceiling, rng


def dense(law: Mixture, c: float, t: np.ndarray, ceiling: float) -> tuple[float, np.ndarray]:
    """log M(c) and M(c + it)/M(c) of the law cut at a ceiling: steps of 1/400 of a radian, no series, no cells."""
    s = law.steepest
    low, high = -60 - 2 * s * abs(c), 60 + 2 * s * abs(c)
    if math.isfinite(ceiling):
        high = ceiling
        low = -ceiling if law.slopes[1] > 0 else low
    size = int(min(2e5, (high - low) * max(40.0, 10 * s * (1 + t.max() / 6))))
    u = low + (high - low) * (np.arange(size) + 0.5) / size
    logs, losses = [], []
    for case in law.cases:
        parts = []
        for bells, x in ((case.a, u), (case.b, -u)):
            terms = np.multiply.outer(x, bells.slope) - bells.slope**2 / 2 + np.log(bells.weight)
            parts.append(np.logaddexp.reduce(terms, axis=1))
        losses.append(parts[0] - parts[1] + math.log(case.odds))
        logs.append(c * losses[-1] + parts[1] - u * u / 2 + math.log(case.probability))
    log, loss = np.concatenate(logs), np.concatenate(losses)
    top = log.max()
    weight = np.exp(log - top)
    total = weight.sum()
    keep = weight > 1e-20 * weight.max()
    log_m = top + math.log(total * (high - low) / size / math.sqrt(2 * math.pi))
    return log_m, np.array([np.exp(1j * x * loss[keep]) @ weight[keep] for x in t]) / total


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sums_over_few_nodes_are_right_up_to_their_errors(seed):
    seen = 0
    for law, c, ceiling, rng in random_mixtures(40, seed):
        try:
            real = law.terms(c, c, 0.0, ceiling)
            width = math.sqrt(real.moments[1][0])
            t = np.array([0.3, 3.0, 10 ** rng.uniform(0.5, 2.2)]) / max(width, 1e-3)
            terms = law.terms(c, c, float(t.max()), ceiling)
        except TooSlowError:
            continue
        if t.max() * law.steepest > 3000:
            continue
        log_m, turned = dense(law, c, t, ceiling)
        found = np.exp(terms.log_ratio_of(0, t))
        cut = float(terms.cut[0])
        allowed = terms.step_errors(0, np.hypot(c, t)) + 1e-11 + 50 * EPS * t * width + 2 * cut
        if cut < 1e-3:
            assert np.all(np.abs(found - turned) <= allowed), (law, c, t, found - turned)
            for one in (real, terms):
                assert one.log_mgf[0] == pytest.approx(log_m, abs=1e-10 + 4 * cut, rel=1e-11)
            seen += 1
    assert seen > 10


@pytest.mark.parametrize("seed", [4, 5])
def test_no_sample_is_above_the_bound_on_decay_and_no_density_above_its_own(seed):
    seen = 0
    for law, c, ceiling, _ in random_mixtures(40, seed):
        try:
            real = law.terms(c, c, 0.0, ceiling)
            width = math.sqrt(real.moments[1][0])
            t = np.geomspace(0.5, 60.0, 12) / max(width, 1e-3)
            heights = np.geomspace(0.1, 8.0, 6)
            bound, density = law.decay(c, t, heights, float(real.log_mgf[0]), ceiling)
            if t.max() * law.steepest > 3000 or real.cut[0] > 1e-6:
                continue
            sampled = np.abs(dense(law, c, t, ceiling)[1])
        except TooSlowError:
            continue
        ok = sampled <= np.exp(bound) * (1 + 1e-9) + 1e-11
        assert np.all(ok), (law, c, sampled / np.exp(bound))
        seen += int(np.sum((bound < -0.3) & (np.log(sampled) > bound - 2)))
        loss, mass = real.loss[0], real.tilted[0] / real.mgf[0]
        if len(law.cases) == 1:
            gap = np.diff(loss)
            inner = (mass[1:] + mass[:-1]) / 2 / np.maximum(gap, 1e-300)
            assert np.log(inner[gap > 1e-9].max(initial=1e-300)) <= density + 0.7
    assert seen > 10


def test_a_cut_in_the_midst_of_a_law_is_charged_however_large_its_transform():
    """Where M(c) is e^{1000} a summand at the cut left the doubles: sums that lack a third were called exact."""
    law = law_of(several_records(dn.SubsampledGaussian(1.7, 0.3, 1, records_per_person=17)))
    ceiling = CEILING + law.steepest
    terms = law.terms(14.0, 14.0, 0.0, ceiling)
    assert terms.cut[0] > 1e-3
    assert terms.cumulants_at(0, np.array([14.0]))[0, 0] >= dense(law, 14.0, np.array([1.0]), ceiling)[0]


@pytest.mark.parametrize("step", [LaplaceStep(0.7, 1.0), LaplaceStep(2.5, 0.2), BoundedRangeStep(1.3)])
@pytest.mark.parametrize("c", [-7.0, 0.5, 4.0])
def test_flat_laws_by_quadrature(step, c):
    t = np.array([0.4, 7.0, 60.0])
    terms = law_of(step).terms(c, c, 60.0, math.inf)
    eps, rate = step.epsilon, getattr(step, "rate", 1.0)
    x, weight = np.polynomial.legendre.leggauss(400)
    parts, losses = [], []
    for k in range(40):
        y = -eps + 2 * eps * (k + (x + 1) / 2) / 40
        parts.append(np.exp(-(eps + y) / 2) / 4 * weight * eps / 40)
        losses.append(y)
    mass, loss = np.concatenate(parts), np.concatenate(losses)
    if isinstance(step, BoundedRangeStep):
        mass = mass / mass.sum()
    else:
        mass, loss = np.append(mass, [0.5, math.exp(-eps) / 2]), np.append(loss, [-eps, eps])
    loss = np.log1p(rate * np.expm1(loss))
    truth = np.array([np.exp((c + 1j * s) * loss) @ mass for s in (0.0, *t)])
    assert np.exp(terms.log_mgf[0]) == pytest.approx(truth[0].real, rel=1e-12)
    assert np.exp(terms.log_ratio_of(0, t)) == pytest.approx(truth[1:] / truth[0], abs=1e-12)


def test_weights_of_quadrature_are_good_to_the_last_node():
    """Of 2 over (1 − x²)·P′(x)² at the outermost node of a long rule SciPy's lacks half of the digits."""
    for power, n in ((6, 64), (9, 512)):
        x, weight = _gauss(power)
        with mp.workdps(40):
            for k in (0, 1, n // 2 - 1):
                node = mp.findroot(lambda y, n=n: mp.legendre(n, y), mp.mpf(float(x[k])), tol=1e-60)
                before = mp.legendre(n - 1, node)
                truth = 2 * (1 - node**2) / (n * before) ** 2
                assert abs(float(x[k] - node)) < 2 * EPS
                assert abs(float(weight[k] / truth - 1)) < 32 * EPS


def test_outcomes_that_are_left_out_at_the_low_end_are_charged():
    """Chernoff's bound of the other tail, too: both ends of discrete noise and of a replaced record are cut."""
    rare = dn.DiscreteGaussian(3.0, 1)
    curve = dn.tradeoff(dn.SubsampledGaussian(2.0, 1e-3, 5) + rare)
    with mp.workdps(40):
        total = 2 * mp.nsum(lambda x: mp.exp(-(x**2) / 18), [1, 200]) + 1
        for epsilon in (6.0, 8.0):  # as much as the discrete noise gives away alone
            tail = [(mp.exp(-(mp.mpf(x - 1) ** 2) / 18), (2 * x - 1) / mp.mpf(18)) for x in range(1, 200)]
            alone = mp.fsum(p * (1 - mp.exp(epsilon - loss)) for p, loss in tail if loss > epsilon) / total
            for way in ("remove", "add"):
                assert curve.delta(epsilon, way) >= alone
    curve = dn.tradeoff(dn.SubsampledGaussian(0.5, 0.01, 3), adjacency="replace").inverted
    thrice = (0.01 * norm.sf(14.0)) ** 3  # of u > 16 in every step: then the loss is above 60
    for way in ("remove", "add"):
        assert curve.chernoff.hockey_stick(np.array([60.0]), way) >= thrice * 0.5


def test_what_only_one_world_produces_and_kinked_laws_have_no_transform_here():
    for run in (dn.mechanisms.FinitePair((0.5, 0.5, 0.0), (0.5, 0.4, 0.1)),):
        curve = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 100) + run)
        assert curve.inverted is None
        assert curve.advantage() > curve.advantage(side="lower") > 0


def person(sigma, rate, steps, k):
    return dn.SubsampledGaussian(sigma, rate, steps, records_per_person=k)


SHARP = [
    (person(1.0, 0.01, 1000, 3), "add-remove"),
    (person(2.0, 0.004, 3000, 12), "add-remove"),
    (dn.SubsampledGaussian(1.0, 0.01, 1000), "replace"),
    (dn.SubsampledGaussian(0.8, 0.001, 10_000) + dn.GaussianDP(0.2), "replace"),
    (dn.SubsampledGaussian(1.0, 0.01, 1000) + dn.Laplace(2.0, steps=10), "add-remove"),
    (dn.SubsampledGaussian(1.0, 0.01, 1000) + dn.Laplace(2.0, steps=10, sample_rate=0.2), "add-remove"),
    (dn.SubsampledGaussian(1.0, 0.01, 1000) + dn.DiscreteGaussian(5.0, 1, steps=10), "add-remove"),
    (dn.SubsampledGaussian(1.0, 0.01, 1000) + dn.RandomizedResponse(0.5, 4, 5), "add-remove"),
]


@pytest.mark.parametrize(("run", "adjacency"), SHARP)
def test_brackets_are_narrow_and_lie_in_those_of_lattices(run, adjacency):
    curve = dn.tradeoff(run, adjacency=adjacency)
    for ask in (
        lambda side: curve.advantage(side=side),
        lambda side: curve.delta(1.5, side=side),
        lambda side: curve.inverse().tpr(1e-3, side=side),
        lambda side: curve.epsilon(1e-5, side=side),
    ):
        low, high = ask("lower"), ask("upper")
        assert 0 < high - low <= 1e-8 * high + 1e-10
    lattices = curve.lattices.sketch()
    for log_gamma in (0.0, 1.5, -2.0):
        at = np.array([log_gamma])
        for way in ("remove", "add"):
            low, high = curve.inverted.hockey_stick_bracket(at, way)
            assert low <= lattices._hockey_stick(at, way, "upper") * (1 + 1e-12)
            assert high >= lattices._hockey_stick(at, way, "lower") * (1 - 1e-12)


def test_rare_and_steep_terms_are_not_cut_short():
    """Seven records at large tilts: the weight of all of them is 1e-21, and they are all that counts there."""
    rate, sigma, k = 1e-3, 0.5, 7
    law = law_of(several_records(person(sigma, rate, 1, k)))
    weight, slope = binom.pmf(np.arange(k + 1), k, rate), np.arange(k + 1) / sigma
    for c in (2, 3, 5):  # E r^c for whole c, term by term
        places = np.array(np.meshgrid(*[np.arange(k + 1)] * c)).reshape(c, -1)
        total = slope[places].sum(axis=0)
        squares = (slope[places] ** 2).sum(axis=0)
        terms = np.log(weight[places]).sum(axis=0) + (total**2 - squares) / 2
        truth = float(np.logaddexp.reduce(terms))
        assert law.terms(float(c), float(c), 0.0, math.inf).log_mgf[0] == pytest.approx(truth, rel=1e-12)
        assert law.terms(float(c), float(c), 30.0, math.inf).log_mgf[0] == pytest.approx(truth, rel=1e-12)
