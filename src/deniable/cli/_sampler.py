"""How batches were drawn: the options that name a run which is not, or not only, Poisson-sampled."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, get_args

import typer

from deniable._check import InputError, integer
from deniable.cli._app import RUN_PANEL
from deniable.cli._mechanism import CLASSES, MECHANISM, TRIALS, composed, is_named

SAMPLER = "--sampler"
NOISE = "--noise-multiplier"
PERSON = "--records-per-person"
Sampler = Literal["poisson", "truncated", "without-replacement", "shuffled", "allocation"]


_option = partial(typer.Option, rich_help_panel=RUN_PANEL)


SamplerOption = Annotated[
    Sampler | None,
    _option(
        SAMPLER,
        help="How batches are drawn. poisson: each record independently (the least noise; Opacus and most accountants "
        "assume it). truncated: the same, cut to --max-batch. without-replacement: --batch-size of --n-records, "
        "afresh each step. shuffled: a permuted data set in --batches (most loaders; only a bracket is known, far "
        "above Poisson). allocation: each record in --batches-per-record of --batches per epoch (balls in bins). "
        "[default: poisson]",
    ),
]
BatchesOption = Annotated[float | None, _option("--batches", help="Batches per epoch: shuffled, allocation.")]
EpochsOption = Annotated[float | None, _option("--epochs", help="Epochs: shuffled, allocation. [default: 1]")]
PerRecordOption = Annotated[
    float | None,
    _option("--batches-per-record", help="Batches per epoch that contain each record: allocation. [default: 1]"),
]
BatchSizeOption = Annotated[float | None, _option("--batch-size", help="Records per batch: without-replacement.")]
MaxBatchOption = Annotated[float | None, _option("--max-batch", help="Most records per batch: truncated.")]
RecordsOption = Annotated[
    float | None, _option("--n-records", help="Number of records, public: truncated, without-replacement.")
]


class _Scheme(NamedTuple):
    """A mechanism's options without noise, and how many of them are needed; those of ``shares`` are not
    whole numbers."""

    options: dict[str, str]
    needed: int
    shares: tuple[str, ...] = ("--sample-rate",)


SCHEMES: dict[str, _Scheme] = {
    "poisson": _Scheme(
        {"--sample-rate": "sample_rate", "--steps": "steps", PERSON: "records_per_person"},
        2,
    ),
    "truncated": _Scheme(
        {"--sample-rate": "sample_rate", "--steps": "steps", "--max-batch": "max_batch", "--n-records": "n_records"},
        4,
    ),
    "without-replacement": _Scheme({"--batch-size": "batch", "--n-records": "n_records", "--steps": "steps"}, 3),
    "shuffled": _Scheme({"--batches": "batches", "--epochs": "epochs"}, 1),
    "allocation": _Scheme(
        {"--batches": "batches", "--epochs": "epochs", "--batches-per-record": "batches_per_record"},
        1,
    ),
}
assert set(SCHEMES) == set(get_args(Sampler))


def written(text: str) -> dict[str, Any]:
    """Return the options of a run written as noise,sample_rate,steps or sampler,noise and the sampler's other options,
    or as --mechanism takes it.

    Raises
    ------
    InputError
        If it is neither.
    """
    name, *rest = text.split(",")
    if name not in SCHEMES and is_named(text):
        return {MECHANISM: [text]}
    if name not in SCHEMES:
        name, rest = "poisson", text.split(",")
    options = [NOISE, *SCHEMES[name].options]
    try:
        values = [float(word) for word in rest]
    except ValueError:
        values = []
    if not 1 + SCHEMES[name].needed <= len(values) <= len(options):
        forms = "; ".join(
            f"{other},{','.join(option.lstrip('-') for option in [NOISE, *scheme.options])}"
            for other, scheme in SCHEMES.items()
            if other != "poisson"
        )
        raise InputError(
            f"run must be a .json file or noise_multiplier,sample_rate,steps, got {text!r}; other samplers: {forms}; "
            f"or what {MECHANISM} takes, as laplace,2"
        )
    return {SAMPLER: name, **dict(zip(options, values, strict=False))}


def _drawn_independently(run: dict[str, Any]) -> bool:
    """Whether the run has an exact curve for a person: Poisson-sampled steps, neither tuned nor named."""
    return run.get(SAMPLER) in (None, "poisson") and not run.get(MECHANISM) and run.get(TRIALS) is None


def described(run: dict[str, Any], sought: float | None = None) -> Any:
    """Return the mechanism of a run from the options that a person typed, all of which must belong to its sampler.

    ``sought`` takes the place of a ``?`` in --mechanism.

    Raises
    ------
    InputError
        For an option that is missing, or that goes with another sampler.
    """
    import deniable as dn

    if (together := run.get(PERSON)) is not None and not _drawn_independently(run):
        one = described(run | {PERSON: None}, sought)
        return dn.Grouped(one, integer("records_per_person", together, at_least=1))
    trials = run.get(TRIALS)
    if trials is not None:
        return dn.tuned(described(run | {TRIALS: None}, sought), trials=trials)
    if run.get(MECHANISM):
        others = [option for option, value in run.items() if value is not None and option != MECHANISM]
        if others:
            raise InputError(f"{others[0]} does not go with {MECHANISM}, which names the whole run")
        return composed(run[MECHANISM], sought)
    run = {option: value for option, value in run.items() if option not in (MECHANISM, TRIALS)}
    name = run.get(SAMPLER) or "poisson"
    scheme = SCHEMES[name]
    given = {option: value for option, value in run.items() if value is not None and option != SAMPLER}
    for option in given:
        if option != NOISE and option not in scheme.options:
            homes = ", ".join(other for other, known in SCHEMES.items() if option in known.options)
            raise InputError(f"{option} does not go with {SAMPLER} {name}; it goes with {SAMPLER} {homes}")
    needed = [NOISE, *list(scheme.options)[: scheme.needed]]
    missing = [option for option in needed if option not in given]
    if missing:
        words = f"{', '.join(needed[:-1])} and {needed[-1]}"
        drawn = "" if name == "poisson" else f" with {SAMPLER} {name}"
        raise InputError(f"a DP-SGD run{drawn} needs {words}; missing: {', '.join(missing)}")
    arguments = {
        argument: given[option] if option in scheme.shares else integer(argument, given[option], at_least=1)
        for option, argument in scheme.options.items()
        if option in given
    }
    return getattr(dn, CLASSES[name])(given[NOISE], **arguments)
