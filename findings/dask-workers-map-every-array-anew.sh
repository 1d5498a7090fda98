#!/usr/bin/env bash
# Dask 2026.8.0 starts a worker with MALLOC_TRIM_THRESHOLD_=65536. Setting that threshold also switches glibc's moving
# threshold for mmap off, so each NumPy array above 128 KiB is mapped anew, page by page, and given back at once.
# Seen: 1000 temporary arrays of 1 MiB cause about 257,000 page faults in a worker, and about 500 in the process that
# started it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dask==2026.8.0 distributed==2026.8.0 numpy==2.3.5
cat > "$folder/faults.py" <<'PY'
import numpy as np
from distributed import Client, LocalCluster


def faults():
    import resource

    block = np.ones(131_072)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(1000):
        block * 2.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


if __name__ == "__main__":
    with LocalCluster(n_workers=1, dashboard_address=None) as one, Client(one) as client:
        found = client.submit(faults, pure=False).result(), faults()
    print("page faults of 1000 arrays of 1 MiB: in a worker", found[0], "here", found[1])
    assert found[0] > 100_000 > 10_000 > found[1], found
PY
"$folder/venv/bin/python" "$folder/faults.py"
echo "as found: a worker of Dask maps every larger array anew"
