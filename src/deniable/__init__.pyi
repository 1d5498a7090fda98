# The public names, each once, with the room that holds it; what a line imports from deniable itself is a room.
from deniable import (
    accounting as accounting,
    audit as audit,
    bounds as bounds,
    curves as curves,
    integrations as integrations,
    mechanisms as mechanisms,
    noise as noise,
    planning as planning,
    proof as proof,
    records as records,
    releases as releases,
    report as report,
    statistics as statistics,
    synthesis as synthesis,
    tables as tables,
    testing as testing,
    training as training,
    unlearning as unlearning,
    workflows as workflows,
)
from deniable._check import InputError as InputError
from deniable.accounting import tradeoff as tradeoff
from deniable.audit import (
    SequentialAudit as SequentialAudit,
    attack_estimator as attack_estimator,
    attack_model as attack_model,
    attack_synthetic as attack_synthetic,
    audit_scores as audit_scores,
)
from deniable.curves import Tradeoff as Tradeoff
from deniable.integrations import (
    from_dp_event as from_dp_event,
    from_opacus as from_opacus,
    make_private as make_private,
    profile_estimator as profile_estimator,
)
from deniable.ledger import Ledger as Ledger
from deniable.limits import Limit as Limit
from deniable.mechanisms import (
    ApproximateDP as ApproximateDP,
    Composition as Composition,
    DiscreteGaussian as DiscreteGaussian,
    GaussianDP as GaussianDP,
    Laplace as Laplace,
    MatrixMechanism as MatrixMechanism,
    Mechanism as Mechanism,
    NoisyGradientDescent as NoisyGradientDescent,
    PureDP as PureDP,
    RandomAllocation as RandomAllocation,
    RandomizedResponse as RandomizedResponse,
    RenyiDP as RenyiDP,
    ShuffledBatches as ShuffledBatches,
    SubsampledGaussian as SubsampledGaussian,
    TruncatedPoisson as TruncatedPoisson,
    WithoutReplacement as WithoutReplacement,
    ZeroConcentratedDP as ZeroConcentratedDP,
)
from deniable.planning import calibrate as calibrate
from deniable.records import OutputPerturbation as OutputPerturbation, privacy_profile as privacy_profile
from deniable.releases import MembershipPrivate as MembershipPrivate, release as release
from deniable.report import Assessment as Assessment, Policy as Policy
from deniable.statistics import release_statistics as release_statistics
from deniable.synthesis import PrivateSynthesizer as PrivateSynthesizer
from deniable.tables import Schema as Schema
from deniable.training import PrivateClassifier as PrivateClassifier, PrivateRegressor as PrivateRegressor
from deniable.workflows import assess as assess, compare as compare

__version__: str
