"""Opacus histories become mechanisms; real accountants are tried where Opacus is installed."""

from collections import OrderedDict

import numpy as np
import pytest

import deniable as dn
from deniable.integrations.opacus import GradientNorms

HISTORY = [(1.0, 0.01, 100), (1.0, 0.01, 50), (0.8, 0.01, 10), (1.0, 0.01, 1)]
MECHANISM = dn.Composition(
    [dn.SubsampledGaussian(1.0, 0.01, 150), dn.SubsampledGaussian(0.8, 0.01, 10), dn.SubsampledGaussian(1.0, 0.01, 1)]
)


class Accountant:
    """The shape of Opacus's ``IAccountant``: a history and a class method that names the accountant."""

    name = "rdp"

    def __init__(self, history):
        self.history = history

    @classmethod
    def mechanism(cls):
        return cls.name

    def state_dict(self):
        return OrderedDict(history=list(self.history), mechanism=self.name)


class Foreign(Accountant):
    name = "laplace"


def test_history():
    assert dn.from_opacus(HISTORY) == MECHANISM
    assert dn.from_opacus(tuple(map(list, HISTORY))) == MECHANISM
    assert dn.from_opacus([(2, 1, 7.0)]) == dn.SubsampledGaussian(2.0, 1.0, 7)


def test_accountant_state_dict_and_checkpoint():
    accountant = Accountant(HISTORY)
    assert dn.from_opacus(accountant) == MECHANISM
    assert dn.from_opacus(accountant.state_dict()) == MECHANISM
    assert (
        dn.from_opacus({"module_state_dict": {}, "privacy_accountant_state_dict": accountant.state_dict()}) == MECHANISM
    )
    for name in ("rdp", "prv", "gdp"):
        assert dn.from_opacus({"history": HISTORY[:1], "mechanism": name}) == dn.SubsampledGaussian(1.0, 0.01, 100)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Foreign(HISTORY), "got the mechanism 'laplace'"),
        (Foreign(HISTORY).state_dict(), "got the mechanism 'laplace'"),
        ({"history": HISTORY, "mechanism": None}, "got the mechanism None"),
        ({"history": HISTORY}, r"got the keys \['history'\]"),
        ({"privacy_accountant_state_dict": {}}, r"got the keys \[\]"),
        ([], "its history is empty"),
        (Accountant([]), "its history is empty"),
        ("history.json", "got str"),
        (None, "got NoneType"),
        ([(1.0, 0.01)], r"history\[0\] must be a triple"),
        ([(1.0, 0.01, 5), 3], r"history\[1\] must be a triple"),
        ([(1.0, 0.01, 5), (0.0, 0.01, 5)], r"history\[1\]: noise_multiplier must be above 0"),
        ([(1.0, 0.01, 2.5)], r"history\[0\]: steps must be a whole number"),
    ],
)
def test_bad_input(source, message):
    with pytest.raises(dn.InputError, match=message) as caught:
        dn.from_opacus(source)
    assert "\n" not in str(caught.value)


def real_run(**options):
    """The engine, module, optimizer and loader of a run of Opacus on the indices, numbers and labels of 40 records."""
    opacus = pytest.importorskip("opacus")
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    data = TensorDataset(torch.arange(40), torch.randn(40, 3), torch.randint(2, (40,)))
    model = torch.nn.Linear(3, 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine = opacus.PrivacyEngine(**options)
    made = {"module": model, "optimizer": optimizer, "data_loader": DataLoader(data, batch_size=10)}
    return engine, *engine.make_private(**made, noise_multiplier=1.3, max_grad_norm=0.7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accountant", ["rdp", "prv", "gdp"])
def test_a_real_training_run_and_its_checkpoint(accountant, tmp_path):
    engine, module, optimizer, loader = real_run(accountant=accountant)
    import torch

    for _ in range(3):
        for _, x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(x), y).backward()
            optimizer.step()
    expected = dn.SubsampledGaussian(1.3, 0.25, 12)
    assert dn.from_opacus(engine) == dn.from_opacus(engine.accountant) == expected
    engine.save_checkpoint(path=tmp_path / "checkpoint.pt", module=module, optimizer=optimizer)
    assert dn.from_opacus(torch.load(tmp_path / "checkpoint.pt", weights_only=False)) == expected


class DPOptimizer:
    """The part of Opacus's optimizer that the recorder touches: two hooks, and when they are called."""

    def __init__(self):
        self.grad_samples, self.step_hook, self.accumulated, self.hooked = [], None, 0, 0

    def attach_step_hook(self, hook):
        self.step_hook = hook

    def clip_and_accumulate(self):
        self.accumulated += 1

    def step(self, *gradients, skip=False):
        torch = pytest.importorskip("torch")
        self.grad_samples = [torch.as_tensor(g, dtype=torch.float64) for g in gradients]
        self.clip_and_accumulate()
        if not skip:
            self.step_hook(self)


def test_gradient_norms_are_recorded():
    optimizer = DPOptimizer()
    optimizer.attach_step_hook(lambda stepping: setattr(stepping, "hooked", stepping.hooked + 1))
    norms = GradientNorms(optimizer, records=4)
    norms.batch([2, 0])
    optimizer.step([[[3.0, 0.0]], [[0.0, 0.6]]], [[4.0], [0.8]])
    norms.batch([1])
    optimizer.step([[[0.0, 0.0]]], [[0.3]], skip=True)  # a virtual step
    norms.batch([3])
    optimizer.step([[[0.0, 0.0]]], [[0.2]])
    optimizer.step(np.empty((0, 1, 2)), np.empty((0, 1)))  # an empty Poisson batch
    assert (optimizer.accumulated, optimizer.hooked, len(norms)) == (4, 3, 3)
    (first, second, third) = norms.steps()
    np.testing.assert_array_equal(first[0], [2, 0])
    np.testing.assert_allclose(first[1], [5.0, 1.0], rtol=2e-5)
    assert np.all(first[1] >= [5.0, 1.0])
    np.testing.assert_array_equal(second[0], [1, 3])
    assert third[0].size == 0
    with pytest.raises(dn.InputError, match="given to batch"):
        optimizer.step([[[1.0, 0.0]]], [[4.0]])
    with pytest.raises(dn.InputError, match="got Accountant"):
        GradientNorms(Accountant([]), 3)


@pytest.mark.filterwarnings("ignore")
def test_gradient_norms_of_a_real_training_run():
    engine, module, optimizer, loader = real_run()
    import torch

    norms = GradientNorms(optimizer, records=40)
    expected = []
    for index, rows, labels in loader:
        optimizer.zero_grad()
        output = module(rows)
        torch.nn.functional.cross_entropy(output, labels).backward()
        residual = torch.softmax(output, 1) - torch.nn.functional.one_hot(labels, 2)  # gradient: residual ⊗ row
        expected.append((residual.norm(dim=1) * rows.norm(dim=1)).detach().double().numpy())
        norms.batch(index)
        optimizer.step()
    assert len(norms) == 4
    for (index, values), truth in zip(norms.steps(), expected, strict=True):
        assert index.size == truth.size
        np.testing.assert_allclose(values, truth, rtol=1e-4)
    curves = dn.accounting.individual_tradeoffs(norms, optimizer.max_grad_norm, dn.from_opacus(engine))
    assert len(curves) == 40


def test_shuffled_batches_have_their_own_curve():
    history = [(2.0, 1 / 50, 100), (2.0, 1 / 50, 50)]
    run = dn.from_opacus(history, sampling="shuffled")
    assert run == dn.ShuffledBatches(2.0, 50, 3)
    # the Poisson curve of the same history is what people report; what is proven of shuffling lies far above it
    assert dn.tradeoff(run).advantage() > 3 * dn.tradeoff(dn.from_opacus(history)).advantage()
    two = dn.from_opacus([(2.0, 0.5, 2), (1.0, 0.5, 2)], sampling="shuffled")
    assert two == dn.ShuffledBatches(2.0, 2, 1) + dn.ShuffledBatches(1.0, 2, 1)

    def loader(kind, **fields):
        return type("DataLoader", (), {"sampler": type(kind, (), fields)()})()

    assert dn.from_opacus(history, sampling="shuffled", loader=loader("RandomSampler", replacement=False)) == run
    for bad in (
        loader("WeightedRandomSampler"),
        loader("SequentialSampler"),
        loader("RandomSampler", replacement=True),
    ):
        with pytest.raises(dn.InputError, match="must shuffle the data once an epoch"):
            dn.from_opacus(history, sampling="shuffled", loader=bad)
    with pytest.raises(dn.InputError, match="say sampling='shuffled'"):
        dn.from_opacus(history, loader=loader("RandomSampler", replacement=False))
    with pytest.raises(dn.InputError, match="a record several times"):
        dn.from_opacus(history, loader=loader("RandomSampler", replacement=True))
    with pytest.raises(dn.InputError, match="steps whole epochs"):
        dn.from_opacus([(2.0, 1 / 50, 70)], sampling="shuffled")
    with pytest.raises(dn.InputError, match="1/\\(batches an epoch\\)"):
        dn.from_opacus([(2.0, 0.3, 10)], sampling="shuffled")
    with pytest.raises(dn.InputError, match="sampling must be one of"):
        dn.from_opacus(history, sampling="weighted")
