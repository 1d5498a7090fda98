"""Opacus with torch 2.13.0: (multinomial) logistic or linear regression by DP-SGD.

Target: noise multipliers from deniable's exact curve of the Poisson-sampled Gaussian (results/budgets.json), which
allows less noise than Opacus's own accountant would. Given for nothing: the range of every column (scaled to [0, 1]),
categories, classes, the number of records (the divisor), mean and spread of a regression's target, and the choice among
the settings below by held-out score.

``--free-scaling`` runs what no private method may do: columns standardised with the training part's means and
variances, unpaid. It shows what the scale of the columns is worth; it is not a rival.
"""

import json
import sys

import numpy as np
import torch
from data import Dataset
from harness import RESULTS, encode, run
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader

BUDGETS = json.loads((RESULTS / "budgets.json").read_text())
torch.set_num_threads(1)


FREE_SCALING = "--free-scaling" in sys.argv


class Records(torch.utils.data.Dataset):
    """Rows that are fetched a batch at a time."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def __len__(self):
        return len(self.X)

    def __getitem__(self, index):
        return self.X[index], self.y[index]

    def __getitems__(self, indices):
        return self[torch.as_tensor(indices, dtype=torch.long)]


def settings(data: Dataset):
    scaling = "standard" if FREE_SCALING else "range"
    return {
        f"{scaling}, rate {rate:g}, step {step:g}": (scaling, rate, steps, step)
        for rate, steps, step in (
            (1.0, 100, 0.02),
            (1.0, 100, 0.1),
            (1.0, 100, 0.5),
            (1 / 32, 640, 0.02),
            (1 / 32, 640, 0.1),
        )
    }


def fit(data, train, test, advantage, parameters, seed):
    scaling, rate, steps, step = parameters
    torch.manual_seed(seed)
    X = torch.tensor(encode(data, train, scaling), dtype=torch.float32)
    if scaling == "standard":
        X = X / np.sqrt(X.shape[1])
    if data.task == "regression":
        classes, centre, spread = None, data.y[train].mean(), data.y[train].std()
        target = torch.tensor((data.y - centre) / spread, dtype=torch.float32)[:, None]
        module, loss = nn.Linear(X.shape[1], 1), nn.MSELoss()
    else:
        classes, codes = np.unique(data.y, return_inverse=True)
        target = torch.tensor(codes)
        module, loss = nn.Linear(X.shape[1], len(classes)), nn.CrossEntropyLoss()
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    records = Records(X[train], target[train])
    batch = max(1, round(len(train) * rate))
    optimizer = torch.optim.SGD(module.parameters(), lr=step * 10, momentum=0.9 if rate == 1 else 0.0)
    loader = DataLoader(records, batch_size=batch, shuffle=True, collate_fn=tuple)
    module, optimizer, loader = PrivacyEngine().make_private(
        module=module, optimizer=optimizer, data_loader=loader,
        noise_multiplier=BUDGETS[f"{rate:g} {steps} {advantage:g}"], max_grad_norm=1.0, poisson_sampling=rate < 1,
    )  # fmt: skip
    done = 0
    while done < steps:
        for features, wanted in loader:
            if done == steps:
                break
            optimizer.zero_grad()
            loss(module(features), wanted).backward()
            optimizer.step()
            done += 1
    with torch.no_grad():
        out = module(X[test])
    if classes is None:
        return out.numpy()[:, 0] * spread + centre, None, None
    probability = torch.softmax(out, 1).numpy()
    return classes[probability.argmax(1)], probability, classes


if __name__ == "__main__":
    rest = [a for a in sys.argv[1:] if a != "--free-scaling"]
    run("opacus_free_scaling" if FREE_SCALING else "opacus", settings, fit, rest)
