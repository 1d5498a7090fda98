"""Opacus runs on the processor and on an accelerator, in single precision and in bfloat16: what is recorded of them."""

import numpy as np
import pytest

import deniable as dn
from deniable.integrations.opacus import GradientNorms

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch and Opacus warn about their own future

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))
N = 200


def private(device, dtype=torch.float32, epochs=2, **options):
    """A small convolutional network in private training on ``device``; batches are (rows, images, labels)."""
    torch.manual_seed(0)
    images, labels = torch.randn(N, 1, 8, 8, dtype=dtype), torch.randint(0, 3, (N,))
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.GroupNorm(2, 8), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(288, 3)
    ).to(device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.arange(N), images, labels), batch_size=20)
    return dn.make_private(model, optimizer, loader, epochs, advantage=0.3, **options)


def train(model, optimizer, loader, device, epochs=2, before=lambda rows: None):
    for _ in range(epochs):
        for rows, x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            before(rows)
            optimizer.step()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_a_run_is_recorded_and_stops(device, dtype):
    model, optimizer, loader = private(device, dtype)
    train(model, optimizer, loader, device)
    run = optimizer.private_run
    assert run.steps == 20
    assert dn.from_opacus(optimizer) == run.mechanism
    with pytest.raises(RuntimeError, match="covers 20 steps"):
        train(model, optimizer, loader, device)


class DPOptimizer:
    """As much of Opacus's optimizer as ``GradientNorms`` uses."""

    def __init__(self, grad_samples):
        self.grad_samples, self.step_hook = grad_samples, None

    def clip_and_accumulate(self):
        pass

    def attach_step_hook(self, hook):
        self.step_hook = hook


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_of_millions_of_parameters_keep_their_digits(device, dtype):
    """Sums of squares in single precision are too small by percents on a processor: 7e-3 for 10⁷ equal entries."""
    entries = torch.full((3, 10_000_000), 1e-3, dtype=dtype, device=device)
    optimizer = DPOptimizer([entries, entries[:, :5]])
    norms = GradientNorms(optimizer, 4)
    norms.batch([0, 2, 3])
    optimizer.clip_and_accumulate()
    optimizer.step_hook(None)
    ((rows, values),) = norms.steps()
    np.testing.assert_array_equal(rows, [0, 2, 3])
    truth = float(entries[0, 0]) * np.sqrt(10_000_005)
    assert np.all((values >= truth) & (values <= truth * (1 + 1e-9)))
