"""How good made-up rows are: boosting on real held-out records, total variation of marginals, counting queries."""

from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import OrdinalEncoder

from tables import Cells


def measured(
    made: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, target: str, seed: int = 0
) -> dict[str, float]:
    """Return AUC, log loss, TV of one and of two columns, and the mean error of counting queries over three."""
    made, train, test = (_alike(one, train) for one in (made, train, test))
    cells = Cells(train)
    (real, sizes), (fake, _) = cells.encode(train), cells.encode(made)
    names = list(train)
    one = [_distance(real, fake, (c,), sizes) for c in names]
    two = [_distance(real, fake, pair, sizes) for pair in combinations(names, 2)]
    return {
        **_usefulness(made, test, target),
        "tv1": float(np.mean(one)),
        "tv2": float(np.mean(two)),
        "query": _queries(real, fake, np.random.default_rng(seed)),
    }


def _alike(made: pd.DataFrame, train: pd.DataFrame) -> pd.DataFrame:
    """Return numbers as numbers, and words in small letters: yes and Yes are one."""
    out = {}
    for name, column in train.items():
        if pd.api.types.is_numeric_dtype(column) and column.dtype != bool:
            out[name] = pd.to_numeric(made[name], errors="coerce")
        else:
            out[name] = made[name].astype(str).str.casefold().where(made[name].notna(), None)
    return pd.DataFrame(out)


def _distance(real: pd.DataFrame, fake: pd.DataFrame, columns: tuple[str, ...], sizes: dict[str, int]) -> float:
    shape = [sizes[c] for c in columns]

    def shares(codes: pd.DataFrame) -> np.ndarray:
        flat = np.ravel_multi_index([codes[c].to_numpy() for c in columns], shape)
        return np.bincount(flat, minlength=int(np.prod(shape))) / len(codes)

    return float(np.abs(shares(real) - shares(fake)).sum() / 2)


def _queries(real: pd.DataFrame, fake: pd.DataFrame, rng: np.random.Generator, n_queries: int = 500) -> float:
    """Each query takes the codes between two records' in three columns."""
    R, F = real.to_numpy(), fake.to_numpy()
    errors = []
    for _ in range(n_queries):
        columns = rng.choice(R.shape[1], min(3, R.shape[1]), replace=False)
        ends = np.sort(R[rng.integers(len(R), size=2)][:, columns], axis=0)
        inside = [((M[:, columns] >= ends[0]) & (M[:, columns] <= ends[1])).all(1).mean() for M in (R, F)]
        errors.append(abs(inside[0] - inside[1]))
    return float(np.mean(errors))


def _usefulness(made: pd.DataFrame, test: pd.DataFrame, target: str) -> dict[str, float]:
    made = made[made[target].isin(set(test[target]))]
    texts = [c for c in test if c != target and not pd.api.types.is_numeric_dtype(test[c])]
    numbers = [c for c in test if c != target and c not in texts]
    coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=200)

    def design(rows: pd.DataFrame, fitted: bool) -> np.ndarray:
        words = rows[texts].fillna("").astype(str)
        coded = coder.transform(words) if fitted else coder.fit_transform(words)
        return np.column_stack([rows[numbers].to_numpy(float), coded])

    flags = [False] * len(numbers) + [True] * len(texts)
    model = HistGradientBoostingClassifier(random_state=0, categorical_features=flags, early_stopping=False)
    model.fit(design(made, False), made[target].astype(str))
    chances, truth = model.predict_proba(design(test, True)), test[target].astype(str)
    two = len(model.classes_) == 2
    auc = roc_auc_score(truth, chances[:, 1] if two else chances, multi_class="ovr")
    return {"auc": float(auc), "log_loss": float(log_loss(truth, chances, labels=model.classes_))}
