"""One-step laws beside dp-accounting: δ at one ε from both, the width of either bracket, and CPU seconds.

    pip install dp-accounting==0.6.0 && python benchmarks/accounting/one_step_laws.py

dp-accounting's pessimistic and optimistic estimates (value discretisation 1e-4) must meet our bracket; where they do
not, the last column says so.
"""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as pld

import deniable as dn

INTERVAL = 1e-4


def cases() -> Iterator[tuple[str, Any, Callable[..., Any], float, int]]:
    """Name, our mechanism, dp-accounting's one-step law, ε, and how often it is composed."""
    yield "Laplace(10)", dn.Laplace(10.0, steps=1000), lambda **k: pld.from_laplace_mechanism(10.0, **k), 2.0, 1000
    yield (
        "Laplace(1), rate 0.01",
        dn.Laplace(1.0, steps=1000, sample_rate=0.01),
        lambda **k: pld.from_laplace_mechanism(1.0, sampling_prob=0.01, **k),
        1.0,
        1000,
    )
    yield (
        "DiscreteLaplace(20), moved 3",
        dn.mechanisms.DiscreteLaplace(20.0, 3, 100),
        lambda **k: pld.from_discrete_laplace_mechanism(0.05, 3, **k),
        1.0,
        100,
    )
    yield (
        "DiscreteGaussian(30)",
        dn.DiscreteGaussian(30.0, 1, 1000),
        lambda **k: pld.from_discrete_gaussian_mechanism(30.0, 1, **k),
        2.0,
        1000,
    )
    yield (
        "DiscreteGaussian(3), rate 0.1",
        dn.DiscreteGaussian(3.0, 1, 100, 0.1),
        lambda **k: pld.from_discrete_gaussian_mechanism(3.0, 1, sampling_prob=0.1, **k),
        0.5,
        100,
    )
    yield (
        "RandomizedResponse(0.5, 5)",
        dn.RandomizedResponse(0.5, 5, 50),
        lambda **k: pld.from_randomized_response(5 / (5 - 1 + 2.718281828459045**0.5), 5, **k),
        3.0,
        50,
    )
    yield (
        "Person of 4 records",
        dn.SubsampledGaussian(1.0, 0.01, 100, 4),
        lambda **k: pld.from_mixture_gaussian_mechanism(
            1.0, [0, 1, 2, 3, 4], [0.99**4, 4 * 0.99**3 * 0.01, 6 * 0.99**2 * 1e-4, 4 * 0.99 * 1e-6, 1e-8], **k
        ),
        0.5,
        100,
    )


def main() -> None:
    """Print one row a law."""
    logging.disable(logging.WARNING)  # about the algorithm of optimistic estimates
    print("| law | count | ε | δ, ours | width | CPU s | dp-accounting, pessimistic | its width | CPU s | meets |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, mechanism, theirs, epsilon, count in cases():
        start = time.process_time()
        t = dn.tradeoff(mechanism)
        low, high = t.delta(epsilon, side="lower"), t.delta(epsilon)
        ours = time.process_time() - start
        start = time.process_time()
        above, below = (
            theirs(pessimistic_estimate=side, value_discretization_interval=INTERVAL)
            .self_compose(count)
            .get_delta_for_epsilon(epsilon)
            for side in (True, False)
        )
        other = time.process_time() - start
        meets = below <= high * (1 + 1e-9) + 1e-14 and low <= above * (1 + 1e-9) + 1e-14
        print(
            f"| {name} | {count} | {epsilon:g} | {high:.10e} | {high - low:.1e} | {ours:.2f} | {above:.10e} "
            f"| {above - below:.1e} | {other:.2f} | {'yes' if meets else 'NO'} |"
        )


if __name__ == "__main__":
    main()
