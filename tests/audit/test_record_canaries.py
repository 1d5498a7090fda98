"""Record canaries: what an Opacus run does wrong shows while it trains, and an honest run stands."""

import numpy as np
import pytest

import deniable as dn

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch and Opacus warn about their own future

from opacus import PrivacyEngine  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

BATCHES, EPOCHS = 5, 4
RATE, NOISE = 1 / BATCHES, 0.8
GHOST = {"grad_sample_mode": "ghost", "criterion": torch.nn.CrossEntropyLoss()}


def data(n=1200):
    return TensorDataset(torch.randn(n, 4), torch.randint(0, 2, (n,)))


def audited(k=1000, private=True, seed=0, **options):
    """Canaries, and what trains with them: module, optimizer, loss, loader."""
    torch.manual_seed(seed)
    canaries = dn.audit.RecordCanaries(data(), k)
    net = canaries.model(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)))
    loader = DataLoader(canaries.dataset, batch_size=-(-len(canaries.dataset) // BATCHES))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if private:
        made = dn.make_private(net, optimizer, loader, EPOCHS, advantage=0.5, **options)
    else:
        made = PrivacyEngine().make_private(
            module=net, optimizer=optimizer, data_loader=loader, noise_multiplier=NOISE, max_grad_norm=1.0, **options
        )
    canaries.watch(made[1], sample_rate=None if private else RATE)
    return canaries, made[0], made[1], made[2] if options else cross_entropy, made[-1]


def train(canaries, module, optimizer, loss, loader, skip=1):
    """Train to the end of the plan, or until the canaries find something; ``skip`` steps are made into one."""
    while canaries.steps < BATCHES * EPOCHS:
        for k, (x, y) in enumerate(loader):
            if skip > 1:
                optimizer.signal_skip_step((k + 1) % skip != 0)
            optimizer.zero_grad()
            loss(module(x), y).backward()
            optimizer.step()
            if canaries.audit.violated or canaries.steps == BATCHES * EPOCHS:
                return canaries
    return canaries


def in_parts(canaries, module, optimizer, loss, loader):
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=50, optimizer=optimizer) as pieces:
        return train(canaries, module, optimizer, loss, pieces)


def test_honest_runs_stand_and_show_most_of_what_is_provable():
    for honest in (train(*audited()), train(*audited(**GHOST)), in_parts(*audited())):
        assert honest.steps == BATCHES * EPOCHS
        assert not honest.verdict().violated  # each with probability 0.99
        measured = honest.attack().audit(0.999).advantage()
        assert 0.3 < measured.low < 0.5 < measured.high


def not_clipped(canaries, module, optimizer, loss, loader):
    def clip_and_accumulate():
        for p in optimizer.params:
            p.summed_grad = optimizer._get_flat_grad_sample(p).sum(0)

    optimizer.clip_and_accumulate = clip_and_accumulate
    return train(canaries, module, optimizer, loss, loader)


def less_noise(canaries, module, optimizer, loss, loader):
    optimizer.noise_multiplier /= 2
    return train(canaries, module, optimizer, loss, loader)


def larger_batches(canaries, module, optimizer, loss, loader):
    return train(canaries, module, optimizer, loss, DataLoader(canaries.dataset, 5 * loader.batch_sampler.num_samples))


MISUSED = {
    "clipping off": lambda: not_clipped(*audited(private=False)),
    "ghost, own loss": lambda: train(*(given := audited(private=False, **GHOST))[:3], cross_entropy, given[-1]),
    "batches of five times the size": lambda: larger_batches(*audited(private=False)),
    "five batches in a step": lambda: train(*audited(private=False), skip=5),
    "half the noise": lambda: less_noise(*audited(private=False)),
}


def test_what_a_run_does_wrong_is_found_within_its_first_steps():
    found = {name: run().verdict() for name, run in MISUSED.items()}
    assert {name: str(verdict) for name, verdict in found.items() if not verdict.violated} == {}


def test_steps_that_were_not_counted_show_in_all_steps_together():
    canaries = train(*audited(private=False))
    few = dn.SubsampledGaussian(NOISE, RATE, 4)
    assert canaries.attack().audit().compare(few).violated
    assert not canaries.verdict().violated


def test_the_model_is_that_of_the_run_and_a_canary_is_a_record():
    records = data(50)
    canaries = dn.audit.RecordCanaries(records, 20, rng=1)
    assert len(canaries.dataset) == 50 - int((~canaries.included).sum())
    net = torch.nn.Linear(4, 2)
    model = canaries.model(net)
    kept = torch.stack([canaries.dataset[i][0] for i in range(len(canaries.dataset))])
    assert set(kept[:, -1].int().tolist()) == {0, *(np.flatnonzero(canaries.included) + 1)}
    assert {tuple(x) for x in kept[:, :-1].tolist()} < {tuple(x) for x in records.tensors[0].tolist()}
    torch.nn.init.ones_(model.canaries.weight)
    assert torch.equal(model(kept), net(kept[:, :-1]))
    assert torch.equal(model.eval()(records.tensors[0]), net(records.tensors[0]))
    own = torch.nn.Embedding(9, 2)
    tokens = dn.audit.RecordCanaries([(torch.arange(3), 0)] * 30, 20)
    assert tokens.model(own)(torch.stack([x for x, _ in tokens.dataset])).shape == (len(tokens.dataset), 3, 2)


def test_canaries_that_had_no_loss_speak_for_no_run():
    """In evaluation mode, or with a loss that is 0, no canary has a gradient: "consistent", whatever the run does."""
    canaries, module, optimizer, loss, loader = audited(k=200, private=False)
    nothing = lambda out, y: 0.0 * loss(out, y)  # noqa: E731
    train(canaries, module, optimizer, nothing, loader)
    for asked in (canaries.verdict, canaries.attack):
        with pytest.raises(dn.InputError, match="must be trained on"):
            asked()
    trained = train(*audited(k=200, private=False))
    assert trained.verdict().outcome in ("consistent", "inconclusive")  # negative control
