#!/bin/sh
# Opacus 1.6.0: an epoch of its Poisson loader can be a batch shorter than that of the loader it was made from.
# Expected: as many batches as the DataLoader has, since the rate is 1/len(loader).
# Seen: the number of batches is int(1 / rate), and 1 / (1 / 93) is 92.99999999999999: 92 batches for 93, and likewise
# for 99, 105, 117, … A schedule or an account that counts epochs * len(loader) steps counts steps that are never run.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 opacus==1.6.0
cat > "$folder/try.py" <<'END'
import torch
from opacus.data_loader import DPDataLoader
from torch.utils.data import DataLoader, TensorDataset

short = []
for batches in range(90, 120):
    loader = DataLoader(TensorDataset(torch.zeros(2 * batches, 1)), batch_size=2)
    private = DPDataLoader.from_data_loader(loader)
    drawn = sum(1 for _ in private)
    assert len(loader) == batches and private.sample_rate == 1 / batches and len(private) == drawn
    if drawn != batches:
        short.append((batches, drawn))
print(short)
assert short == [(93, 92), (99, 98), (105, 104), (117, 116)]
END
"$folder/venv/bin/python" "$folder/try.py"
