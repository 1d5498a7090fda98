from deniable.report.annexing import KINDS as KINDS
from deniable.report.comparing import ComparedRow as ComparedRow, Comparison as Comparison, compared as compared
from deniable.report.decision import NOTHING as NOTHING, Decision as Decision, Rule as Rule
from deniable.report.meta import FIELDS as FIELDS, hashed_file as hashed_file, read_meta as read_meta
from deniable.report.model import (
    Assessment as Assessment,
    Bars as Bars,
    Curve as Curve,
    Grid as Grid,
    Number as Number,
    Section as Section,
    Series as Series,
    Status as Status,
)
from deniable.report.page import roc_picture as roc_picture
from deniable.report.policy import Policy as Policy
from deniable.report.sections import (
    CERTIFIED as CERTIFIED,
    MEASURED as MEASURED,
    NOISE as NOISE,
    NOT_COVERED as NOT_COVERED,
    OTHER_ATTACKS as OTHER_ATTACKS,
    OTHER_RISKS as OTHER_RISKS,
    POPULATION_GAME as POPULATION_GAME,
    TUNING_WARNING as TUNING_WARNING,
    Asked as Asked,
    attack_section as attack_section,
    audit_section as audit_section,
    bound_headline as bound_headline,
    bound_section as bound_section,
    caveats as caveats,
    of_verdict as of_verdict,
    promise_curve as promise_curve,
    risk_section as risk_section,
    roc_curve as roc_curve,
    sure_of as sure_of,
)
from deniable.report.text import renderable as renderable, side_by_side as side_by_side
