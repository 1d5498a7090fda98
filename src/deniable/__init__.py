"""deniable: could an attacker tell whether a person's record was in the training data?

The public names are listed in ``__all__``; ``help(deniable.assess)`` is a good start. Names are imported when
first used, so that ``import deniable`` stays quick; one whose libraries are missing says which line installs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from deniable._check import InputError
from deniable._optional import EXTRA_OF_ROOM, missing
from deniable.mechanisms import (
    ApproximateDP,
    BoundedRange,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    FinitePair,
    GaussianDP,
    Grouped,
    Laplace,
    MatrixMechanism,
    Mechanism,
    NoisyGradientDescent,
    PureDP,
    RandomAllocation,
    RandomizedResponse,
    RenyiDP,
    ShuffledBatches,
    SubsampledGaussian,
    TruncatedPoisson,
    WithoutReplacement,
    ZeroConcentratedDP,
    tuned,
)

if TYPE_CHECKING:
    from deniable import bounds, unlearning
    from deniable._parallel import cluster
    from deniable.accounting import GaussianFilter, RenyiFilter, individual_tradeoffs, tradeoff
    from deniable.audit import (
        SequentialAudit,
        attack_estimator,
        attack_model,
        attack_synthetic,
        audit_scores,
        canaries,
        check_promise,
        promise,
    )
    from deniable.curves import Assumptions, Tradeoff
    from deniable.integrations.display import MembershipRocDisplay
    from deniable.integrations.dp_event import from_dp_event
    from deniable.integrations.fitted import profile_estimator
    from deniable.integrations.interpret import from_interpret
    from deniable.integrations.opacus import from_opacus
    from deniable.integrations.private_run import make_private
    from deniable.integrations.sklearn import MembershipPrivate
    from deniable.limits import Limit
    from deniable.noise import exact_membership, release
    from deniable.planning import calibrate, plan_samplers, plan_subsampling
    from deniable.records import ObjectivePerturbation, OutputPerturbation, privacy_profile
    from deniable.report import Assessment, Policy
    from deniable.statistics import release_statistics
    from deniable.training import PrivateClassifier, PrivateRegressor
    from deniable.workflows import OpacusCallback, assess, compare

# public name → the module that holds it; a module's own path stands for the module itself
_LAZY: dict[str, str] = {
    "Assessment": "deniable.report",
    "Assumptions": "deniable.curves",
    "GaussianFilter": "deniable.accounting",
    "MembershipPrivate": "deniable.integrations.sklearn",
    "MembershipRocDisplay": "deniable.integrations.display",
    "ObjectivePerturbation": "deniable.records",
    "OpacusCallback": "deniable.workflows",
    "Limit": "deniable.limits",
    "OutputPerturbation": "deniable.records",
    "Policy": "deniable.report",
    "PrivateClassifier": "deniable.training",
    "PrivateRegressor": "deniable.training",
    "SequentialAudit": "deniable.audit",
    "RenyiFilter": "deniable.accounting",
    "Tradeoff": "deniable.curves",
    "assess": "deniable.workflows",
    "attack_estimator": "deniable.audit",
    "attack_model": "deniable.audit",
    "attack_synthetic": "deniable.audit",
    "audit_scores": "deniable.audit",
    "bounds": "deniable.bounds",
    "calibrate": "deniable.planning",
    "canaries": "deniable.audit",
    "check_promise": "deniable.audit",
    "cluster": "deniable._parallel",
    "compare": "deniable.workflows",
    "exact_membership": "deniable.noise",
    "from_dp_event": "deniable.integrations.dp_event",
    "from_opacus": "deniable.integrations.opacus",
    "from_interpret": "deniable.integrations.interpret",
    "individual_tradeoffs": "deniable.accounting",
    "make_private": "deniable.integrations.private_run",
    "plan_samplers": "deniable.planning",
    "plan_subsampling": "deniable.planning",
    "privacy_profile": "deniable.records",
    "profile_estimator": "deniable.integrations.fitted",
    "promise": "deniable.audit",
    "release": "deniable.noise",
    "release_statistics": "deniable.statistics",
    "tradeoff": "deniable.accounting",
    "unlearning": "deniable.unlearning",
}

# rooms whose further names are reached as ``deniable.noise.Mean``
_ROOMS = (
    "accounting", "audit", "noise", "planning", "records", "report", "statistics", "tables", "testing", "training"
)  # fmt: skip

__all__ = [
    "ApproximateDP",
    "Assessment",
    "Assumptions",
    "BoundedRange",
    "Composition",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FinitePair",
    "GaussianDP",
    "GaussianFilter",
    "Grouped",
    "InputError",
    "Laplace",
    "Limit",
    "MatrixMechanism",
    "Mechanism",
    "MembershipPrivate",
    "MembershipRocDisplay",
    "NoisyGradientDescent",
    "ObjectivePerturbation",
    "OpacusCallback",
    "OutputPerturbation",
    "Policy",
    "PrivateClassifier",
    "PrivateRegressor",
    "PureDP",
    "RandomAllocation",
    "RandomizedResponse",
    "RenyiDP",
    "RenyiFilter",
    "SequentialAudit",
    "ShuffledBatches",
    "SubsampledGaussian",
    "Tradeoff",
    "TruncatedPoisson",
    "WithoutReplacement",
    "ZeroConcentratedDP",
    "assess",
    "attack_estimator",
    "attack_model",
    "attack_synthetic",
    "audit_scores",
    "bounds",
    "calibrate",
    "canaries",
    "check_promise",
    "cluster",
    "compare",
    "exact_membership",
    "from_dp_event",
    "from_interpret",
    "from_opacus",
    "individual_tradeoffs",
    "make_private",
    "plan_samplers",
    "plan_subsampling",
    "privacy_profile",
    "profile_estimator",
    "promise",
    "release",
    "release_statistics",
    "tradeoff",
    "tuned",
    "unlearning",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # slow to import, and rarely asked for

        return version("deniable")
    home = f"deniable.{name}" if name in _ROOMS else _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    try:
        module = importlib.import_module(home)
    except ImportError as error:
        raise missing(error, f"deniable.{name}", EXTRA_OF_ROOM.get(home.split(".")[1])) from error
    value = module if home == f"deniable.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, *(name for name in globals() if name.startswith("__"))})
