"""One page of reference for every public name, read off the package, so that none is missing."""

import importlib
import inspect
import re
from typing import Any

import deniable

# rooms that have public names of their own, in the order in which a reader meets them
ROOMS = {
    "deniable.mechanisms": "What ran",
    "deniable.accounting": "From what ran to its curve",
    "deniable.accounting.steps": "A mechanism of your own",
    "deniable.curves": "Curves",
    "deniable.risks": "Other risks from a curve",
    "deniable.limits": "Limits",
    "deniable.planning": "Calibration and planning",
    "deniable.proof": "A second computation",
    "deniable.bounds": "Closed forms: what ε and δ mean",
    "deniable.unlearning": "Unlearning",
    "deniable.training": "Models fitted to a membership target",
    "deniable.synthesis": "Tables that are made up",
    "deniable.releases": "Releases",
    "deniable.noise": "Noise and private queries",
    "deniable.statistics": "Statistics of a table",
    "deniable.noise.rounding": "Rounded noise",
    "deniable.records": "Record by record",
    "deniable.audit": "Measured attacks",
    "deniable.tables": "Tables",
    "deniable.report": "Reports",
    "deniable.workflows": "Reports while a run trains",
    "deniable.integrations": "Other libraries",
    "deniable.integrations.opacus": "Opacus",
}

INNER = {  # exported for other packages of deniable: no user calls them, and no page promises that they stay
    "deniable.audit": {"log_mixture"},
    "deniable.accounting": {
        *("Case", "Dominated", "GaussianMixtureStep", "Repeated", "ReplacedGaussianStep", "Step", "first_engine"),
        *("truncated", "truncated_around"),
    },
    "deniable.accounting.steps": {"Cut", "Repeated"},
    "deniable.curves": {
        *("BracketTradeoff", "Charged", "EnvelopeTradeoff", "SmallestTradeoff", "gaussian_hockey_stick"),
        *("FailureTradeoff", "randomized_response_divergence", "with_assumptions", "with_note"),
        *("ChainTradeoff", "FAILURES", "LEAST_RATE", "TINY", "accuracy_from", "directions", "outward"),
        *("with_batches_of", "with_failure"),
    },
    "deniable.integrations": {
        "DPEBM",
        "NOTES",
        "PrivateRun",
        "read_history",
        "read_opacus",
        "require_poisson",
    },
    "deniable.planning": {"AsTellingAs"},
    "deniable.training": {"fit_column", "labels_of"},
    "deniable.releases": {"LinearStatistic"},
    "deniable.report": {
        *("Asked", "ComparedRow", "FIELDS", "KINDS"),
        *("NOTHING", "NOT_COVERED", "OTHER_ATTACKS", "OTHER_RISKS", "of_verdict", "promise_curve"),
        *("POPULATION_GAME", "Status", "TUNING_WARNING", "attack_section", "audit_section"),
        *("bound_headline", "bound_section", "caveats", "compared", "read_meta"),
        *("renderable", "risk_section", "roc_curve", "roc_picture", "side_by_side"),
        *("sure_of",),
    },
    "deniable.risks": {"replaced", "require_universal"},
    "deniable.statistics": {"Row"},
    "deniable.tables": {
        *("Block", "CellFormat", "ColumnCells", "ColumnsOnDisk", "Opened", "RowPart", "Source"),
        *("advice_on_keys", "kind_counts", "kind_of", "typed"),
        *(
            "as_frame",
            "as_schema",
            "as_source",
            "as_table",
            "copies_line",
            "each_pair",
            "encode",
            "few",
            "flag_of",
            "listed",
        ),
        *("listed", "mapped_rows", "near", "on_disk", "open_table", "persons_of", "read_cell", "read_cells"),
        *("shorthand", "spelled", "target_among", "values_of"),
    },
}

ARRAYS = (
    "``ArrayLike`` is whatever NumPy makes an array of; ``FloatArray``, ``IntArray`` and ``BoolArray`` are arrays of",
    "64-bit floats, 64-bit integers and truth values; ``Labels`` is an array of any kind.",
)


def listed(module: Any) -> list[str]:
    """Return the public names of a module: its ``__all__``, or what it defines itself without an underscore."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return sorted(name for name in own if not name.startswith("_"))


def sections() -> list[tuple[str, str, list[str]]]:
    """Return (title, module, names): the package's own names first, then what only a room exports."""
    top = [name for name in sorted(deniable.__all__) if not inspect.ismodule(getattr(deniable, name))]
    found = [("The front door", "deniable", top)]
    values = [getattr(deniable, name) for name in top]
    for path, title in ROOMS.items():
        module = importlib.import_module(path)
        names = [n for n in listed(module) if not any(getattr(module, n) is value for value in values)]
        names = [n for n in names if n not in INNER.get(path, ())]
        documented = [n for n in names if inspect.isclass(getattr(module, n)) or inspect.isroutine(getattr(module, n))]
        if documented:
            found.append((title, path, documented))
    return found


def examples() -> dict[str, str]:
    """Return the example of each name: its docstring's own, or that of the name to which its docstring refers."""
    homes = {path: importlib.import_module(path) for _, path, _ in sections()}
    texts = {n: inspect.getdoc(getattr(homes[path], n)) or "" for _, path, names in sections() for n in names}
    own = {n: "\n\n".join(re.findall(r"^>>> .*?(?=\n\n|\Z)", text, re.M | re.S)) for n, text in texts.items()}
    referred = {n: re.search(r"^See ``(\w+)``\.$", text, re.M) for n, text in texts.items()}
    return own | {n: own[found[1]] for n, found in referred.items() if found}


def page() -> str:
    """Return the overview page, which makes one page a name."""
    lines = ["API reference", "=============", "", *ARRAYS, ""]
    for title, module, names in sections():
        lines += [title, "-" * len(title), "", f".. currentmodule:: {module}", "", ".. autosummary::"]
        lines += ["   :toctree: api", "   :nosignatures:", "", *(f"   {name}" for name in names), ""]
    return "\n".join(lines)
