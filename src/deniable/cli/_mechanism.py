"""Any mechanism as one word of a command line: its name and its numbers, ``laplace,2,steps=10``."""

from __future__ import annotations

import difflib
import inspect
import zipfile
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._check import InputError
from deniable.cli._app import RUN_PANEL

MECHANISM = "--mechanism"
TRIALS = "--trials"
SOUGHT = "?"  # in place of the number that calibrate looks for

# by name; the samplers have the names of --sampler
CLASSES = {
    "poisson": "SubsampledGaussian",
    "truncated": "TruncatedPoisson",
    "without-replacement": "WithoutReplacement",
    "shuffled": "ShuffledBatches",
    "allocation": "RandomAllocation",
    "gradient-descent": "NoisyGradientDescent",
    "matrix": "MatrixMechanism",
    "laplace": "Laplace",
    "discrete-laplace": "DiscreteLaplace",
    "discrete-gaussian": "DiscreteGaussian",
    "randomized-response": "RandomizedResponse",
    "bounded-range": "BoundedRange",
    "finite-pair": "FinitePair",
    "pure": "PureDP",
    "approximate": "ApproximateDP",
    "gaussian": "GaussianDP",
    "renyi": "RenyiDP",
    "zero-concentrated": "ZeroConcentratedDP",
}
_LISTS = {"orders", "epsilons", "p", "q"}

MechanismOption = Annotated[
    list[str] | None,
    typer.Option(
        MECHANISM,
        help="In place of the options below, any mechanism: its name and its numbers in the order of deniable's Python "
        "class, or by name, as laplace,2,steps=10 or gradient-descent,20,100,0.05,1,0.5 or "
        "renyi,orders=2:4:8,epsilons=0.02:0.04:0.1 or matrix,8,strategy=strategy.csv (also .npy). Repeat it to compose "
        f"several. Names: {', '.join(CLASSES)}.",
        rich_help_panel=RUN_PANEL,
    ),
]
TrialsOption = Annotated[
    float | None,
    typer.Option(
        TRIALS,
        help="Tuning counted in: the run is made a random number of times, this often on average, and only the best "
        "result is released (deniable.tuned).",
        rich_help_panel=RUN_PANEL,
    ),
]


def is_named(text: str) -> bool:
    """Return whether ``text`` begins with the name of a mechanism."""
    return text.split(",", maxsplit=1)[0] in CLASSES


def composed(texts: list[str], sought: float | None = None) -> Any:
    """Return the mechanism that the words of ``--mechanism`` name, composed if there are several.

    ``sought`` takes the place of the one number that is written ``?``.

    Raises
    ------
    InputError
        For an unknown name, a number that is missing or is none, or a file that cannot be read.
    """
    import deniable as dn

    made = [_made(text, sought) for text in texts]
    return made[0] if len(made) == 1 else dn.Composition(made)


def parameter_sought(texts: list[str]) -> tuple[str, bool] | None:
    """Return the parameter that is written ``?`` and whether it is a whole number, or None if there is none.

    Raises
    ------
    InputError
        If there are several.
    """
    found = [
        (name, str(_class(text).parameters[name].annotation) == "int")
        for text in texts
        for name, value in _arguments(text).items()
        if value == SOUGHT
    ]
    if len(found) > 1:
        raise InputError(f"{MECHANISM} may have one {SOUGHT}, got {len(found)} in {' '.join(texts)!r}")
    return found[0] if found else None


def filled(texts: list[str], found: str) -> list[str]:
    """Return the words with the number that was found in place of ``?``."""
    return [text.replace(SOUGHT, found) for text in texts]


def _class(text: str) -> inspect.Signature:
    import deniable as dn

    name = text.split(",", maxsplit=1)[0]
    if name not in CLASSES:
        near = difflib.get_close_matches(name, CLASSES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"{MECHANISM} {name!r} is not known; {hint}known: {', '.join(CLASSES)}")
    return inspect.signature(getattr(dn, CLASSES[name]))


def _arguments(text: str) -> dict[str, str]:
    """The words of ``text`` by parameter; what is missing is left to :func:`_made`."""
    known = _class(text).parameters
    places = [one.name for one in known.values() if one.kind is not one.KEYWORD_ONLY]
    name, *words = text.split(",")
    given: dict[str, str] = {}
    for index, word in enumerate(words):
        key, equals, value = word.partition("=")
        if equals:
            parameter, places = key.replace("-", "_"), []  # after a name, names only
        else:
            parameter, value = (places[index] if index < len(places) else ""), word
        if parameter not in known or parameter in given:
            raise InputError(f"{MECHANISM} {text!r}: {word!r} has no place; {name} takes {_form(name, known)}")
        given[parameter] = value
    return given


def _form(name: str, known: Any) -> str:
    needed = [f"{one.name}=…" for one in known.values() if one.default is one.empty]
    optional = [f"[{one.name}=…]" for one in known.values() if one.default is not one.empty]
    return ",".join([name, *needed, *optional])


def _made(text: str, sought: float | None) -> Any:
    import deniable as dn

    known, given = _class(text).parameters, _arguments(text)
    name = text.split(",", maxsplit=1)[0]
    missing = [one.name for one in known.values() if one.default is one.empty and one.name not in given]
    if missing:
        raise InputError(f"{MECHANISM} {text!r} lacks {', '.join(missing)}; {name} takes {_form(name, known)}")
    values = {parameter: _value(text, parameter, word, sought) for parameter, word in given.items()}
    try:
        return getattr(dn, CLASSES[name])(**values)
    except InputError as error:
        raise InputError(f"{MECHANISM} {text!r}: {error}") from None


def _value(text: str, parameter: str, word: str, sought: float | None) -> Any:
    if parameter == "strategy":
        return _matrix(Path(word))
    if word == SOUGHT:
        if sought is None:
            raise InputError(f"{MECHANISM} {text!r}: {SOUGHT} is for deniable calibrate, which finds that number")
        return sought
    words = word.split(":") if parameter in _LISTS else [word]
    try:
        numbers = [float(one) for one in words]
    except ValueError:
        many = ", or several as 2:4:8" if parameter in _LISTS else ""
        raise InputError(f"{MECHANISM} {text!r}: {parameter} must be a number{many}, got {word!r}") from None
    return numbers if parameter in _LISTS else numbers[0]


def _matrix(path: Path) -> Any:
    """The matrix in a .npy file, or in a .csv file without a header."""
    import numpy as np

    if path.suffix not in (".npy", ".csv"):
        raise InputError(f"strategy must be a .csv or .npy file, got {str(path)!r}")
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        text = path.read_text()
        if not text.strip():
            raise EOFError
        return np.loadtxt(text.splitlines(), delimiter=",", ndmin=2)
    except OSError:
        raise InputError(f"strategy file {str(path)!r} cannot be read") from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        why = str(error).splitlines()[0] if str(error) else "it is empty"
        raise InputError(f"strategy file {str(path)!r} must hold a matrix of numbers and nothing else: {why}") from None
