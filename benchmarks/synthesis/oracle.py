"""The fit of made-up tables against private-pgm's: the same noisy counts, the same marginals.

    python -m venv other && other/bin/pip install mbi==2.0.0
    python benchmarks/synthesis/oracle.py other/bin/python

Prints the largest difference of a share of any counted marginal, and of the pairs that nobody counted.
"""

import json
import subprocess
import sys
from itertools import combinations

import numpy as np

CASES, N, SD = 8, 20_000.0, 25.0
THEIRS = """
import json, sys
import jax
import numpy as np
jax.config.update("jax_enable_x64", True)
from mbi import Domain, LinearMeasurement, estimation
out = []
for case in json.load(sys.stdin):
    names = [f"c{i}" for i in range(len(case["sizes"]))]
    named = lambda columns: tuple(names[i] for i in columns)
    counted = [LinearMeasurement(np.array(m["counts"]), named(m["columns"]), m["sd"]) for m in case["counted"]]
    domain = Domain(names, case["sizes"])
    law = estimation.MirrorDescent().estimate(domain, counted, known_total=case["n"], iters=5000)
    out.append([np.ravel(law.project(named(pair)).datavector()).tolist() for pair in case["pairs"]])
print(json.dumps(out))
"""


def case(seed: int) -> dict:
    """Return a law of a few columns, and noisy counts of a connected set of pairs with loops and of all columns."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, 6).tolist()
    law = rng.dirichlet(np.full(int(np.prod(sizes)), 0.3)).reshape(sizes)
    every = list(combinations(range(6), 2))
    counted = [*(every[i] for i in rng.choice(len(every), 8, replace=False)), *((i,) for i in range(6))]
    exact = [N * law.sum(tuple(set(range(6)) - set(columns))) for columns in counted]
    return {
        "sizes": sizes, "n": N, "pairs": every,
        "counted": [
            {"columns": columns, "sd": SD, "counts": (one + rng.normal(0, SD, one.shape)).ravel().tolist()}
            for columns, one in zip(counted, exact, strict=True)
        ],
    }  # fmt: skip


def ours(one: dict) -> list[np.ndarray]:
    """Return our marginals of all pairs, from the joint law: these tables are small."""
    from deniable.synthesis.junction import JunctionTree

    margins = [tuple(m["columns"]) for m in one["counted"]]
    law = JunctionTree(one["sizes"], margins)
    shapes = [tuple(one["sizes"][i] for i in margin) for margin in margins]
    counts = [np.reshape(m["counts"], shape) for m, shape in zip(one["counted"], shapes, strict=True)]
    law.fit(counts, [SD] * len(margins), N, 3000)
    letters, joint = "abcdef", np.ones(())
    spelled = lambda columns: "".join(letters[i] for i in columns)  # noqa: E731
    have = ""
    for j in law.order:
        part, known = law.laws[j], law.separator.get(j, ())
        if known:
            clique = law.cliques[j]
            new = tuple(k for k, i in enumerate(clique) if i not in known)
            part = part / np.maximum(part.sum(new, keepdims=True), 1e-300)
        more = spelled(law.cliques[j])
        all_letters = "".join(sorted(set(have) | set(more)))
        joint = np.einsum(f"{have},{more}->{all_letters}", joint, part)
        have = all_letters
    return [N * joint.sum(tuple(set(range(6)) - set(pair))) for pair in one["pairs"]]


def main(python: str) -> None:
    cases = [case(seed) for seed in range(CASES)]
    command = [python, "-W", "ignore", "-c", THEIRS]
    found = subprocess.run(command, input=json.dumps(cases), check=True, stdout=subprocess.PIPE, text=True).stdout
    for one, theirs in zip(cases, json.loads(found), strict=True):
        counted = {tuple(m["columns"]) for m in one["counted"]}
        apart = {"counted": 0.0, "not counted": 0.0}
        for pair, mine, other in zip(one["pairs"], ours(one), theirs, strict=True):
            kind = "counted" if pair in counted else "not counted"
            apart[kind] = max(apart[kind], float(np.abs(mine.ravel() - other).max() / N))
        print(apart)


if __name__ == "__main__":
    main(sys.argv[1])
