"""The one way to write a run: ``dpsgd,1,0.01,5000 + laplace,2``, ``person,3: epsilon,1,1e-5``, or a file of one."""

from __future__ import annotations

import difflib
import inspect
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from deniable._check import Caution, InputError, integer

if TYPE_CHECKING:
    from deniable.mechanisms import Mechanism

UNKNOWN = "?"  # in place of the number that calibrate looks for
NAMES = (
    "dpsgd", "truncated", "without-replacement", "shuffled", "allocation", "gradient-descent", "matrix", "laplace",
    "discrete-laplace", "discrete-gaussian", "randomized-response", "bounded-range", "finite-pair", "epsilon",
    "gaussian", "renyi", "zero-concentrated",
)  # fmt: skip
PREFIXES = ("person", "tuned")
_LISTS = ("orders", "epsilons", "p", "q")
_FILES = ("path", "strategy")
_PLUS = re.compile(r"\s+\+\s+|\+(?=[A-Za-z-]+,)")  # 1e+5 is a number
_PREFIX = re.compile(r"\s*([A-Za-z]+),([^:,]*):\s*(?=\S)(.*)", re.DOTALL)
_ALSO = {"sigma": "noise_multiplier", "noise": "noise_multiplier", "q": "sample_rate", "rate": "sample_rate"}
_ROUNDING = 1e-9  # of 1/rate, where batches divide the records
_EPOCHS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*epochs?", re.IGNORECASE)
_TABLES = (".csv", ".tsv", ".parquet", ".feather", ".xlsx")
_TORCH, _HISTORY = (".pt", ".pth", ".ckpt"), ".json"

RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        show_default=False,
        help="What ran: dpsgd,NOISE,RATE,STEPS, as dpsgd,1,256/60000,10 epochs; epsilon,EPSILON,DELTA; gaussian,MU; "
        "laplace,SCALE; allocation, shuffled and others (all: --help-all); 'A + B' both; 'person,3: A' for a person of "
        "three records; 'tuned,5: A' for the best of some five runs; a file of Opacus (.pt) or a history (.json).",
    ),
]


def read_run(text: str, sought: float | None = None) -> Mechanism:
    """Return the mechanism that the words name; ``sought`` takes the place of the one number that is written ``?``.

    Raises
    ------
    InputError
        For an unknown name, a number that is missing or is none, or a file that cannot be read.
    """
    from deniable.mechanisms import Composition

    prefixes, parts = _words(text)
    made = [part.made(sought) for part in parts]
    if len({one.unit for one in made}) > 1:
        made = [one.with_notes(unit=one.unit or "record") for one in made]  # words are about records
    run = made[0] if len(made) == 1 else Composition(made)
    for prefix in reversed(prefixes):
        run = prefix.made(sought, run)
    return run


def unknown(text: str) -> tuple[str, bool]:
    """Return the parameter that is written ``?`` and whether it is a whole number.

    Raises
    ------
    InputError
        If there is none, or several.
    """
    prefixes, parts = _words(text)
    found = [
        (name, get_type_hints(word.kind).get(name) is int)
        for word in (*prefixes, *parts)
        for name, value in word.given.items()
        if value == UNKNOWN
    ]
    if len(found) != 1:
        example = f"dpsgd,{UNKNOWN},0.01,5000" if found else with_unknown(text) or f"dpsgd,{UNKNOWN},0.01,5000"
        raise InputError(
            f"run must have one {UNKNOWN} in place of the number to find, as {example!r}; got {len(found) or 'none'} "
            f"in {text!r}"
        )
    return found[0]


def with_unknown(text: str) -> str | None:
    """Return the run with its first number written ``?``; None where that is no question, as for a sum or a file."""
    _, parts = _words(text)
    if len(parts) > 1 or not parts[0].given or next(iter(parts[0].given)) in (*_LISTS, "path"):
        return None
    head = text.rfind(":") + 1
    return text[:head] + re.sub(r",([^,=]*=)?[^,]*", rf",\1{UNKNOWN}", text[head:], count=1)


def files_of(text: str) -> list[str]:
    """Return the files that a run names; none of what is no run."""
    try:
        parts = _words(text)[1]
    except InputError:
        return []
    return [value for part in parts for name, value in part.given.items() if name in _FILES]


def is_run(text: str) -> bool:
    """Return whether ``text`` begins as a run does."""
    return _named(re.split("[,:]", text, maxsplit=1)[0].strip()) in (*NAMES, *PREFIXES) or _is_file(text)


def _named(name: str) -> str:
    """The name as we write it: letters and hyphens of DP-SGD are as its writer likes them."""
    return re.sub("^dp-sgd$", "dpsgd", name.lower().replace("_", "-"))


def _is_file(text: str) -> bool:
    return text.strip().lower().endswith((*_TORCH, _HISTORY))


@dataclass(frozen=True)
class _Word:
    """A name and its numbers: ``given`` by parameter of ``kind``, which makes the mechanism."""

    text: str
    kind: Callable[..., Mechanism]
    given: Mapping[str, str] = field(hash=False)

    def made(self, sought: float | None, *run: Mechanism) -> Mechanism:
        """Return the mechanism; ``run`` is what a prefix stands before."""
        values = {name: _value(self.text, name, value, sought) for name, value in self.given.items()}
        try:
            return self.kind(*run, **values)
        except InputError as error:
            raise InputError(f"run {self.text!r}: {error}") from None


def _words(text: str) -> tuple[list[_Word], list[_Word]]:
    """The prefixes and the parts of a run."""
    prefixes = []
    while (match := _PREFIX.fullmatch(text)) and match[1].lower() not in NAMES:
        if (name := match[1].lower()) not in PREFIXES:
            raise InputError(_no_name(text, name))
        prefixes.append(_word(f"{name},{match[2]}", PREFIXES, 1))
        text = match[3]
    return prefixes, [_word(part.strip(), NAMES, 0) for part in _PLUS.split(text)]


def _word(text: str, known: tuple[str, ...], taken: int) -> _Word:
    name, *numbers = (word.strip() for word in text.split(","))
    if taken == 0 and _is_file(text):
        return _Word(text, _read, {"path": text})
    name = _named(name)
    if name not in known:
        raise InputError(_no_name(text, name))
    kind = _kinds()[name]
    parameters = dict(list(inspect.signature(kind).parameters.items())[taken:])
    places = [one.name for one in parameters.values() if one.kind is not one.KEYWORD_ONLY]
    given: dict[str, str] = {}
    for index, number in enumerate(numbers):
        key, equals, value = number.partition("=")
        if equals:
            parameter, places = key.strip().lower().replace("-", "_"), []  # after a name, names only
            parameter = _ALSO.get(parameter, parameter) if parameter not in parameters else parameter
        else:
            parameter, value = (places[index] if index < len(places) else ""), number
        if parameter not in parameters or parameter in given:
            raise InputError(f"run {text!r}: {number!r} has no place; write {_form(name, parameters)}")
        given[parameter] = value.strip()
    rate, steps = _number(given.get("sample_rate", "")), given.get("steps", "")
    if "sample_rate" in given and (passes := _EPOCHS.fullmatch(steps)):
        if rate is None or not 0 < rate <= 1:
            raise InputError(f"run {text!r}: epochs need a rate in (0, 1], as 256/60000, got {given['sample_rate']!r}")
        batches = math.ceil(1 / rate - _ROUNDING)  # whole passes of whole batches
        given["steps"] = str(math.ceil(float(passes[1])) * batches)
    elif rate and "/" in given["sample_rate"] and steps.isdecimal() and int(steps) * rate < 1:
        warnings.warn(f"run {text!r}: {steps} steps are {int(steps) * rate:.2g} epochs", Caution, stacklevel=2)
    missing = [one.name for one in parameters.values() if one.default is one.empty and one.name not in given]
    if missing:
        raise InputError(f"run {text!r} lacks {', '.join(missing)}; write {_form(name, parameters)}")
    return _Word(text, kind, given)


def _no_name(text: str, name: str) -> str:
    if name in PREFIXES:
        return f"run {text!r}: {name} must stand before the whole run, as {name},3: dpsgd,1,0.01,5000"
    if Path(text).suffix.lower() in _TABLES:
        return f"run {text!r} looks like a table; of a table: deniable check, train, publish, attack or profile"
    hint = f"did you mean {guess}? " if (guess := meant(text)) else ""
    return (
        f"run {text!r} must begin with a name, as dpsgd,1,0.01,5000, or be a .json or .pt file; {hint}names: "
        f"{', '.join(NAMES)}"
    )


def meant(text: str) -> str:
    """Return the run that words may have meant, which can be read; nothing if none is near."""
    first, *rest = re.split("[,=:]", re.sub(r"[\s;(]+", ",", text.strip(" )")), maxsplit=1)
    near, tail = difflib.get_close_matches(_named(first), (*NAMES, *PREFIXES), n=1), "".join(rest).strip(",")
    if _number(first) is not None:
        near, tail = ["dpsgd" if tail.count(",") == 1 else "epsilon"], f"{first},{tail}".strip(",")
    for guess in (f"{name},{words}" for name in near for words in (tail, text[len(first) + 1 :], f"3: {tail}")):
        with suppress(InputError):
            read_run(guess, 1.0)
            return guess
    return ""


def _form(name: str, parameters: Mapping[str, Any]) -> str:
    words = [one.name if one.default is one.empty else f"[{one.name}]" for one in parameters.values()]
    return ",".join([name, *(word.upper() for word in words)])


def forms() -> list[str]:
    """Return how each kind of run is written."""
    parameters = {name: inspect.signature(kind).parameters for name, kind in _kinds().items()}
    prefixes = [_form(name, dict(list(parameters[name].items())[1:])) + ": RUN" for name in PREFIXES]
    return [*(_form(name, parameters[name]) for name in NAMES), *prefixes, "RUN + RUN"]


def _value(text: str, parameter: str, word: str, sought: float | None) -> Any:
    if parameter in _FILES:
        return _matrix(Path(word)) if parameter == "strategy" else word
    if word == UNKNOWN:
        if sought is None:
            raise InputError(f"run {text!r}: {UNKNOWN} is for deniable calibrate and plan, which find that number")
        return sought
    words = word.split(":") if parameter in _LISTS else [word]
    numbers = [_number(one) for one in words]
    if None in numbers:
        many = ", or several as 2:4:8" if parameter in _LISTS else ""
        both = "; write two runs as A + B" if " " in word else ""
        raise InputError(f"run {text!r}: {parameter} must be a number{many}, got {word!r}{both}")
    return numbers if parameter in _LISTS else numbers[0]


def _number(word: str) -> float | None:
    """What a person writes as a number: 0.01, 1.67%, 256/60000; None for anything else."""
    above, sign, below = word.rstrip().removesuffix("%").partition("/")
    try:
        return float(above) / (float(below) if sign else 1.0) / (100 if word.rstrip().endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        return None


@cache
def _kinds() -> dict[str, Callable[..., Mechanism]]:
    from deniable import mechanisms as m

    made = (
        m.SubsampledGaussian, m.TruncatedPoisson, m.WithoutReplacement, m.ShuffledBatches, m.RandomAllocation,
        m.NoisyGradientDescent, m.MatrixMechanism, m.Laplace, m.DiscreteLaplace, m.DiscreteGaussian,
        m.RandomizedResponse, m.BoundedRange, m.FinitePair, _epsilon, m.GaussianDP, m.RenyiDP, m.ZeroConcentratedDP,
    )  # fmt: skip
    return dict(zip((*NAMES, *PREFIXES), (*made, _person, _tuned_run), strict=True))


def _epsilon(epsilon: float, delta: float = 0.0) -> Any:
    from deniable.mechanisms import ApproximateDP, PureDP

    return ApproximateDP(epsilon, delta) if delta else PureDP(epsilon)


def _tuned_run(run: Any, trials: int) -> Any:
    from deniable.mechanisms import tuned

    return tuned(run, trials=trials)


def _person(run: Any, records: int) -> Any:
    from deniable.mechanisms import Composition, Grouped, SubsampledGaussian

    count = integer("records", records, at_least=1)
    parts: Any = run.mechanisms if isinstance(run, Composition) else (run,)
    if not all(isinstance(part, SubsampledGaussian) and part.records_per_person == 1 for part in parts):
        return Grouped(run, count)
    phases = [replace(part, records_per_person=count) for part in parts]  # exact
    return (phases[0] if len(phases) == 1 else Composition(phases)).with_notes(run.notes)


def _read(path: str) -> Any:
    from deniable.integrations import read_history, read_opacus

    return read_history(path) if path.lower().endswith(_HISTORY) else read_opacus(path)


def _matrix(path: Path) -> Any:
    """The matrix in a .npy file, or in a .csv file without a header."""
    import numpy as np

    if path.suffix not in (".npy", ".csv"):
        raise InputError(f"strategy must be a .csv or .npy file, got {str(path)!r}")
    try:
        return np.load(path) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
    except OSError:
        raise InputError(f"strategy file {str(path)!r} cannot be read") from None
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise InputError(f"strategy file {str(path)!r} must hold a matrix of numbers and nothing else") from None
