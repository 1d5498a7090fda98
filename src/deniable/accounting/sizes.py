"""Numbers that all of accounting shares: how much is computed at a time, and what nobody would miss."""

import math

POINTS = 1 << 13  # of a lattice of a class, unless someone asks for a sketch,
PATIENT = 1 << 15  # or has patience; of a line, for every kind of step
BLOCK = 1 << 17  # entries of an array, or of a list of outcomes, that is held at a time: a few MB
MOST = 1 << 20  # terms of a sum, and entries of all that is kept
ROUNDS = 12  # of a search
FAR = 40.0  # deviations of a bell, or nats, beyond which there is nothing
DIGITS = 55.0  # −log of what a curve, a cut or a node that is left out may contribute, relative to the whole
UNLIKELY = 1e-60  # mass that nobody asks for
NEGLIGIBLE = math.sqrt(UNLIKELY)  # mass, and hockey sticks, that need no relative accuracy
UNDERFLOW = 1e-285  # charged for numbers below all doubles; smaller masses may lack some
WIDE = 2e-5  # relative width from which a law without transforms, and another curve of the same worlds, is asked
