"""The guard: a step that is not the one the certificate counts is refused, whatever the loop; honest loops are not."""

import warnings
from functools import partial

import pytest

import deniable as dn
from deniable.integrations.private_run import NOTES

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch and Opacus warn about their own future

from opacus import PrivacyEngine  # noqa: E402
from opacus.schedulers import ExponentialGradClip  # noqa: E402
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from deniable.integrations.opacus_guard import StepNotCoveredError  # noqa: E402

GHOST = {"grad_sample_mode": "ghost"}


def parts(n=60, batch_size=20, **options):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(n, 4), torch.randint(0, 2, (n,)))
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size, shuffle=True, **options)


def private(*given, epochs=2, **options):
    """The private module, its optimizer, the loss that belongs to it, the private loader."""
    if options.get("grad_sample_mode") == "ghost":
        return dn.make_private(
            *(given or parts()), epochs, advantage=0.1, criterion=torch.nn.CrossEntropyLoss(), **options
        )
    module, optimizer, loader = dn.make_private(*(given or parts()), epochs, advantage=0.1, **options)
    return module, optimizer, cross_entropy, loader


def one_step(module, optimizer, loss, x, y):
    optimizer.zero_grad()
    loss(module(x), y).backward()
    optimizer.step()


def train(module, optimizer, loss, loader, epochs=2):
    for _ in range(epochs):
        for x, y in loader:
            one_step(module, optimizer, loss, x, y)


class Siamese(torch.nn.Module):
    """Runs its layers on two views of each record, in one call."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x) + self.layer(-x)


def two_views():
    model = Siamese()
    train(*private(model, torch.optim.SGD(model.parameters(), lr=0.1), parts()[2]))


def with_predictions(module, optimizer, loss, loader):
    for x, y in loader:
        one_step(module, optimizer, loss, x, y)
        module.eval()
        module(x)
        module.train()


def in_parts(module, optimizer, loss, loader):
    for _ in range(2):
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=7, optimizer=optimizer) as pieces:
            train(module, optimizer, loss, pieces, 1)


def with_evaluation(module, optimizer, loss, loader):
    """The loop leaves an epoch early and looks at a batch in between: neither makes a step another mechanism."""
    for _ in range(2):
        for k, (x, y) in enumerate(loader):
            if k == 2:
                break
            one_step(module, optimizer, loss, x, y)
        with torch.no_grad():
            module(next(iter(loader))[0])


def with_schedule(module, optimizer, loss, loader):
    schedule = ExponentialGradClip(optimizer, gamma=0.5)
    for _ in range(2):
        train(module, optimizer, loss, loader, 1)
        schedule.step()


def with_schedule_of_parts(module, optimizer, loss, loader):
    """Parts of one batch are clipped at 1, ½, ¼, and the noise is for the last of them."""
    schedule = ExponentialGradClip(optimizer, gamma=0.5)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=7, optimizer=optimizer) as pieces:
        for x, y in pieces:
            one_step(module, optimizer, loss, x, y)
            schedule.step()


HONEST = {
    "plain": lambda: train(*private()),
    "workers fetch ahead": lambda: train(*private(*parts(num_workers=2))),
    "in parts": lambda: in_parts(*private()),
    "in parts, workers": lambda: in_parts(*private(*parts(num_workers=2))),
    "a schedule of the clipping norm": lambda: with_schedule(*private()),
    "evaluation": lambda: with_evaluation(*private()),
    "two views of each record": two_views,
    "predictions in between": lambda: with_predictions(*private()),
    "empty batches": lambda: train(*private(*parts(n=12, batch_size=1))),
    "empty batches in parts": lambda: in_parts(*private(*parts(n=12, batch_size=1))),
    "ghost": lambda: train(*private(**GHOST)),
    "ghost in parts": lambda: in_parts(*private(**GHOST)),
    "ghost, empty batches": lambda: train(*private(*parts(n=12, batch_size=1), **GHOST)),
}


@pytest.mark.parametrize("loop", HONEST)
def test_honest_loops_are_not_refused(loop):
    HONEST[loop]()


def original_loader():
    given = parts()
    module, optimizer, loss, _ = private(*given)
    train(module, optimizer, loss, DataLoader(given[2].dataset, batch_size=60))


def skipped_steps(module, optimizer, loss, loader):
    for k, (x, y) in enumerate(loader):
        optimizer.signal_skip_step(k < 2)
        one_step(module, optimizer, loss, x, y)


def a_batch_twice(module, optimizer, loss, loader):
    for x, y in loader:
        for skip in (True, False):
            optimizer.signal_skip_step(skip)
            one_step(module, optimizer, loss, x, y)


def accumulated(module, optimizer, loss, loader):
    module.allow_grad_accumulation()
    for x, y in loader:
        loss(module(x), y).backward()
        loss(module(x), y).backward()
        optimizer.step()


def half_a_batch_twice(module, optimizer, loss, loader):
    """Two backward passes over the same half: as many rows as the batch has."""
    module.allow_grad_accumulation()
    for x, y in loader:
        half = slice(0, len(x) // 2)
        optimizer.zero_grad()
        for _ in range(2):
            loss(module(x[half]), y[half]).backward()
        optimizer.step()


def half_a_batch_twice_in_two_steps(module, optimizer, loss, loader):
    for x, y in loader:
        half = slice(0, len(x) // 2)
        for skip in (True, False):
            optimizer.signal_skip_step(skip)
            one_step(module, optimizer, loss, x[half], y[half])


def mixed_passes(module, optimizer, loss, loader):
    """One backward pass: Opacus adds the gradients of two records, row by row, and clips their sum."""
    for x, y in loader:
        optimizer.zero_grad()
        (loss(module(x), y) + loss(module(x.flip(0)), y.flip(0))).backward()
        optimizer.step()


def averaged_pairs(module, optimizer, loss, loader):
    """One row for two records: clipped together, each moves the sum by up to two norms."""
    for x, y in loader:
        even = len(x) // 2 * 2
        one_step(module, optimizer, loss, x[:even].reshape(-1, 2, 4).mean(dim=1), y[:even:2])


def ghost_with_own_loss():
    module, optimizer, _, loader = private(**GHOST)
    train(module, optimizer, cross_entropy, loader)


def ghost_with_a_second_loss():
    module, optimizer, loss, loader = private(**GHOST)
    for x, y in loader:
        optimizer.zero_grad()
        loss(module(x), y).backward()
        (100 * cross_entropy(module(x), y)).backward()
        optimizer.step()


def ghost_with_nan():
    given = parts()
    given[2].dataset.tensors[0][:30] = float("nan")
    train(*private(*given, **GHOST))


def shared_engine():
    engine = PrivacyEngine()
    first, second = private(engine=engine), private(engine=engine)
    train(*first)
    train(*second)


def checkpoint(tmp):
    module, optimizer, loss, loader = private()
    train(module, optimizer, loss, loader, 1)
    optimizer.private_run.engine.save_checkpoint(path=tmp / "run.pt", module=module, optimizer=optimizer)
    module, optimizer, loss, loader = private()
    optimizer.private_run.engine.load_checkpoint(path=tmp / "run.pt", module=module, optimizer=optimizer)
    train(module, optimizer, loss, loader)


def thawed():
    given = parts()
    given[0][0].requires_grad_(False)
    frozen = torch.optim.SGD(given[0][2].parameters(), lr=0.1)
    module, optimizer, loss, loader = private(given[0], frozen, given[2])
    module.requires_grad_(True)
    train(module, optimizer, loss, loader)


def higher_rate(module, optimizer, loss, loader):
    loader.batch_sampler.sample_rate = 0.9
    train(module, optimizer, loss, loader)


MISUSED = {
    "original loader": (original_loader, "no batch of the private loader"),
    "steps skipped": (lambda: skipped_steps(*private()), "from 3 batches"),
    "steps skipped, ghost": (lambda: skipped_steps(*private(**GHOST)), "from 3 batches"),
    "two backward passes": (lambda: accumulated(*private()), "from 1 batches"),
    "a batch twice": (lambda: a_batch_twice(*private()), "from 1 batches"),
    "half a batch twice": (lambda: half_a_batch_twice(*private()), "share a gradient|module ran 2 times"),
    "half a batch in two steps": (lambda: half_a_batch_twice_in_two_steps(*private()), "in 2 calls, from 1 batches"),
    "two passes": (lambda: mixed_passes(*private()), "module ran 2 times for 1 clipped sums"),
    "averaged pairs": (lambda: averaged_pairs(*private()), "several share a gradient"),
    "ghost, averaged pairs": (lambda: averaged_pairs(*private(**GHOST)), "several share a gradient"),
    "ghost, own loss": (ghost_with_own_loss, "not clipped"),
    "ghost, second loss": (ghost_with_a_second_loss, "not clipped"),
    "ghost, schedule": (lambda: with_schedule(*private(**GHOST)), "clipped at 1 and the noise is for 0.5"),
    "a schedule within a batch": (lambda: with_schedule_of_parts(*private()), "clipped at .* and the noise is for"),
    "ghost, NaN": (ghost_with_nan, "not finite"),
    "shared engine": (shared_engine, "another run uses this engine"),
    "thawed": (thawed, "outside the private optimizer"),
    "higher rate": (lambda: higher_rate(*private()), "sample_rate was raised"),
}


@pytest.mark.parametrize("loop", MISUSED)
def test_a_step_that_is_another_mechanism_is_refused(loop):
    run, why = MISUSED[loop]
    with pytest.raises(StepNotCoveredError, match=why):
        run()


def test_a_checkpoint_is_no_way_to_resume_but_state_dict_is(tmp_path):
    with pytest.raises(StepNotCoveredError, match="load_state_dict"):
        checkpoint(tmp_path)
    module, optimizer, loss, loader = private()
    train(module, optimizer, loss, loader, 1)
    saved = optimizer.private_run.state_dict()
    again = private()
    again[1].private_run.load_state_dict(saved)
    train(*again, epochs=1)
    run = again[1].private_run
    assert run.spent().advantage() == run.tradeoff().advantage()
    with pytest.raises(StepNotCoveredError, match="spent"):
        train(*again, epochs=1)
    with pytest.raises(dn.InputError, match="another noise_multiplier, steps"):
        private(epochs=5)[1].private_run.load_state_dict(saved)


def test_what_cannot_be_watched_is_refused_beforehand():
    given = parts()
    with pytest.raises(dn.InputError, match="noise_generator"):
        private(noise_generator=torch.Generator().manual_seed(0))
    with pytest.raises(dn.InputError, match=r"opacus\.PrivacyEngine"):
        private(engine=PrivacyEngineAdaptiveClipping())
    with pytest.raises(dn.InputError, match="outside the private optimizer"):
        private(given[0], torch.optim.SGD(given[0][0].parameters(), lr=0.1), given[2])
    with pytest.raises(dn.InputError, match="must not be private already"):
        private(given[0], private()[1], given[2])
    for clipping in ("per_layer", "adaptive", "other"):
        with pytest.raises(dn.InputError, match=f"clipping must be 'flat'.*got '{clipping}'"):
            private(clipping=clipping)
    tied = parts()[0]
    tied.append(torch.nn.Linear(2, 2)).append(torch.nn.Linear(2, 2))
    tied[4].weight = tied[3].weight
    with pytest.raises(dn.InputError, match="must not tie"):
        private(tied, torch.optim.SGD(tied.parameters(), lr=0.1), given[2], **GHOST)


def test_from_opacus_refuses_engines_and_loaders_that_are_not_of_the_history():
    engine = PrivacyEngineAdaptiveClipping()
    engine.accountant.history = [(1.0, 1 / 3, 6)]
    with pytest.raises(dn.InputError, match="releases noisy counts"):
        dn.from_opacus(engine)
    _, optimizer, _, loader = private(*parts(batch_size=30))
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=7, optimizer=optimizer) as pieces:
        for given in (loader, pieces):
            with pytest.raises(dn.InputError, match=r"samples at 0\.5"):
                dn.from_opacus(engine.accountant, loader=given)
        assert dn.from_opacus([(1.0, 0.5, 4)], loader=pieces) == dn.SubsampledGaussian(1.0, 0.5, 4)
    shuffled = parts()[-1]
    with BatchMemoryManager(data_loader=shuffled, max_physical_batch_size=7, optimizer=optimizer) as pieces:
        with pytest.raises(dn.InputError, match="shuffled batches are another mechanism"):
            dn.from_opacus(engine.accountant, loader=pieces)
        run = dn.from_opacus(engine.accountant, loader=pieces, sampling="shuffled")
    assert run == dn.ShuffledBatches(1.0, 3, 2)


def test_a_run_whose_steps_were_not_seen_has_no_certificate():
    module, optimizer, loss, loader = private()
    optimizer.attach_step_hook(lambda stepping: None)
    train(module, optimizer, loss, loader)
    run = optimizer.private_run
    for ask in (run.tradeoff, run.state_dict, *(partial(f, optimizer) for f in (dn.from_opacus, dn.assess))):
        with pytest.raises(StepNotCoveredError, match="6 times in 0 checked steps"):
            ask()


def test_the_page_of_a_run_names_its_sampling_and_keeps_its_notes():
    module, optimizer, loss, loader = private()
    train(module, optimizer, loss, loader, 1)
    for source in (optimizer, optimizer.private_run):
        assumed = dn.assess(source).assumptions
        assert set(NOTES) < set(assumed.notes)
        assert "by its own coin (Poisson)" in assumed.batches
    assert "by its own coin (Poisson)" in dn.assess(optimizer.private_run.engine).assumptions.batches


def test_a_training_that_trains_nothing_and_noise_that_is_known_are_warned_of():
    """Warned of, not refused: no certificate becomes false if nothing is learnt, and only the owner knows who knows."""

    def warned(act):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            act()
        return " ".join(str(w.message) for w in caught if w.category is UserWarning)

    model, _, loader = parts()
    run = private(model, torch.optim.SGD(model.parameters(), lr=0.0), loader)
    train(*run)
    assert "4 of 4 trainable parameters did not change in 6 steps" in warned(run[1].private_run.tradeoff)
    run = private()
    train(*run)
    assert "trainable" not in warned(run[1].private_run.tradeoff)
    assert "torch.manual_seed(0) was called" in warned(private)
    fixed = torch.Generator()
    assert f"its own, with the seed {fixed.initial_seed()}" in warned(lambda: private(*parts(generator=fixed)))
    given = parts()
    torch.seed()
    assert "manual_seed" not in warned(lambda: private(*given))


def test_what_is_exported_is_the_parameters_alone(tmp_path):
    module, optimizer, loss, loader = private()
    train(module, optimizer, loss, loader)
    path = optimizer.private_run.export(tmp_path / "model.pt")
    found = torch.load(path, weights_only=True)
    plain = parts()[0]
    plain.load_state_dict(found)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), module.parameters(), strict=True))
    torch.save(module, tmp_path / "whole.pt")
    assert path.stat().st_size < (tmp_path / "whole.pt").stat().st_size  # which has the gradients of each record
    original_step = optimizer.original_optimizer.step
    original_step()
    with pytest.raises(StepNotCoveredError, match="7 times in 6 checked steps"):
        optimizer.private_run.export(tmp_path / "model.pt")


def test_records_whose_gradient_is_not_finite_add_nothing():
    """With and without such a record the clipped sums are the same; bare Opacus makes every parameter NaN."""

    def summed(bad):
        x = torch.ones(3, 4)
        x[2] = bad
        module, optimizer, loss, _ = private()
        loss(module(x), torch.tensor([0, 1, 0])).backward()
        optimizer.clip_and_accumulate()
        return [p.summed_grad for p in optimizer.params], [p.grad_sample for p in optimizer.params]

    without, _ = summed(float("nan"))
    _, rows = summed(1.0)
    assert all(bool(s.isfinite().all()) for s in without)
    norms = torch.stack([row.reshape(3, -1).norm(dim=1) for row in rows]).norm(dim=0)
    for total, row in zip(without, rows, strict=True):
        factors = (1 / (norms + 1e-6)).clamp(max=1.0)[:2]
        torch.testing.assert_close(total, torch.einsum("i,i...", factors, row[:2]))


def test_a_run_that_released_is_not_rewound():
    """Five models of 48 steps came from one state, and each said what one run of 16 steps may tell."""
    module, optimizer, loss, loader = private()
    train(module, optimizer, loss, loader, 1)
    run = optimizer.private_run
    saved = run.state_dict()
    train(module, optimizer, loss, loader, 1)
    with pytest.raises(dn.InputError, match="6 were taken and count"):
        run.load_state_dict(saved)
    again = private()[1].private_run
    for taken in (0, 4):
        with pytest.raises(dn.InputError, match="must hold the"):
            again.load_state_dict(saved | {"taken": taken})
    again.load_state_dict(saved)
    assert again.engine.accountant.history is not saved["accountant"]["history"]


def test_a_broken_run_is_added_to_nothing(tmp_path):
    """The sum of releases and a ledger asked for the mechanism past the guard: .300 for whatever had run."""
    module, optimizer, loss, loader = private()
    train(module, optimizer, loss, loader, 1)
    ledger = dn.Ledger(tmp_path / "l")
    assert dn.tradeoff([optimizer]).advantage() == optimizer.private_run.tradeoff().advantage()
    optimizer.original_optimizer.step()
    for use in (
        lambda: dn.tradeoff([optimizer]),
        lambda: dn.tradeoff([optimizer.private_run]),
        lambda: ledger.add(optimizer),
    ):
        with pytest.raises(StepNotCoveredError, match="no certificate"):
            use()
    assert not ledger.entries


def test_a_run_hides_a_record_and_is_no_part_of_a_sum_that_hides_persons():
    table = {"who": [0, 0, 1, 1, 2, 2] * 20, "x": [1.0, 2.0, 3.0] * 40}
    released = dn.release_statistics(table, ["count()"], advantage=0.2, group="who")
    with pytest.raises(dn.InputError, match="same unit"):
        dn.tradeoff([released, private()[1]])
