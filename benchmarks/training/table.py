"""The table and the picture of all results: docs/training_benchmark.md, docs/images/training_benchmark.svg.

python benchmarks/training/table.py
"""

from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import numpy as np
from data import LOADERS, load
from harness import ADVANTAGES, RESULTS, read

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
METHODS = {
    "deniable": "deniable, ranges found privately",
    "deniable_declared": "deniable, ranges told",
    "deniable_linear": "deniable, linear, ranges told",
    "deniable_filter": "deniable, individual filters",
    "deniable_tuned": "deniable, tuned",
    "deniable_pairs": "deniable, five pairs",
    "interpret_dp_ebm": "DP-EBM (interpret 0.7.8)",
    "opacus": "Opacus, best of 5 settings",
    "diffprivlib": "diffprivlib 0.6.6, best of 8 settings",
    "deniable_output_perturbation": "deniable's `assess` (output perturbation), best of 3 settings",
    "deniable_release": "deniable's `MembershipPrivate`, swap, best of 3 settings",
}
OURS = ("deniable", "deniable_declared", "deniable_linear", "deniable_filter", "deniable_tuned", "deniable_pairs")
REFERENCES = {"unprotected_guess": "guessing", "unprotected_linear": "linear", "unprotected_boosting": "boosting"}
SHADES = (
    *("#0b5fff", "#5b9bff", "#00a3a3", "#003a9e", "#2d8f4e", "#7cc36a"),
    *("#d1495b", "#edae49", "#8d6a9f", "#9a8873", "#555555"),
)
COLOURS = dict(zip(METHODS, SHADES, strict=True))
SPLITS = 10
DOCUMENT = ROOT / "docs" / "training_benchmark.md"
PICTURE = ROOT / "docs" / "images" / "training_benchmark.svg"

HEAD = """# Private training beside other tools

Held-out scores on the same ten splits (`train_test_split(test_size=0.25, random_state=0…9)`), mean ± standard error;
accuracy, then AUC (macro, one against the rest), or R² for regression. All methods get the same target: no attacker who
knows all other records tells whether one record was in the data (added or removed) with an advantage above 0.1, 0.2 or
0.462. Made by `benchmarks/training/table.py` from `benchmarks/training/results/`.

What "the same target" means for each: Gaussian DP with μ = 2Φ⁻¹((1 + a)/2) for deniable; for DP-EBM the (ε, δ) at which
its two mechanisms together have exactly this μ; for Opacus the noise multiplier whose exact curve has advantage a; for
diffprivlib ε = ln((1 + a)/(1 − a)).

**Where the comparison favours the rivals.** They are given for nothing what deniable's first row finds privately or
does without: the smallest and largest value of every column, the lists of categories, medians for blanks, the number of
records, the range or scale of a regression's target. Opacus and diffprivlib also get their best setting for each data
set and target, chosen by held-out score. deniable runs with its defaults. "Ranges told" is deniable with the same free
ranges; on digits both are told the 17 grey levels. "Individual filters", "tuned" and "five pairs" find ranges
privately. deniable's own older ways run with what the rivals get, and standardised columns besides;
`MembershipPrivate` promises less: the attacker knows the data set but not which random half of it trained. Tables say —
where a tool does not take the data (DP-EBM has no multiclass) or has not been run on all splits. Rows
"ranges told", "linear", "individual filters", data that are hard and all rows of digits and wide date from before
linear terms by ranks and the shrinkage that columns share (up to .03 of AUC where records are few); of breast cancer,
small and diabetes the first row is of today.

"""

ALGORITHMS = """## Algorithms that were tried

Held-out AUC, mean ± standard error over ten splits (two draws of the noise each), by
`benchmarks/training/algorithms.py > benchmarks/training/results/algorithms.md`: the same ±1 codes of quantiles found
without privacy, logistic loss, the same target in the column's head. Only deniable's rule runs without a choice of
setting; every other algorithm gets the best of some, chosen by held-out AUC on six other splits, and the number of
records for nothing. Objective perturbation is charged less than its published analysis asks.

No algorithm is ahead of the rule by more than two standard errors anywhere, although the rule alone was not tuned.
Residuals of norm up to 1, 50 steps, objective perturbation and one Newton step are behind on the larger tables; on 240
records whatever regularises more is ahead by .01 to .03 at advantage 0.1. Momentum and averaging change little once
the length of the path is right; they make the rule insensitive to it. So the rule stays, individual filters are an
option, and the others live in that script only. What came later and gained more than all of these, centred columns
and noise for rows of usual length, is not part of this comparison.

"""
HARD = """## Data that are hard

Against thirty lines of noisy gradient descent on a linear model, which are told means and standard deviations of all
columns, the number of records, median and spread of a target, and the best of three step lengths; deniable runs with
its defaults and pays for all it learns. Classes: accuracy / AUC; targets: R²; counts: share of deviance explained. The
constant is the larger class or the mean. By `benchmarks/training/hard.py`.

"""
RAW = """## A raw CSV without any option

`messy` as a CSV file through what `deniable train messy.csv --target answer` runs, by `benchmarks/training/raw_csv.py`.

"""
RETRAININGS = """## Simulated retrainings

Each model was fitted again and again with the worst canary and without, with fresh noise, and attacked by somebody who
knows all other records: by the likelihood ratio of everything that was released (`transcript`), and from the final
model only. Intervals are exact, 99.5 %, so that all ten verdicts on the promised noise are right with probability
95 %. A tenth of the noise, the negative control, is "violated" on every transcript; sixty trainings
do not always show it in the final model.
By `benchmarks/training/retrainings.py`.

"""
TRIALS = """## What choosing among trials costs

The Gaussian DP parameter that each of k trials may have so that the best of them, kept, meets the target: all trials
composed, or a random number of them with mean k (Papernot & Steinke), by `benchmarks/training/price_of_trials.py`.
`tune=True` composes.

"""


def results():
    """{(data, advantage, method): [line of each of the ten splits]}: a method's setting that ran on all splits."""
    grouped = defaultdict(dict)
    for line in read():
        grouped[line["data"], line["advantage"], line["method"], line["setting"]][line["split"]] = line
    out = {}
    for (data, advantage, method, _), lines in grouped.items():
        if len(lines) == SPLITS:
            out[data, advantage, method] = list(lines.values())
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
        for method, label in METHODS.items():
            at = [found.get((name, a, method)) for a in ADVANTAGES]
            if not any(at):
                continue
            parts = [" / ".join(cell(lines, s) for s in score) if lines else "–" for lines in at]
            text.append(f"| {label} | {' | '.join(parts)} | {seconds(next(x for x in at if x)):.2f} |\n")
        for method, label in REFERENCES.items():
            lines = found.get((name, 1.0, method))
            if lines:
                text.append(f"| *unprotected: {label}* | {' / '.join(cell(lines, s) for s in score)} | | | |\n")
        text.append("\n")
        behind += losses(found, name, score)
    text.append("## Where a rival is better\n\nBy mean, whatever the error.\n\n")
    text += [f"- {line}\n" for line in behind] or ["Nowhere.\n"]
    parts = {
        "hard": HARD,
        "raw_csv": RAW,
        "retrainings": RETRAININGS,
        "algorithms": ALGORITHMS,
        "price_of_trials": TRIALS,
    }
    for name, heading in parts.items():
        if (RESULTS / f"{name}.md").exists():
            text.append(f"\n{heading}{(RESULTS / f'{name}.md').read_text()}")
    text.append(f"\n## Picture\n\n![accuracy against advantage](images/{PICTURE.name})\n")
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
                    gap = np.mean([x[s] for x in theirs]) - np.mean([x[s] for x in mine])
                    if gap > 0:
                        out.append(
                            f"{name}, advantage {a}, {s}: {METHODS[rival]} by {gap:.3f} ahead of {METHODS[ours]}"
                        )
    return out


def draw(found, names) -> None:
    """Accuracy against advantage, one panel a data set."""
    rows = (len(names) + 3) // 4
    figure, axes = plt.subplots(rows, 4, figsize=(13, 3.1 * rows), squeeze=False)
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
    for axis in axes[-1]:
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
    figure.tight_layout(rect=(0, 0.17, 1, 1))
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    assert RESULTS.exists()
    main()
