"""DP-SGD runs behind figure 2: one JSON file a run, with accuracy, the accountant's history, machine, date, command.

Needs torch and Opacus, which the library itself does not: python papers/mahloujifar2022/train.py --help.
The accuracies of figure 2 are measured once and kept, not recomputed; a run whose file is already there is skipped.
"""

import argparse
import datetime
import io
import json
import os
import platform
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import opacus
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DATA = Path(os.environ.get("DENIABLE_DATA", Path(__file__).resolve().parents[3] / "shared" / "datasets"))
# epochs, q, learning rate and clipping norm of the paper (section 5); of the networks it tells the depth only
SETTINGS = {"mnist": (10, 0.001, 0.1, 1.0), "cifar10": (50, 0.02, 0.5, 10.0)}


def three_layers():
    convolutions = [nn.Conv2d(1, 16, 8, 2, 3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 10))


def five_layers():
    layers = []
    for channels_in, channels_out in ((3, 32), (32, 64), (64, 64), (64, 128)):
        layers += [nn.Conv2d(channels_in, channels_out, 3, 1, 1), nn.ReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*layers[:-1], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


def read(name, part):
    """Return images in [−1, 1], shape (n, channels, height, width), and labels."""
    if name == "mnist":
        arrays = np.load(DATA / "mnist.npz")
        pixels, labels = arrays[f"x_{part}"][:, None], arrays[f"y_{part}"]
    else:  # strips of 500 images each
        with zipfile.ZipFile(DATA / "cifar10_webp.zip") as archive:
            strips = sorted(n for n in archive.namelist() if n.startswith(part) and n.endswith(".webp"))
            images = [np.asarray(Image.open(io.BytesIO(archive.read(strip))).convert("RGB")) for strip in strips]
            labels = np.load(io.BytesIO(archive.read(f"{part}_labels.npy")))
        pixels = np.concatenate([image.reshape(-1, 32, 32, 3) for image in images]).transpose(0, 3, 1, 2)
    scaled = pixels / np.float32(127.5) - np.float32(1)
    return torch.as_tensor(scaled), torch.as_tensor(labels, dtype=torch.long)


def accuracy(model, images, labels):
    with torch.no_grad():
        guesses = torch.cat([model(batch).argmax(1) for batch in images.split(500)])
    return (guesses == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=SETTINGS)
    parser.add_argument("--sigma", type=float, required=True, help="noise multiplier")
    parser.add_argument("--epochs", type=int, help="fewer than the paper's: the file says so")
    parser.add_argument("--rate", type=float, help="another sampling rate; the learning rate changes in proportion")
    parser.add_argument("--seed", type=int, default=0, help="of the start, the batches and the noise")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "measured")
    options = parser.parse_args()
    paper_epochs, paper_rate, learning_rate, clip = SETTINGS[options.dataset]
    epochs, rate = options.epochs or paper_epochs, options.rate or paper_rate
    learning_rate *= rate / paper_rate
    name = f"{options.dataset}_rate{rate:g}_sigma{options.sigma:g}_epochs{epochs}_seed{options.seed}.json"
    target = options.out / name
    if target.exists():
        sys.exit(f"{target} is there already")
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    train, test = TensorDataset(*read(options.dataset, "train")), read(options.dataset, "test")
    model = three_layers() if options.dataset == "mnist" else five_layers()
    engine = opacus.PrivacyEngine()
    sgd = torch.optim.SGD(model.parameters(), lr=learning_rate)
    batches = DataLoader(train, round(rate * len(train)))  # Opacus draws Poisson batches of this expected size
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=sgd, data_loader=batches, noise_multiplier=options.sigma, max_grad_norm=clip
    )
    start, curve = time.process_time(), []
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        curve.append(accuracy(model, *test))
        print(f"{options.dataset} sigma {options.sigma:g}: {curve}, {time.process_time() - start:.0f} s", flush=True)
    record = {"dataset": options.dataset, "noise_multiplier": options.sigma, "epochs": epochs, "accuracy": curve}
    record |= {"paper_epochs": paper_epochs, "learning_rate": learning_rate, "clip": clip, "seed": options.seed}
    record |= {"history": engine.accountant.history, "cpu_seconds": round(time.process_time() - start)}
    record |= {"date": datetime.date.today().isoformat(), "machine": f"{platform.machine()}, CPU, one thread"}
    record |= {"torch": torch.__version__, "opacus": opacus.__version__, "command": " ".join(["python", *sys.argv])}
    target.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
