"""Transforms of composed losses: nodes, lines and their decay."""
