from deniable.releases.certificate import (
    Alternative as Alternative,
    HalfCertificate as HalfCertificate,
    Release as Release,
    ReleaseWarning as ReleaseWarning,
)
from deniable.releases.estimators import MembershipPrivate as MembershipPrivate
from deniable.releases.evidence import ReleaseError as ReleaseError
from deniable.releases.secret_half import release as release
from deniable.releases.statistics import (
    Histogram as Histogram,
    LinearStatistic as LinearStatistic,
    Mean as Mean,
    SecondMoment as SecondMoment,
)
