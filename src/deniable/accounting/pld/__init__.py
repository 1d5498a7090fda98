"""A privacy loss distribution on lattices of many scales: one engine for all steps whose loss can be cut."""
