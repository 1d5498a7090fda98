from deniable.integrations.display import MembershipRocDisplay as MembershipRocDisplay
from deniable.integrations.dp_event import from_dp_event as from_dp_event
from deniable.integrations.fitted import profile_estimator as profile_estimator
from deniable.integrations.interpret import DPEBM as DPEBM, from_interpret as from_interpret
from deniable.integrations.opacus import from_opacus as from_opacus, require_poisson as require_poisson
from deniable.integrations.private_run import (
    NOTES as NOTES,
    PrivateRun as PrivateRun,
    make_private as make_private,
)
from deniable.integrations.run_files import read_history as read_history, read_opacus as read_opacus
