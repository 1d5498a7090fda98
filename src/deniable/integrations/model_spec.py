"""Models named on a command line: ``sklearn:LogisticRegression(C=10)``."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from deniable._check import InputError
from deniable.tables.reading import builtin_names, read_file, read_table

PREFIX = "sklearn:"


def parse_model(spec: str) -> Any:
    """Return the unfitted scikit-learn classifier or regressor that ``spec`` names; arguments must be literals."""
    from sklearn.utils import all_estimators

    if not spec.startswith(PREFIX):
        raise InputError(
            f"model must start with {PREFIX!r}, got {spec!r}; for example sklearn:LogisticRegression(C=10)"
        )
    try:
        call = ast.parse(spec[len(PREFIX) :].strip(), mode="eval").body
        call = call if isinstance(call, ast.Call) else ast.Call(call, [], [])
        name = call.func.id  # type: ignore[attr-defined]
        options = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        if call.args:
            raise ValueError
    except (SyntaxError, ValueError, AttributeError):
        raise InputError(
            f"model {spec!r} cannot be read; write sklearn:Name(option=value, …) with plain values"
        ) from None
    known = dict(all_estimators(type_filter=["classifier", "regressor"]))
    if name not in known:
        near = [other for other in known if name.lower() in other.lower()]
        raise InputError(
            f"model {name!r} is no scikit-learn classifier or regressor; similar: {', '.join(near) or 'none'}"
        )
    try:
        return known[name](**options)
    except TypeError as error:
        raise InputError(f"model {spec!r}: {error}") from None


def attackable(
    source: str | Path, target: str | None, model: Any, *, drop: tuple[str, ...] = ()
) -> tuple[Any, Any, Any]:
    """Return (pipeline, X, y) for a table: numbers are standardised, texts become indicators, then ``model``."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = _features(source, target, drop)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder=StandardScaler(),
    )
    return make_pipeline(encode, model), X, y


def _features(source: str | Path, target: str | None, drop: tuple[str, ...]) -> tuple[Any, Any]:
    """Read features and target; unlike an assessment, an attack takes any target with labels."""
    if str(source) in builtin_names():
        table = read_table(source, target, drop=drop)
        return table.features, table.target.to_numpy()
    frame = read_file(Path(source))
    for column in (*([target] if target is not None else []), *drop):
        if column not in frame.columns:
            raise InputError(f"column {column!r} is not in {source}; it has: {', '.join(map(str, frame.columns))}")
    if target is None:
        raise InputError(f"target is missing; name the column to predict, one of: {', '.join(map(str, frame.columns))}")
    frame = frame.drop(columns=list(drop))
    missing = [str(column) for column in frame.columns if frame[column].isna().any()]
    if missing:
        raise InputError(f"{source} has missing cells in {', '.join(missing)}; fill or drop them first")
    return frame.drop(columns=target).reset_index(drop=True), frame[target].to_numpy()
