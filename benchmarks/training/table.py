"""The table and the picture of all results: results/scores.md, docs/images/training_benchmark.svg.

python benchmarks/training/table.py
"""

from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import numpy as np
from data import LOADERS, load
from harness import ADVANTAGES, FEWER, RESULTS, SPLITS, read

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
METHODS = {
    "deniable": "deniable, ranges found privately",
    "deniable_declared": "deniable, ranges given",
    "deniable_linear": "deniable, linear, ranges given",
    "deniable_alone": "deniable, no pairs",
    "interpret_dp_ebm": "DP-EBM (interpret 0.7.8)",
    "opacus": "Opacus, best of 5 settings",
    "diffprivlib": "diffprivlib 0.6.6, best of 8 settings",
}
OURS = ("deniable", "deniable_declared", "deniable_linear", "deniable_alone")
REFERENCES = {"unprotected_guess": "guessing", "unprotected_linear": "linear", "unprotected_boosting": "boosting"}
SHADES = ("#0b5fff", "#5b9bff", "#00a3a3", "#7cc36a", "#d1495b", "#edae49", "#8d6a9f")
COLOURS = dict(zip(METHODS, SHADES, strict=True))
WIDTH = 5  # panels of the picture beside each other
TOO_SLOW = {("places", "diffprivlib")}
DOCUMENT = RESULTS / "scores.md"
PICTURE = ROOT / "docs" / "images" / "training_benchmark.svg"

HEAD = """# Private training compared with other tools

See here what a [private model](../../../docs/training.md) costs in accuracy on data like yours, with deniable and with
other tools.

Held-out scores on the same ten splits (`train_test_split(test_size=0.25, random_state=0…9)`; on `places`, which takes
long, the first three), mean ± standard error; accuracy, then AUC (macro, one against the rest), or R² for regression.
All methods get the same target: no attacker who knows all other records can tell whether one record was in the data
(added or removed) with an advantage above 0.1, 0.2 or 0.462. This file is made by `benchmarks/training/table.py` from
`benchmarks/training/results/`.

"The same target", an advantage of a, means for each tool: for deniable, Gaussian DP with μ = 2Φ⁻¹((1 + a)/2); for
DP-EBM, the (ε, δ) at which its two mechanisms together have exactly this μ; for Opacus, the noise multiplier whose
exact curve has advantage a; for diffprivlib, ε = ln((1 + a)/(1 − a)).

**Where the comparison favours the rivals.** They receive free of charge what deniable's first row finds privately
or does without: the smallest and largest value of every column, the lists of categories, medians for blanks, the
number of records, and the range or scale of a regression's target. Opacus and diffprivlib also get their best
setting for each data set and target, chosen by held-out score. deniable runs with its defaults. "Ranges given" is
deniable with the same free ranges; on digits both rows are given the 17 grey levels. "No pairs" finds ranges
privately. A tool has no row, or – in a cell, where it does not take the data (DP-EBM has no multiclass models)
or has not been run on all splits.

**Which figures are older.** The rows of deniable's private models and the hard data were measured with the present
rules: zeros and ones are recognised privately, and yes/no columns are one coordinate. Measured before these rules: on
digits, "linear"; the simulated retrainings; what shrinkage gains. The rivals' rows are of the versions named; only
their budgets come from deniable.

"""

HARD = """## Data that are hard

Generated data sets, means over five draws of data and noise. One more rival is a program of thirty lines: noisy
gradient descent on a linear model. It is given the means and standard deviations of all columns, the number of records,
and the median and spread of a numeric target. The rivals get what they get above. They and the thirty lines run with
their best setting, chosen by the held-out score of the first draw. deniable runs with its defaults and pays for
everything it learns. Scores are accuracy / AUC for classes, R² for numeric targets and the share of deviance explained
for counts, for which the rivals have a linear regression only. The constant is the larger class or the mean. A cell is
– where the rival does not take the data (DP-EBM: more than two classes) or was not run (DP-EBM and diffprivlib on 400
columns). Measured by `benchmarks/training/hard.py`. Five draws say little where noise is large: with 60 records at
advantage 0.1, deniable's means have standard errors of up to .07.

"""
RETRAININGS = """## Simulated retrainings

Each model was fitted 500 times with the worst canary and 500 times without, with fresh noise, on 240 records (the
regression: 1,500). The attacker knows all other records. One attack uses the likelihood ratio of everything that was
released (`transcript`), the other sees the final model only. The rule was fixed before the run: all ten verdicts on the
promised noise are to be right with probability 99 %, so each verdict and each interval has a level of 99.9 %
(Bonferroni), within which an audit accounts for all thresholds that it tries; no model is run again for its outcome.
A sound implementation fails in at most one of a hundred runs. No attack beat its curve, and in no history did the
canary need more than the proven μ. The negative control, a tenth of the noise, is "violated" on every transcript.
Measured by `python benchmarks/training/retrainings.py` (11 minutes of CPU).

"""
SHRINKAGE = """## What shrinkage gains

Held-out AUC or R² with shrinkage less that without it: the mean over the ten splits ± standard error, with the same
noise in both fits. Measured by `benchmarks/training/shrinkage.py`.

"""


def results():
    """{(data, advantage, method): [line of each split]}: a method's setting that ran on all splits."""
    grouped = defaultdict(dict)
    for line in read():
        grouped[line["data"], line["advantage"], line["method"], line["setting"]][line["split"]] = line
    out = {}
    for (data, advantage, method, _), lines in grouped.items():
        if len(lines) == FEWER.get(data, SPLITS):
            out[data, advantage, method] = [lines[split] for split in sorted(lines)]
    return out


def cell(lines, score):
    """Mean ± standard error over splits."""
    values = np.array([line[score] for line in lines])
    mean = values.mean()
    if not mean > -10:
        return "below −10"
    return f"{mean:.3f} ± {values.std(ddof=1) / np.sqrt(values.size):.3f}"


def seconds(lines):
    return float(np.median([line["cpu_seconds"] for line in lines]))


def main() -> None:
    found = results()
    names = [name for name in LOADERS if any(key[0] == name for key in found)]
    text, behind = [HEAD], []
    for name in names:
        data = load(name)
        rows, columns = data.X.shape
        text.append(f"## {name}: {rows:,} × {columns}\n\n{type_of(name)}\n\n")
        text.append(
            "| method | " + " | ".join(f"advantage {a}" for a in ADVANTAGES) + " | CPU s |\n|---|---|---|---|---|\n"
        )
        score = ("r2",) if data.task == "regression" else ("accuracy", "auc")
        draws: dict[int, list[str]] = {}
        for method, label in METHODS.items():
            at = [found.get((name, a, method)) for a in ADVANTAGES]
            if (name, method) in TOO_SLOW:
                text.append(f"| {label} | not run: too slow | | | |\n")
            if not any(at):
                continue
            parts = [" / ".join(cell(lines, s) for s in score) if lines else "–" for lines in at]
            text.append(f"| {label} | {' | '.join(parts)} | {seconds(next(x for x in at if x)):.2f} |\n")
            draws.setdefault(min(x.get("repeats", 1) for lines in at for x in lines or ()), []).append(label)
        for method, label in REFERENCES.items():
            lines = found.get((name, 1.0, method))
            if lines:
                text.append(f"| *unprotected: {label}* | {' / '.join(cell(lines, s) for s in score)} | | | |\n")
        text.append("\n")
        if name in FEWER:
            text.append(
                f"Splits 0 to {FEWER[name] - 1} only, and rivals' settings compared on split 0, because fits take "
                'long. Unprotected boosting was not run for the same reason. "Ranges given": deniable knows that all '
                "columns are yes or no (not that they are numbers from 0 to 1, which takes ten times as long).\n\n"
            )
        if max(draws) > 1:
            text.append(f"Means over {max(draws)} draws of the noise in each split")
            text.append(f"; one draw: {'; '.join(draws[1])}.\n\n" if 1 in draws else ".\n\n")
        behind += losses(found, name, score)
    text.append(
        "## Where a rival is better\n\nBy the means; ± is the standard error of differences on the same splits.\n\n"
    )
    text += [f"- {line}\n" for line in behind] or ["Nowhere.\n"]
    parts = {
        "hard": HARD,
        "retrainings": RETRAININGS,
        "shrinkage": SHRINKAGE,
    }
    for name, heading in parts.items():
        if (RESULTS / f"{name}.md").exists():
            text.append(f"\n{heading}{(RESULTS / f'{name}.md').read_text()}")
    text.append(f"\n## Picture\n\n![accuracy against advantage](../../../docs/images/{PICTURE.name})\n")
    DOCUMENT.write_text("".join(text))
    draw(found, [n for n in names if load(n).task == "classification"])


def type_of(name: str) -> str:
    """First line of the loader's docstring, or where the data are from."""
    return (LOADERS[name].__doc__ or "").split("\n")[0] or {
        "breast_cancer": "From scikit-learn; two classes.", "digits": "From scikit-learn; ten classes.",
        "adult": "UCI Adult, raw: categories as texts, blanks.", "diabetes": "From scikit-learn; regression.",
    }.get(name, "")  # fmt: skip


def losses(found, name, score):
    """Sentences about every score in which a rival's mean is above deniable's."""
    out = []
    rivals = [m for m in METHODS if m not in OURS]
    for a in ADVANTAGES:
        for s in score:
            for ours in ("deniable", "deniable_declared"):
                mine = found.get((name, a, ours))
                for rival in rivals:
                    theirs = found.get((name, a, rival))
                    if not mine or not theirs:
                        continue
                    gap = np.array([x[s] - y[s] for x, y in zip(theirs, mine, strict=True)])
                    if gap.mean() > 0:
                        by = f"{gap.mean():.4f} ± {gap.std(ddof=1) / np.sqrt(gap.size):.4f}"
                        out.append(f"{name}, advantage {a}, {s}: {METHODS[rival]}, {by} ahead of {METHODS[ours]}")
    return out


def draw(found, names) -> None:
    """Accuracy against advantage, one panel a data set."""
    rows = -(-len(names) // WIDTH)
    figure, axes = plt.subplots(rows, WIDTH, figsize=(15, 3.4 * rows), squeeze=False)
    for axis, name in zip(axes.flat, names, strict=False):
        for method, label in METHODS.items():
            points = [
                (a, [x["accuracy"] for x in found[name, a, method]]) for a in ADVANTAGES if (name, a, method) in found
            ]
            if points:
                at = [a for a, _ in points]
                mean = [np.mean(v) for _, v in points]
                error = [np.std(v, ddof=1) / np.sqrt(len(v)) for _, v in points]
                axis.errorbar(at, mean, error, marker="o", ms=4, lw=1.6, color=COLOURS[method], label=label, capsize=2)
        for method, style in (("unprotected_guess", ":"), ("unprotected_linear", "--")):
            if (name, 1.0, method) in found:
                level = np.mean([x["accuracy"] for x in found[name, 1.0, method]])
                axis.axhline(level, color="#555555", ls=style, lw=1, label=f"unprotected: {REFERENCES[method]}")
        axis.set_title(name.replace("_", " "), fontsize=10)
        axis.set_xscale("log")
        axis.set_xticks(ADVANTAGES, [str(a) for a in ADVANTAGES])
        axis.minorticks_off()
        axis.grid(alpha=0.25)
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    for row in axes:
        row[0].set_ylabel("held-out accuracy")
    for axis in axes.flat[len(names) - WIDTH : len(names)]:
        axis.set_xlabel("membership advantage, at most")
    handles = {}
    for axis in axes.flat:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(
        handles.values(),
        [label.replace("`", "") for label in handles],
        loc="lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    figure.tight_layout(rect=(0, 0.2, 1, 1))
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    assert RESULTS.exists()
    main()
