"""Laws of one step: one file per mechanism. A mechanism of your own is a subclass of :class:`Step`."""

from deniable.accounting.steps.base import LossCells, Repeated, Step, atoms, joined

__all__ = ["LossCells", "Repeated", "Step", "atoms", "joined"]
