"""``bound="direct"``: against the exact optimal attack, and against brute-force integration of the same draws."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import deniable as dn
from deniable.noise import GaussianNoise, NormLaplaceNoise
from deniable.releases.integration import IntegralBound, integrals
from deniable.releases.mixture import MixtureEvidence, hoeffding_slack

RNG = np.random.default_rng(5)
NORMAL = RNG.normal(size=14)
OUTLIER = np.append(RNG.normal(size=13), 1e3)
TWINS = np.repeat(RNG.normal(size=7), 2)


SETS = np.array(list(itertools.combinations(range(14), 7)))
MEMBER = np.stack([(record == SETS).any(axis=1) for record in range(14)])


def optimal_gain(outputs, scale):
    """η of the optimal attack on each of 14 records, by a fine sum over equal cells around all 3,432 outputs."""
    values, which = np.unique(np.round(outputs / (scale / 50)) * (scale / 50), return_inverse=True)
    x = np.unique(np.concatenate([np.round(values / (scale / 10)) + k for k in range(-70, 71)])) * (scale / 10)
    kernel = np.exp(-((x[:, None] - values) ** 2) / (2 * scale**2)) / (scale * np.sqrt(2 * np.pi)) * (scale / 10)
    worst = 0.0
    for member in MEMBER:
        p, q = (np.bincount(which[m], minlength=len(values)) / m.sum() for m in (member, ~member))
        worst = max(worst, float(np.abs(kernel @ (p - q)).sum()) / 4)
    return worst


@pytest.mark.parametrize("column", [NORMAL, OUTLIER, TWINS], ids=["normal", "outlier", "twins"])
@pytest.mark.parametrize("algorithm", [np.mean, np.median])
def test_direct_is_safe_and_within_its_slack_of_the_optimal_attack(column, algorithm):
    """3,432 training sets: sampled, not enumerated, and the optimal attack is computed from all of them."""
    r = dn.release(algorithm, column, advantage=0.2, bound="direct", n_resamples=2048, rng=0)
    outputs = algorithm(column[SETS], axis=1)
    best = optimal_gain(outputs, float(r.noise_scale))
    slack = hoeffding_slack(0.01, r.certificate.n_resamples)
    assert r.certificate.kind == "sampled"
    assert 0.1 - 2 * slack <= best <= r.certificate.advantage / 2 <= 0.1
    # negative control: a tenth of the noise breaks the promise
    assert optimal_gain(outputs, float(r.noise_scale) / 10) > 0.1


@pytest.mark.parametrize("fraction", [0.35, 0.5])
def test_the_certified_curve_holds_against_the_likelihood_ratio_attack(fraction):
    column = NORMAL[:13] if fraction < 0.5 else NORMAL
    r = dn.release(np.median, column, advantage=0.3, bound="direct", fraction=fraction, n_resamples=2048, rng=1)
    s, k = float(r.noise_scale), r.certificate.n_train
    sets = np.array(list(itertools.combinations(range(len(column)), k)))
    outputs = np.median(column[sets], axis=1)
    x = np.linspace(outputs.min() - 8 * s, outputs.max() + 8 * s, 8_001)
    values, counts_of = np.unique(outputs, return_inverse=True)
    kernel = np.exp(-((x[:, None] - values) ** 2) / (2 * s**2)) / (s * np.sqrt(2 * np.pi)) * (x[1] - x[0])
    for record in range(len(column)):
        member = (sets == record).any(axis=1)
        p, q = (kernel @ (np.bincount(counts_of[m], minlength=len(values)) / m.sum()) for m in (member, ~member))
        for world_in, world_out in ((p, q), (q, p)):
            order = np.argsort(-world_in / np.maximum(world_out, 1e-300))
            fpr, tpr = np.cumsum(world_out[order]), np.cumsum(world_in[order])
            chosen = np.searchsorted(fpr, [1e-4, 1e-3, 0.01, 0.1, 0.5])
            assert np.all(tpr[chosen] <= r.certificate.tradeoff.tpr(fpr[chosen].clip(0, 1)) + 1e-6)


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("algorithm", [lambda part: np.sort(part)[-2], lambda part: float((part > 25).any())])
def test_the_certified_curve_holds_where_most_records_are_in_or_out(algorithm, fraction):
    """The gain at uneven odds bounds one direction: .80 of the members were found where .25 was certified."""
    column, rng = np.append(np.random.default_rng(0).normal(size=98), [50.0, 60.0]), np.random.default_rng(1)
    r = dn.release(algorithm, column, advantage=0.1, bound="direct", fraction=fraction, rng=0)
    parts = [rng.permutation(100)[: r.certificate.n_train] for _ in range(3000)]
    seen = np.array([algorithm(column[part]) for part in parts]) + rng.normal(0, float(r.noise_scale), len(parts))
    member = np.array([98 in part for part in parts])
    for side in (seen, -seen):
        for cut in np.quantile(side, np.linspace(0.02, 0.98, 25)):
            hit, wrong = (side[member] > cut), (side[~member] > cut)
            allowed = r.certificate.tradeoff.tpr(min(1.0, wrong.mean() + 4 * (0.25 / len(wrong)) ** 0.5))
            assert hit.mean() <= allowed + 4 * (0.25 / len(hit)) ** 0.5


@pytest.mark.parametrize(
    "law", [GaussianNoise(0.3, np.ones(1)), NormLaplaceNoise(0.3, np.ones(1))], ids=["gauss", "laplace"]
)
def test_lattice_integrals_are_above_a_fine_sum_and_close(law):
    outputs = np.append(RNG.normal(size=63), 40.0)[:, None]  # the last one is a run of its own
    inside = RNG.random((5, 64)) < 0.4
    forms = [IntegralBound(1.0, 1.0), IntegralBound(0.7, 2.0, True), IntegralBound(1.5, 0.4, True, True)]
    got = integrals(
        outputs, np.packbits(inside, axis=1), np.arange(5), law, forms, np.ones((5, 2)), rng=RNG, failure=0.01
    )
    x = np.concatenate([np.linspace(-12, 12, 48_001), np.linspace(28, 52, 48_001)])
    density = np.exp(law.log_density(x[:, None, None] - outputs[None])) / 64 * (x[1] - x[0])
    for i in range(5):
        p, q = density[:, inside[i]].sum(axis=1), density[:, ~inside[i]].sum(axis=1)
        truth = np.array([form.integrand(p[None], q[None], np.ones((1, 2))).sum() for form in forms])
        assert np.all(truth <= got[i])
        assert np.all(got[i] <= truth + 4e-3)


def test_monte_carlo_integrals_are_above_a_fine_sum_and_close():
    law = GaussianNoise(0.5, np.ones(2))
    outputs = RNG.normal(size=(48, 2))
    inside = RNG.random((3, 48)) < 0.5
    forms = [IntegralBound(1.0, 1.0), IntegralBound(0.7, 2.0, True)]
    got = integrals(
        outputs, np.packbits(inside, axis=1), np.arange(3), law, forms, np.ones((3, 2)), rng=RNG, failure=1e-4
    )
    axis = np.linspace(-7, 7, 281)
    x = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 1, 2)
    density = np.exp(law.log_density(x - outputs)) / 48 * (axis[1] - axis[0]) ** 2
    for i in range(3):
        p, q = density[:, inside[i]].sum(axis=1), density[:, ~inside[i]].sum(axis=1)
        truth = np.array([form.integrand(p[None], q[None], np.ones((1, 2))).sum() for form in forms])
        assert np.all(truth <= got[i])
        assert np.all(got[i] <= truth + 0.03)


@pytest.mark.parametrize("d", [2, 7])
def test_several_outputs_are_certified_together(d):
    """Quantiles and spreads of a half with an outlier depend on one another; the optimal attacker sees all of them."""

    def several(part):
        return np.array([part.mean(), part.std(), *np.quantile(part, [0.0, 0.25, 0.5, 0.75, 1.0])])[:d]

    column = np.append(NORMAL[:13], 4.0)
    r = dn.release(several, column, advantage=0.5, bound="direct", n_resamples=512, rng=0)
    outputs = np.array([several(column[one]) for one in SETS]) / r.noise_scale

    def gain(scale):
        rng = np.random.default_rng(4)
        x = outputs[rng.integers(len(SETS), size=2000)] + scale * rng.normal(size=(2000, d))
        density = np.exp(-(cdist(x, outputs) ** 2) / 2 / scale**2)
        return max(np.mean(np.abs(density @ (2.0 * m - 1)) / density.sum(axis=1)) / 2 for m in MEMBER)

    assert gain(1.0) <= 0.25
    assert gain(0.1) > 0.3  # negative control: a tenth of the noise
    assert r.certificate.kind == "sampled"
    assert np.mean(r.noise_scale / r.sampling_error) < 5


def test_where_the_half_hides_everybody_there_is_still_noise_against_proofs():
    """η alone would be kept by next to none, and then nothing would be certified at small false positive rates."""
    data = np.random.default_rng(0).normal(size=400)
    r = dn.release(np.mean, data, advantage=0.6, bound="direct", n_resamples=2048, rng=0)
    assert r.noise_scale == pytest.approx(0.03 * r.sampling_error, rel=0.2)
    assert r.certificate.tradeoff.tpr(1e-3) < 0.2 < r.certificate.advantage


def test_outputs_that_are_infinitely_far_apart_tell_everything():
    bits = np.packbits(RNG.random((4, 32)) < 0.5, axis=1)
    evidence = MixtureEvidence(np.append(np.zeros(31), 1e200)[:, None], bits, 0.5, 0.01, 1.0, 0.1)
    law = GaussianNoise(1.0, np.ones(1))
    assert evidence.gain(law, np.arange(4)).min() >= 0.5
    assert evidence.curve(law, np.array([0.0, 1.0])).min() == 1


def test_a_rough_integration_is_answered_with_more_noise(monkeypatch):
    """Final checks that need twice the noise of the search (columns 0.99 correlated, for instance) are met."""
    law = GaussianNoise(1.0, np.ones(2))
    evidence = MixtureEvidence(np.zeros((4096, 2)), np.zeros((4, 512), dtype=np.uint8), 0.5, 0.01, 1.0, 0.1)

    def gain(self, law, records, attempt=0, failure=None):
        return np.full(len(records), 0.0 if law.scale >= (2.0 if attempt else 1.0) else 0.5)

    monkeypatch.setattr(MixtureEvidence, "gain", gain)
    assert 2 <= evidence.least_scale(law, 0.2, 0.0) < 4
