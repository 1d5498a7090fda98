"""One rival, in its own environment: codes in, made-up codes out; nothing else is asked of it.

PYTHON rival.py opendp-aim codes.csv sizes.json rho rows out.csv
"""

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd


def _epsilon(rho: float, delta: float, conversion: Callable[[float, float], float]) -> float:
    """Return the largest epsilon that the tool's own conversion turns into at most this rho."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if conversion(middle, delta) <= rho else (low, middle)
    return low


def opendp(codes: pd.DataFrame, sizes: dict[str, int], rho: float, rows: int, method: str) -> pd.DataFrame:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.from_pandas(codes).lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
    )
    algorithm = dp.mbi.AIM(queries=2) if method == "aim" else dp.mbi.MST()
    keys = {c: list(range(k)) for c, k in sizes.items()}
    table = context.query(rho=rho).select(*codes).contingency_table(keys=keys, algorithm=algorithm).release()
    made = table.synthesize(rows=rows) if "rows" in table.synthesize.__code__.co_varnames else table.synthesize()
    made = made.to_pandas()[list(sizes)]
    made = made.fillna({c: k - 1 for c, k in sizes.items()})  # it adds a code of its own for what is missing
    return made.sample(rows, replace=len(made) < rows, random_state=0)


def dpmm(codes: pd.DataFrame, sizes: dict[str, int], rho: float, rows: int, method: str) -> pd.DataFrame:
    from dpmm.models.base.mechanisms import cdp_rho
    from dpmm.pipelines import AIMPipeline, MSTPipeline

    delta = 1e-9
    made = (AIMPipeline if method == "aim" else MSTPipeline)(
        epsilon=_epsilon(rho, delta, cdp_rho), delta=delta, disable_processing=True, n_jobs=1
    )
    made.fit(codes, domain={c: int(k) for c, k in sizes.items()})
    return made.generate(n_records=rows)


def smartnoise(codes: pd.DataFrame, sizes: dict[str, int], rho: float, rows: int, method: str) -> pd.DataFrame:
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer
    from snsynth.utils import cdp_rho

    delta = 1e-9
    known = TableTransformer([LabelTransformer(nullable=False) for _ in sizes])
    public = pd.DataFrame({c: np.arange(max(sizes.values())) % k for c, k in sizes.items()})
    known.fit(public)
    made = Synthesizer.create(method, epsilon=_epsilon(rho, delta, cdp_rho), delta=delta)
    made.fit(codes, transformer=known, preprocessor_eps=0.0)
    return made.sample(rows)


def main(name: str, codes: str, sizes: str, rho: str, rows: str, out: str) -> None:
    tool, method = name.split("-")
    with open(sizes) as stored:
        known = json.load(stored)
    made = {"opendp": opendp, "dpmm": dpmm, "smartnoise": smartnoise}[tool](
        pd.read_csv(codes), known, float(rho), int(rows), method
    )
    pd.DataFrame(made)[list(known)].astype(int).to_csv(out, index=False)
    print(json.dumps({"cpu": time.process_time()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
