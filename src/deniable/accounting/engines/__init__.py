"""Engines: from a composed loss to certified brackets."""
