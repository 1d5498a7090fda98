"""An Opacus run is followed: the bounds are the library's, and the assessment at the end is that of the run."""

import json
from importlib import resources
from types import SimpleNamespace

import pytest

import deniable as dn


class Accountant:
    """The shape of Opacus's ``IAccountant``."""

    def __init__(self, noise_multiplier=5.0, sample_rate=1.0):
        self.history, self.parameters = [], (noise_multiplier, sample_rate)

    @staticmethod
    def mechanism():
        return "prv"

    def step(self):
        self.history = [(*self.parameters, 1 + (self.history[0][2] if self.history else 0))]


def trained(follow, accountant, steps):
    for _ in range(steps):
        accountant.step()
        follow("a trainer", loss=0.1)  # whatever a framework hands to its hooks


@pytest.fixture
def accountant():
    return Accountant()


def test_every_point_is_the_bound_of_the_steps_so_far(accountant):
    follow = dn.workflows.OpacusCallback(SimpleNamespace(accountant=accountant), every=3, fpr=0.1)
    trained(follow, accountant, 8)
    assert [point.steps for point in follow.progress] == [1, 4, 7]
    for point in follow.progress:
        t = dn.tradeoff(dn.SubsampledGaussian(5.0, 1.0, point.steps))
        assert (point.advantage, point.tpr) == (t.advantage(), t.tpr(0.1))
    assert follow() is follow.progress[-1]  # only one step has passed since


def test_the_steps_left_meet_the_limit_and_one_more_does_not(accountant):
    follow = dn.workflows.OpacusCallback(accountant)
    trained(follow, accountant, 3)
    left = follow.steps_left(advantage=0.3)
    accountant.history.append((6.0, 0.5, 2))
    other = follow.steps_left(advantage=0.3)

    def reached(*more):
        return dn.tradeoff(dn.from_opacus([*accountant.history, *more])).advantage()

    assert reached((6.0, 0.5, other)) <= 0.3 < reached((6.0, 0.5, other + 1))
    accountant.history.pop()
    assert reached((5.0, 1.0, left)) <= 0.3 < reached((5.0, 1.0, left + 1))
    trained(follow, accountant, left - 1)
    assert (follow.steps_left(advantage=0.3), follow().advantage <= 0.3) == (1, True)
    trained(follow, accountant, 5)
    assert follow.steps_left(advantage=0.3) == 0
    assert follow.steps_left(limit=dn.Limit(tpr=0.5, fpr=0.01)) > 0
    with pytest.raises(dn.InputError, match="give advantage"):
        follow.steps_left()


def test_the_assessment_at_the_end_covers_every_step(accountant):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is in the dev extra")
    follow = dn.workflows.OpacusCallback(accountant, every=100)
    trained(follow, accountant, 8)
    made = follow.assessment(prior=0.1)
    run = dn.assess(dn.SubsampledGaussian(5.0, 1.0, 8), prior=0.1)
    assert made.sections[:-1] == run.sections
    assert made.numbers["progress.steps"].value == 8
    assert made.section("progress").series[0].x == [1.0, 8.0]
    jsonschema.validate(
        json.loads(made.to_json()), json.loads(resources.files("deniable.report").joinpath("schema.json").read_text())
    )
    assert "How the bound grew" in made.to_html()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("poisson", [True, False])
def test_a_real_training_run(poisson):
    opacus = pytest.importorskip("opacus")
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    data = DataLoader(TensorDataset(torch.randn(40, 3), torch.randint(2, (40,))), batch_size=10)
    engine = opacus.PrivacyEngine()
    module, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=data,
        noise_multiplier=1.3,
        max_grad_norm=1.0,
        poisson_sampling=poisson,
    )
    if not poisson:
        with pytest.raises(dn.InputError, match="shuffled batches"):
            dn.workflows.OpacusCallback(engine, loader=loader)
        return
    follow = dn.workflows.OpacusCallback(engine, every=4, loader=loader)
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(x), y).backward()
            optimizer.step()
            follow()
    made = follow.assessment()
    assert [point.steps for point in follow.progress] == [1, 5, 9, 12]
    bound = dn.tradeoff(dn.SubsampledGaussian(1.3, 0.25, 12))
    assert made.numbers["bound.advantage"].value == pytest.approx(bound.advantage(), rel=1e-9)
    assert made.numbers == {**dn.assess(engine).numbers, "progress.steps": made.numbers["progress.steps"]}
