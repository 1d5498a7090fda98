"""The sums of a profile's fit on Spark: ``mapInArrow`` takes the kernel that Parquet and Dask take.

python benchmarks/scale/spark.py        # pip install pyspark, and Java
"""

import os
import pickle
import sys
import time
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import deniable as dn
from deniable.records.encoder import EncodedRows, read_problem
from deniable.records.fit import fit
from deniable.records.losses import as_loss
from deniable.records.problem import Problem, add_up
from deniable.tables import as_source


@dataclass(frozen=True, eq=False)
class SparkProblem(Problem):
    """A problem whose rows are a Spark data frame with the target column ``y``."""

    frame: Any = None
    encoder: Any = None

    def sums(self, centre, *, precise=True):
        bare = replace(self.bare, frame=None)

        def kernel(batches):  # one row of pickled sums a batch of rows: what travels does not grow with them
            for batch in batches:
                rows = as_source([batch.to_pandas()], "y")
                each = (
                    add_up(bare, EncodedRows(bare.encoder, one).parts(0), centre, precise=precise) for one in rows.tasks
                )
                found = reduce(add, each)
                yield pa.RecordBatch.from_pydict({"sums": [pickle.dumps(found)]})

        return reduce(add, (pickle.loads(row.sums) for row in self.frame.mapInArrow(kernel, "sums binary").collect()))


def on_spark(frame: Any, problem: Problem) -> np.ndarray:
    """The optimum, from ``problem`` (which one pass of checks over the same rows has made) and Spark's sums."""
    given = {name: getattr(problem, name) for name in problem.__dataclass_fields__}
    encoder = problem.tasks[0][0].encoder
    return fit(SparkProblem(**(given | {"tasks": (), "held": None, "frame": frame, "encoder": encoder}))).centre


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5)) / 20
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=rng.integers(0, 2, len(X)))
    held = dn.privacy_profile(X, table["y"].to_numpy(), regularization=1e-2, rng=0).optimum
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need deniable, too
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
    arrow = {"spark.sql.execution.arrow.pyspark.enabled": "true", "spark.sql.shuffle.partitions": "3"}
    session = SparkSession.builder.master("local[2]").config(map=local | arrow).getOrCreate()
    source = as_source([table[:9_000], table[9_000:]], "y")
    problem = read_problem(source, as_loss("logistic"), 1e-2, "none", "mean", None)
    begun = time.perf_counter()
    found = on_spark(session.createDataFrame(table).repartition(3), problem)
    print(f"Spark {session.version}, local[2]: largest difference from the fit in memory "
          f"{np.max(np.abs(found - held)):.1e}, {time.perf_counter() - begun:.0f} s")  # fmt: skip
    session.stop()
