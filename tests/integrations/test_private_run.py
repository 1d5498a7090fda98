"""``make_private``: the calibrated noise reaches Opacus, sampling is Poisson, and the run stops at its target."""

from types import SimpleNamespace

import pytest

import deniable as dn
from deniable.integrations.opacus import require_poisson

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch and Opacus warn about their own future

from opacus import PrivacyEngine  # noqa: E402
from torch.utils.data import (  # noqa: E402
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from deniable.integrations.opacus_guard import StepNotCoveredError  # noqa: E402


def parts(batch_size=20, **options):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(100, 4), torch.randint(0, 2, (100,)))
    model = torch.nn.Linear(4, 2)
    options = {"shuffle": True, **options}
    return model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=batch_size, **options)


def train(model, optimizer, loader, epochs):
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def test_the_noise_meets_the_target_and_little_less_does_not():
    _, optimizer, loader = dn.make_private(*parts(), 2, limit=dn.Limit(tpr=0.01, fpr=0.001))
    run = optimizer.private_run
    assert run.steps == 10
    assert run.mechanism == dn.SubsampledGaussian(optimizer.noise_multiplier, 1 / 5, 10)
    assert type(loader).__name__ == "DPDataLoader"

    assert run.limit.is_met(run.tradeoff())
    assert not run.limit.is_met(dn.tradeoff(dn.SubsampledGaussian(run.noise_multiplier * (1 - 1e-6), 0.2, 10)))


def test_a_whole_run_is_recorded_and_then_refuses_to_go_on():
    model, optimizer, loader = dn.make_private(*parts(), 3, advantage=0.2)
    train(model, optimizer, loader, 3)
    run = optimizer.private_run
    assert dn.from_opacus(optimizer) == dn.from_opacus(run.engine, loader=loader) == run.mechanism
    for source in (optimizer, run, run.engine):
        assert dn.assess(source).numbers["bound.advantage"].value <= 0.2
    assert run.spent().advantage() == run.tradeoff().advantage() <= 0.2
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(StepNotCoveredError, match="covers 15 steps"):
        train(model, optimizer, loader, 1)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_less_noise_than_promised_is_refused():
    model, optimizer, loader = dn.make_private(*parts(), 3, advantage=0.2)
    optimizer.noise_multiplier /= 2  # as a noise scheduler would
    with pytest.raises(StepNotCoveredError, match="noise multiplier"):
        train(model, optimizer, loader, 1)


def test_steps_that_the_engine_recorded_before_count():
    engine = PrivacyEngine()
    engine.accountant.history = [(2.0, 0.2, 5)]
    alone = dn.make_private(*parts(), 2, advantage=0.3)[1].private_run
    both = dn.make_private(*parts(), 2, advantage=0.3, engine=engine)[1].private_run
    assert both.noise_multiplier > alone.noise_multiplier
    assert both.tradeoff().advantage() <= 0.3


def test_loaders_whose_sampling_would_be_lost_are_refused():
    model, optimizer, loader = parts()
    data = loader.dataset
    weighted = DataLoader(data, batch_size=20, sampler=WeightedRandomSampler([1.0] * 99 + [50.0], 100))
    subset = DataLoader(data, batch_size=20, sampler=SubsetRandomSampler(range(50)))
    for bad in (weighted, subset):
        with pytest.raises(dn.InputError, match="all records alike"):
            dn.make_private(model, optimizer, bad, 1, advantage=0.1)
    with pytest.raises(dn.InputError, match="higher rate"):
        require_poisson(weighted)
    with pytest.raises(dn.InputError, match="poisson_sampling must be True"):
        dn.make_private(model, optimizer, loader, 1, advantage=0.1, poisson_sampling=False)
    with pytest.raises(dn.InputError, match="loader must be"):
        dn.make_private(model, optimizer, [1, 2], 1, advantage=0.1)
    with pytest.raises(dn.InputError, match="follows from the target"):
        dn.make_private(model, optimizer, loader, 1, advantage=0.1, noise_multiplier=1.0)


DATA = TensorDataset(torch.randn(40, 4), torch.randint(0, 2, (40,)))


class Transformed(Dataset):
    """A wrapper as people write them: the same items, changed one by one."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, i):
        return self.dataset[i]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(DATA)

    def __len__(self):
        return len(DATA)


TWICE = {
    "repeated indices": (Subset(DATA, [*range(40), *range(20)] + [*range(20)] * 9), 11),
    "counted from the end": (Subset(DATA, [0, 39, -1]), 2),
    "an index tensor": (Subset(DATA, torch.tensor([3, 3, 5])), 2),
    "a subset of a subset": (Subset(Subset(DATA, [0, 0, 1]), [0, 1, 2]), 2),
    "the same data set": (ConcatDataset([DATA, DATA]), 2),
    "overlapping parts": (ConcatDataset([Subset(DATA, range(30)), Subset(DATA, range(20, 40))]), 2),
    "a subset of the same data set twice": (Subset(ConcatDataset([DATA, DATA]), [1, 41, 2]), 2),
    "a sum of sums": (DATA + (DATA + DATA), 3),
    "the same tensors": (ConcatDataset([DATA, TensorDataset(*DATA.tensors)]), 2),
    "behind a transformation": (Transformed(Subset(DATA, [7, 7, 8])), 2),
}
ONCE = {
    "a split": Subset(DATA, range(0, 40, 2)),
    "parts put together": ConcatDataset(random_split(DATA, [10, 30])),
    "one part of the same data set twice": Subset(ConcatDataset([DATA, DATA]), range(40, 80)),
    "a transformation": Transformed(ConcatDataset([DATA, Transformed(TensorDataset(torch.ones(9, 4), torch.ones(9)))])),
}


def over(data, **options):
    model = torch.nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, **({"batch_size": 3} | options))


@pytest.mark.parametrize("data", TWICE)
def test_a_record_that_visibly_comes_several_times_is_refused(data):
    held, times = TWICE[data]
    with pytest.raises(dn.InputError, match=f"takes one from its parts {times} times.*records_per_person={times}"):
        dn.make_private(*over(held), 1, advantage=0.3)
    with pytest.raises(dn.InputError, match="describe the run by"):
        dn.from_opacus([(1.0, 0.1, 10)], loader=over(held)[2], sampling="shuffled")


@pytest.mark.parametrize("data", ONCE)
def test_subsets_and_wrappers_that_hold_each_record_once_are_not(data):
    assert dn.make_private(*over(ONCE[data]), 1, advantage=0.3)[1].private_run.tradeoff().advantage() <= 0.3


def test_copies_are_worth_as_many_times_the_norm():
    """Why: the promise of 0.3 for a record that is drawn eleven times by itself is broken by far."""
    run = dn.make_private(*over(Subset(DATA, range(36))), 4, advantage=0.3)[1].private_run
    copies = dn.SubsampledGaussian(run.noise_multiplier, run.sample_rate, run.steps, records_per_person=11)
    assert dn.tradeoff(copies).advantage(side="lower") > 0.9


def test_loaders_of_which_no_record_can_be_drawn_have_a_sentence_of_their_own():
    with pytest.raises(dn.InputError, match="must have a data set with indices, got the iterable data set Stream"):
        dn.make_private(*over(Stream()), 1, advantage=0.3)
    with pytest.raises(dn.InputError, match=r"must make the batches, got batch_size=None"):
        dn.make_private(*over(DATA, batch_size=None), 1, advantage=0.3)


def test_what_cannot_be_seen_stands_where_the_promise_is_printed():
    _, optimizer, _ = dn.make_private(*parts(), 1, advantage=0.2)
    for text in (
        dn.assess(optimizer.private_run).to_text(),
        " ".join(optimizer.private_run.tradeoff().assumptions.notes),
    ):
        for words in ("no two records are equal", "records_per_person=k", "mixup", "takes one twice"):
            assert words in " ".join(text.split())


def test_a_shuffled_run_can_leak_more_than_the_poisson_curve_says():
    # one epoch of shuffled batches: the record is surely in one batch, Poisson sampling may never draw it
    import numpy as np

    rng = np.random.default_rng(0)
    sigma, batches, n = 0.3, 4, 40_000
    out = rng.normal(0, sigma, (n, batches))
    inside = rng.normal(0, sigma, (n, batches))
    inside[np.arange(n), rng.integers(0, batches, n)] += 1
    ratio = [np.log(np.exp(x / sigma**2).mean(axis=1)) for x in (inside, out)]
    reached = max((ratio[0] > c).mean() - (ratio[1] > c).mean() for c in np.linspace(2, 10, 30))
    assert reached > dn.tradeoff(dn.SubsampledGaussian(sigma, 1 / batches, batches)).advantage() + 0.02


def test_shapes_without_torch():
    loader = SimpleNamespace(batch_sampler=None)
    with pytest.raises(dn.InputError, match="DPDataLoader"):
        dn.from_opacus([(1.0, 0.1, 10)], loader=loader)


def test_a_run_says_which_entry_of_a_ledger_it_is_and_so_does_one_that_goes_on(tmp_path):
    ledger = dn.Ledger(tmp_path / "l")
    _, optimizer, _ = dn.make_private(*parts(), 2, advantage=0.2, ledger=ledger.named("churn"))
    run = optimizer.private_run
    assert run.entry == (1, ledger.head)
    assert ledger.entries[0].mechanism == run.mechanism
    state = run.state_dict()
    _, again, _ = dn.make_private(*parts(), 2, advantage=0.2)
    assert again.private_run.entry is None
    again.private_run.load_state_dict(state)
    for curve in (run.tradeoff(), again.private_run.tradeoff()):
        assert any(f"{ledger.head}; ledger of records" in note for note in curve.assumptions.notes)
        assert any("together: advantage at even odds at most 20" in note for note in curve.assumptions.notes)
