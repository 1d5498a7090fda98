"""Opacus histories become mechanisms; real accountants are tried where Opacus is installed."""

import math
import subprocess
import sys
from collections import OrderedDict

import pytest

import deniable as dn

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


@pytest.mark.parametrize("name", ["rdp", "prv", "gdp"])
def test_all_three_accountants(name):
    assert dn.from_opacus({"history": HISTORY[:1], "mechanism": name}) == dn.SubsampledGaussian(1.0, 0.01, 100)


def test_a_thousand_phases():
    history = [(1.0 + i / 1000, 0.01, 5) for i in range(1000)]
    assert len(dn.from_opacus(history).mechanisms) == 1000


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
        ([(math.nan, 0.01, 5)], r"history\[0\]: noise_multiplier"),
        ([(1.0, 0.0, 5)], r"history\[0\]: sample_rate must be above 0"),
        ([(1.0, 1.01, 5)], r"history\[0\]: sample_rate"),
        ([(1.0, 0.01, -5)], r"history\[0\]: steps must be at least 1"),
        ([(1.0, 0.01, 2.5)], r"history\[0\]: steps must be a whole number"),
    ],
)
def test_bad_input(source, message):
    with pytest.raises(dn.InputError, match=message) as caught:
        dn.from_opacus(source)
    assert "\n" not in str(caught.value)


def test_neither_torch_nor_opacus_is_imported():
    code = "import sys, deniable; deniable.from_opacus; assert not {'torch', 'opacus'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["RDPAccountant", "PRVAccountant", "GaussianAccountant"])
def test_real_accountants(kind):
    accountants = pytest.importorskip("opacus.accountants")
    accountant = getattr(accountants, kind)()
    for _ in range(20):
        accountant.step(noise_multiplier=1.1, sample_rate=0.02)
    expected = dn.SubsampledGaussian(1.1, 0.02, 20)
    assert dn.from_opacus(accountant) == dn.from_opacus(accountant.state_dict()) == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accountant", ["rdp", "prv", "gdp"])
def test_a_real_training_run_and_its_checkpoint(accountant, tmp_path):
    opacus = pytest.importorskip("opacus")
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = DataLoader(TensorDataset(torch.randn(40, 3), torch.randint(2, (40,))), batch_size=10)
    engine = opacus.PrivacyEngine(accountant=accountant)
    module, optimizer, data = engine.make_private(
        module=model, optimizer=optimizer, data_loader=data, noise_multiplier=1.3, max_grad_norm=1.0
    )
    for _ in range(3):
        for x, y in data:
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(x), y).backward()
            optimizer.step()
    expected = dn.SubsampledGaussian(1.3, 0.25, 12)
    assert dn.from_opacus(engine) == dn.from_opacus(engine.accountant) == expected
    engine.save_checkpoint(path=tmp_path / "checkpoint.pt", module=module, optimizer=optimizer)
    assert dn.from_opacus(torch.load(tmp_path / "checkpoint.pt", weights_only=False)) == expected
