"""Who is exposed by this DP-SGD run? A small network trained with Opacus, and a curve for every record.

    python examples/dp_sgd_profile.py [rows]      # needs torch, opacus, scikit-learn

It trains on rows of the Adult data set if the folder in the environment variable DENIABLE_DATA holds adult.parquet
(columns as in the UCI repository, `income` to be predicted), else on scikit-learn's breast cancer data.

A record is exposed in a step by the chance of being drawn *with the gradient it would have had*, so the norms of all
records are needed, not only of those in the batch. Opacus shows the batch; a second pass computes the rest. Leave it
out and every step that did not draw a record counts with the clipping norm, which is valid but close to the worst case.
"""

import copy
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import opacus
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn
from deniable.accounting import individual_tradeoffs
from deniable.integrations.opacus import GradientNorms
from deniable.tables import encode, understand

NOISE_MULTIPLIER, SAMPLE_RATE, STEPS, CLIP, LEARNING_RATE = 1.2, 0.02, 150, 1.0, 1.0


def load(rows: int) -> tuple[str, torch.Tensor, torch.Tensor, np.ndarray]:
    """Name, features, labels and group of the records."""
    path = Path(os.environ.get("DENIABLE_DATA", ".")) / "adult.parquet"
    if path.exists():
        table, name, group = understand(str(path), "income", drop=("split",)), "Adult", "marital-status"
    else:
        table, name, group = understand("breast-cancer"), "breast cancer", None
    X, y = encode(table)
    keep = np.random.default_rng(0).permutation(len(y))[:rows]
    X = 4 * X[keep]  # rows of norm at most 4: the network trains faster
    groups = table.target if group is None else table.frame[group]
    labels = (y[keep] > 0).astype(float)
    return name, torch.tensor(X, dtype=torch.float32), torch.tensor(labels).float(), groups.astype(str).to_numpy()[keep]


def loss(output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of one logit."""
    return nn.functional.binary_cross_entropy_with_logits(output[..., 0], labels)


def gradient_norms(net: nn.Module, X: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    """Norm of every record's own gradient at the current weights."""

    def one(weights: dict[str, torch.Tensor], x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return loss(functional_call(net, weights, (x[None],)), label[None])

    weights = {name: p.detach() for name, p in net.named_parameters()}
    parts = vmap(grad(one), in_dims=(None, 0, 0), chunk_size=2048)(weights, X, y).values()
    squares = sum(part.reshape(len(X), -1).square().sum(dim=1) for part in parts)
    return squares.sqrt().double().numpy() * (1 + 1e-5)  # an allowance for single precision


def train(X: torch.Tensor, y: torch.Tensor) -> tuple[nn.Module, GradientNorms, GradientNorms, dn.Mechanism]:
    """Train with Opacus; record the norms of all records, and for comparison those of the batches alone."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(X.shape[1], 8), nn.Tanh(), nn.Linear(8, 1))
    twin = copy.deepcopy(net)  # without Opacus's hooks
    engine = opacus.PrivacyEngine()
    data = DataLoader(TensorDataset(torch.arange(len(X)), X, y), batch_size=round(SAMPLE_RATE * len(X)))
    module, optimizer, loader = engine.make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=LEARNING_RATE),
        data_loader=data,
        noise_multiplier=NOISE_MULTIPLIER,
        max_grad_norm=CLIP,
    )
    everyone, batches = GradientNorms(optimizer, records=len(X)), GradientNorms(optimizer, records=len(X))
    step = 0
    while step < STEPS:
        for index, rows, labels in loader:
            twin.load_state_dict(net.state_dict())
            rest = np.setdiff1d(np.arange(len(X)), index)
            everyone.add(rest, gradient_norms(twin, X[rest], y[rest]))
            everyone.batch(index)
            batches.batch(index)
            optimizer.zero_grad()
            loss(module(rows), labels).backward()
            optimizer.step()
            step += 1
            if step == STEPS:
                break
    return net, everyone, batches, dn.from_opacus(engine)


def exposed(norms: GradientNorms, run: dn.Mechanism) -> np.ndarray:
    """Upper bound of every record's advantage, never above that of any record."""
    return np.minimum(individual_tradeoffs(norms, CLIP, run).advantage(), dn.tradeoff(run).advantage())


def main() -> None:
    """Train, profile, print."""
    warnings.filterwarnings("ignore")  # Opacus: fresh noise is not from a cryptographic generator
    torch.set_num_threads(1)
    name, X, y, groups = load(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
    net, everyone, batches, run = train(X, y)
    accuracy = float(((net(X)[:, 0] > 0) == (y > 0.5)).float().mean())
    print(f"{name}, {len(X):,} records, {run}; training accuracy {accuracy:.3f}")
    profile, alone = exposed(everyone, run), exposed(batches, run)
    print(f"any record:         advantage at most {100 * dn.tradeoff(run).advantage():.2f} %")
    for title, found in (("all norms known", profile), ("batch norms only", alone)):
        low, middle, high = np.quantile(found, [0, 0.5, 1])
        print(f"{title + ':':19} lowest {100 * low:.2f} %, median {100 * middle:.2f} %, highest {100 * high:.2f} %")
    print("median by group:")
    for value in np.unique(groups):
        inside = profile[groups == value]
        print(f"  {value:24} {100 * np.median(inside):.2f} %  ({len(inside):,} records)")
    print("most exposed:", ", ".join(f"record {i} ({100 * profile[i]:.2f} %)" for i in np.argsort(-profile)[:3]))
    print("Computed from the records' own gradients: for the owner of the data, not to be published with the model.")


if __name__ == "__main__":
    main()
