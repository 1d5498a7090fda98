"""The DP-SGD example: norms of all records, drawn or not, recorded beside Opacus (needs torch and Opacus)."""

import numpy as np
import pytest

from oracles.scripts import loaded


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("opacus")
    module = loaded("examples/dp_sgd_profile.py")
    module.STEPS = 12
    return module


@pytest.mark.filterwarnings("ignore")
def test_knowing_all_norms_never_hurts_and_mostly_helps(example, monkeypatch, tmp_path):
    monkeypatch.setenv("DENIABLE_DATA", str(tmp_path))  # no Adult there: breast cancer
    name, X, y, _ = example.load(150)
    assert (name, len(X)) == ("breast cancer", 150)
    _, everyone, batches, run = example.train(X, y)
    assert run.steps == len(everyone) == len(batches) == 12
    for (index, norms), (drawn, of_batch) in zip(everyone.steps(), batches.steps(), strict=True):
        np.testing.assert_array_equal(np.sort(index), np.arange(150))
        known = dict(zip(index, norms, strict=True))
        np.testing.assert_array_equal([known[i] for i in drawn], of_batch)  # Opacus's own norms for the batch
    full, part = (example.exposed(found, run) for found in (everyone, batches))
    assert np.all(full <= part + 1e-12)
    assert np.median(full) < 0.9 * np.median(part)


@pytest.mark.filterwarnings("ignore")
def test_norms_of_the_second_pass_are_those_of_autograd(example):
    import torch

    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    X, y = torch.randn(5, 3), torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0])
    found = example.gradient_norms(net, X, y)
    for i in range(5):
        net.zero_grad()
        example.loss(net(X[[i]]), y[[i]]).backward()
        truth = float(torch.sqrt(sum(p.grad.square().sum() for p in net.parameters())))
        assert truth <= found[i] <= truth * (1 + 2e-5)
