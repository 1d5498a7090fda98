"""Tables that are made up: rows drawn from noisy counts, every query of the data in one account."""

from deniable.synthesis.fits import SynthesisWarning
from deniable.synthesis.marginals import CountInterval, Marginal
from deniable.synthesis.synthesizer import PrivateSynthesizer

__all__ = ["CountInterval", "Marginal", "PrivateSynthesizer", "SynthesisWarning"]
