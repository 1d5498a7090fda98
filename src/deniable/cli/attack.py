"""``deniable attack``: shadow models against a kind of model on a data set."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from deniable._check import InputError
from deniable._optional import require
from deniable.cli import _options as options
from deniable.cli._app import FINE, MISSED, command, of_table, write, wrote

if TYPE_CHECKING:
    from deniable.tables import Schema

_NAMED = {  # name → classifier, regressor
    "linear": ("LogisticRegression", "Ridge"),
    "tree": ("DecisionTreeClassifier", "DecisionTreeRegressor"),
    "forest": ("RandomForestClassifier", "RandomForestRegressor"),
    "boosting": ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
}


@command(
    "deniable attack breast-cancer --model forest --jobs 2 --seed 0",
    "deniable attack data.csv --target y --model mine.skops --method lira --shadows 64 --owner-report audit.html",
)
def attack(
    data: options.DataArgument,
    model: Annotated[str, typer.Option(help="What to train: linear, tree, forest, boosting, or a saved .skops file.")],
    target: options.TargetOption = None,
    method: Annotated[str, typer.Option(help="auto, loss, calibrated, lira, lira-offline or rmia.")] = "auto",
    shadows: Annotated[int, typer.Option(help="Number of models to train; must be even.")] = 64,
    drop: options.DropOption = None,
    *,
    reading: options.Reading,
    workers: options.Workers,
    seed: options.SeedOption = None,
    out: Annotated[Path | None, options.file("--out", "Write the scores here, as audit reads them", ".npz")] = None,
    pages: Annotated[options.Pages, "owner_report", "policy", "meta", "full", "as_json"],
) -> int:
    """Attack a kind of model on a data set.

    Shadow models are trained on random halves of the data; it is measured how well members are recognised.
    """
    said = pages.prepared()
    import deniable as dn
    from deniable.audit import Method

    saved = _load_saved(model)
    X, y, textual = _features(*reading.opened(data), target, tuple(drop or ()))
    pipeline = _pipeline(_named_estimator(model, y) if saved is None else saved, X, y, textual)
    with workers.start():
        scores = dn.attack_estimator(
            pipeline, X, y, method=cast(Method, method), n_shadows=shadows, rng=seed, n_jobs=workers.jobs
        )
    if out is not None:
        scores.save(str(out))
        wrote(out)
    found = scores.audit()
    made = dn.assess(found, title=f"{scores.method} against {model}", **said)
    leaks = found.advantage().low > 0
    private = ("train", *of_table(data, target, drop, **vars(reading)), "--report", "private.html") if leaks else ()
    write(pages.files(made))
    return max(pages.show(made, private), MISSED if found.warnings else FINE)


def _load_saved(model: str) -> Any:
    """Return the estimator of a .skops file, or None for one of the names; a saved fit is never used."""
    if model in _NAMED:
        return None
    if not model.endswith(".skops"):
        raise InputError(f"--model must be one of {', '.join(_NAMED)}, or an estimator's .skops file, got {model!r}")
    skops: Any = require("skops.io", purpose="reading a .skops model")
    try:
        found = skops.loads(_strip_fits(model))  # of types that skops trusts: nothing else is run
    except Exception as error:
        raise InputError(f"--model {model!r} could not be read: {error}") from None
    if not hasattr(found, "fit"):
        raise InputError(f"--model {model!r} must hold an estimator of scikit-learn, got {type(found).__name__}")
    return found


def _strip_fits(path: str) -> bytes:
    """Return the file without what fits left behind (names with ``_`` at an end): parameters are all that is needed."""
    kept = io.BytesIO()
    with zipfile.ZipFile(path) as given, zipfile.ZipFile(kept, "w") as made:
        for name in given.namelist():
            text = given.read(name)
            if name == "schema.json":
                text = json.dumps(json.loads(text, object_hook=_parameters)).encode()
            made.writestr(name, text)
    return kept.getvalue()


def _parameters(node: dict[str, Any]) -> dict[str, Any]:
    state = node.get("content")
    if node.get("__loader__") == "ObjectNode" and isinstance(state, dict):
        fitted = [name for name in state["content"] if name.endswith("_") or name.startswith("_")]
        for name in set(fitted) - {"_sklearn_version"}:
            del state["content"][name]
    return node


def _named_estimator(model: str, y: Any) -> Any:
    """Return the named classifier, or the regressor for a numeric target with many values or fractions."""
    from sklearn.utils import all_estimators

    numbers = y.dtype.kind in "iuf" and (len(set(y.tolist())) > 20 or bool((y != y.round()).any()))
    return dict(all_estimators())[_NAMED[model][numbers]]()


def _pipeline(model: Any, X: Any, y: Any, textual: list[str]) -> Any:
    """Return a pipeline for the rows of a table: a saved one as it is, else numbers scaled and texts as indicators."""
    from sklearn.base import is_classifier, is_regressor
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.utils.multiclass import type_of_target

    kind, name = type_of_target(y), type(model).__name__
    if is_classifier(model) and kind not in ("binary", "multiclass"):
        raise InputError(f"model {name} is a classifier, but the target is {kind}; choose a regressor")
    if is_regressor(model) and y.dtype.kind not in "iufb":
        raise InputError(f"model {name} is a regressor, but the target holds texts; choose a classifier")
    if isinstance(model, Pipeline):
        return model
    fill = SimpleImputer(strategy="constant", fill_value="(missing)")
    encode = make_column_transformer(
        (make_pipeline(fill, OneHotEncoder(handle_unknown="ignore")), textual),
        remainder=make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()),
    )
    return make_pipeline(encode, model)


def _features(
    source: Any, schema: Schema | None, target: str | None, drop: tuple[str, ...]
) -> tuple[Any, Any, list[str]]:
    """Read features, target, and which features are texts; an attack takes any target."""
    from deniable.noise import only_our_words
    from deniable.tables import understand

    with only_our_words():
        table = understand(source, target, drop=drop, schema=schema)
    aim = table.supervised().to_numpy()
    return table.frame, aim, [column.name for column in table.kept if column.kind == "category"]
