"""Gradient canaries: what the attack sees of each is the subsampled Gaussian that the accountant bounds."""

import numpy as np
import pytest
from known_laws import attack_transcript, ratio_advantage

import deniable as dn
from deniable.integrations.gradient_canaries import GradientCanaries


class Tensor(np.ndarray):
    """As much of a torch tensor as is used."""

    def contiguous(self):
        return np.ascontiguousarray(self).view(Tensor)

    def detach(self):
        return self

    def float(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return np.asarray(self)


class Parameter:
    def __init__(self, shape):
        self.shape, self.summed_grad, self.grad = shape, None, None


class DPOptimizer:
    """The order of Opacus's ``DPOptimizer.pre_step``: sums of clipped gradients, noise, scale."""

    def __init__(self, shapes, noise, clip, rng, share=1.0):
        self.params = [Parameter(shape) for shape in shapes]
        self.noise_multiplier, self.max_grad_norm, self._rng, self._share = noise, clip, rng, share

    def add_noise(self):
        for p in self.params:
            spread = self._share * self.noise_multiplier * self.max_grad_norm
            p.grad = (p.summed_grad + spread * self._rng.normal(size=p.shape)).view(Tensor)

    def step(self):
        for p in self.params:
            p.summed_grad = np.asfortranarray(self._rng.normal(size=p.shape)).view(Tensor)
        self.add_noise()
        for p in self.params:
            p.grad = p.grad / 7


def run(k=400, noise=1.0, rate=0.5, steps=4, clip=2.0, share=1.0, seed=0):
    rng = np.random.default_rng(seed)
    optimizer = DPOptimizer([(10, 30), (30,), (5, 5, 10)], noise, clip, rng, share)
    canaries = GradientCanaries(optimizer, k, rate, rng=seed + 1)
    for _ in range(steps):
        optimizer.step()
    return canaries


def test_scores_are_those_of_the_transcript_attack():
    """The law of the scores in both worlds is that of the simulated mechanism."""
    from scipy.stats import ks_2samp

    canaries = run(k=580)
    assert canaries.steps == 4
    assert canaries.mechanism() == dn.SubsampledGaussian(1.0, 0.5, 4)
    known = attack_transcript(canaries.mechanism(), n=4000, rng=5)
    assert ks_2samp(canaries.scores[canaries.included], known.member_scores).pvalue > 1e-3
    assert ks_2samp(canaries.scores[~canaries.included], known.nonmember_scores).pvalue > 1e-3
    assert ks_2samp(canaries.scores[canaries.included], known.nonmember_scores).pvalue < 1e-3


def test_a_true_promise_stands_and_a_broken_one_falls():
    honest = [run(seed=s, k=300) for s in range(40)]
    curve = dn.tradeoff(honest[0].mechanism())
    assert sum(c.audit().compare(curve).violated for c in honest) <= 7  # at most 5 % each
    cheat = run(share=0.25, k=550, noise=2.0, rate=1.0, steps=1)
    assert cheat.audit().compare(cheat.mechanism()).violated


def test_much_of_what_is_provable_is_shown():
    canaries = run(k=580, noise=2.0, rate=1.0, steps=10)
    proven = np.sqrt(10) / 2
    assert 0.5 * proven < canaries.audit().mu().low < proven  # one run, nothing assumed
    measured, error = ratio_advantage(canaries.attack())
    bound = dn.tradeoff(canaries.mechanism()).advantage()
    assert abs(measured - bound) < 4 * error < 0.15 * bound  # as good as independent trainings
    assert canaries.attack().audit().mu().low > 0.8 * proven


def test_noise_that_changes_is_followed():
    rng = np.random.default_rng(0)
    optimizer = DPOptimizer([(50,)], 1.0, 1.0, rng)
    canaries = GradientCanaries(optimizer, 50, 0.1, rng=0)
    with pytest.raises(dn.InputError, match="no step"):
        canaries.mechanism()
    optimizer.step()
    optimizer.noise_multiplier = 2.0
    optimizer.step()
    optimizer.step()
    expected = dn.Composition([dn.SubsampledGaussian(1.0, 0.1, 1), dn.SubsampledGaussian(2.0, 0.1, 2)])
    assert canaries.mechanism() == expected


def test_refusals():
    rng = np.random.default_rng(0)
    optimizer = DPOptimizer([(50,)], 1.0, 1.0, rng)
    with pytest.raises(dn.InputError, match="at most the number of trainable parameters, 50"):
        GradientCanaries(optimizer, 51, 0.1)
    with pytest.raises(dn.InputError, match="flat clipping"):
        GradientCanaries(object(), 5, 0.1)
    with pytest.raises(dn.InputError, match="sample_rate"):
        GradientCanaries(optimizer, 5, 0.0)


@pytest.mark.filterwarnings("ignore")
def test_a_real_run():
    pytest.importorskip("opacus")
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    X, y = torch.randn(200, 20), torch.randint(0, 2, (200,))
    net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Tanh(), torch.nn.Linear(30, 2))
    made = dn.make_private(
        net, torch.optim.SGD(net.parameters(), 0.1), DataLoader(TensorDataset(X, y), 50), 5, advantage=0.5
    )
    module, optimizer, loader = made
    canaries = GradientCanaries(optimizer, 600, loader.sample_rate, rng=0)
    for _ in range(5):
        for rows, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(rows), labels).backward()
            optimizer.step()
    assert canaries.mechanism() == dn.from_opacus(optimizer)
    assert canaries.audit().mu().low > 0.3
    curve = dn.tradeoff(canaries.mechanism())
    assert not canaries.audit().compare(curve).violated
    measured, error = ratio_advantage(canaries.attack())
    assert abs(measured - curve.advantage()) < 4 * error
    assert canaries.attack().audit().advantage().low > 0.8 * curve.advantage()
