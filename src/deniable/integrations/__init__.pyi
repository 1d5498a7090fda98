from deniable.integrations.display import MembershipRocDisplay as MembershipRocDisplay
from deniable.integrations.dp_event import from_dp_event as from_dp_event
from deniable.integrations.fitted import profile_estimator as profile_estimator
from deniable.integrations.interpret import from_interpret as from_interpret
from deniable.integrations.opacus import from_opacus as from_opacus
from deniable.integrations.private_run import make_private as make_private
