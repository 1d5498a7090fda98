"""Draw figures of the papers, print their numbers and say where they disagree with expected.json.

python papers/reproduce.py thudi2022/fig2 --out out/papers   # one or several; all of them without a name
"""

import argparse
import sys
import time
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from _common import HERE, Skip, compare, loaded, scripts
from PIL import Image

GALLERY = HERE.parent / "docs" / "gallery"


def save(figure, out, name):
    """Write the figure, the same each time, in the gallery's format; a .png with 64 colours, which keeps it small."""
    suffix = ".png" if (GALLERY / f"{name}.png").exists() else ".svg"
    path = out / f"{name}{suffix}"
    figure.savefig(path, dpi=90, metadata=None if suffix == ".png" else {"Date": None})
    if suffix == ".png":
        with Image.open(path) as image:
            image.convert("RGB").quantize(64).save(path, optimize=True)


def main():
    mpl.use("Agg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "deniable"})  # small files, the same each time
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="folder/script, such as thudi2022/fig2")
    parser.add_argument("--out", type=Path, help="write the figures into this folder")
    parser.add_argument("--reduced", action="store_true", help="the small size of the test suite")
    options = parser.parse_args()
    failed = False
    for script in [HERE / f"{name}.py" for name in options.names] or scripts():
        name, start = f"{script.parent.name}-{script.stem}", time.perf_counter()
        try:
            figure, numbers = loaded(script)(options.reduced)
        except Skip as why:
            print(f"{name} skipped: {why}")
            continue
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            save(figure, options.out, name)
        plt.close("all")
        wrong = compare(script, numbers, options.reduced)
        failed |= bool(wrong)
        print(*(f"{key:<40} {value:.6g}" for key, value in numbers.items()), sep="\n")
        print(f"{name}: {time.perf_counter() - start:.1f} s, {len(wrong)} disagreements", *wrong, sep="\n", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
