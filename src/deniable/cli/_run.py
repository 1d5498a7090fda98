"""A DP-SGD run named by three options."""

from __future__ import annotations

from typing import Any

from deniable._check import InputError, integer

RUN_PANEL = "DP-SGD run"
Options = dict[str, float | None]


def run_options(noise_multiplier: float | None, sample_rate: float | None, steps: float | None) -> Options:
    """Return the three options by the names that a person typed."""
    return {"--noise-multiplier": noise_multiplier, "--sample-rate": sample_rate, "--steps": steps}


def is_given(run: Options) -> bool:
    """Return whether any of the three was given."""
    return any(value is not None for value in run.values())


def mechanism(run: Options) -> Any:
    """Return the run as a mechanism; all three options are needed."""
    import deniable as dn

    sigma, rate, steps = run.values()
    if sigma is None or rate is None or steps is None:
        missing = ", ".join(name for name, value in run.items() if value is None)
        raise InputError(f"a DP-SGD run needs --noise-multiplier, --sample-rate and --steps; missing: {missing}")
    return dn.SubsampledGaussian(sigma, rate, integer("steps", steps, at_least=1))
