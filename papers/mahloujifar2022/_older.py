"""The older bounds that the figures draw beside the exact one, from a run's own curve."""

import deniable as dn


def humphries(run, delta):
    """Return the bound on the advantage from the run's optimal (ε, δ)."""
    return dn.bounds.humphries(max(dn.tradeoff(run).epsilon(delta), 0.0), delta=delta)


def pinsker(run):
    """Return Pinsker's bound from the Rényi divergence of an order near 1, never below KL, the better direction."""
    curve = dn.tradeoff(run)
    return dn.bounds.pinsker(min(curve.renyi(1.0001, direction) for direction in ("remove", "add")))
