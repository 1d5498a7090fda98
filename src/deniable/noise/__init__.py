"""What draws noise: laws, samplers, private queries of one account, and the certificate of what they released.

Names outside ``__all__`` are for other packages of deniable.
"""

from deniable.mechanisms import Receipt as Receipt, entered as entered
from deniable.noise.certificate import (
    AS_GIVEN as AS_GIVEN,
    Account as Account,
    Certificate,
    certificate_of as certificate_of,
    enter as enter,
    points as points,
)
from deniable.noise.columns import (
    CELLS as CELLS,
    CLEAR as CLEAR,
    COUNT_NOISE as COUNT_NOISE,
    KINDS_SHARE as KINDS_SHARE,
    REPLACED as REPLACED,
    ColumnKind as ColumnKind,
    ask_kinds as ask_kinds,
    cell_ends as cell_ends,
    find_range as find_range,
    standing_out as standing_out,
)
from deniable.noise.laws import GaussianNoise, NoiseLaw as NoiseLaw, NormLaplaceNoise
from deniable.noise.queries import (
    SHARED as SHARED,
    Channel as Channel,
    NoiseSource as NoiseSource,
    Paid as Paid,
    Queries as Queries,
    QueryBudget as QueryBudget,
    RankWeights as RankWeights,
    SumNoise as SumNoise,
    Units as Units,
    Use,
    units_of as units_of,
)
from deniable.noise.silence import only_our_words as only_our_words, sealed as sealed

__all__ = ["Certificate", "GaussianNoise", "NormLaplaceNoise", "Use"]
