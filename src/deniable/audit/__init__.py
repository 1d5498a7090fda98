"""Measured attacks: games, exact intervals, verdicts."""
