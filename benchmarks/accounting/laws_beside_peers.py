"""ε at δ = 1e-5 of nine laws beside every peer that serves them: value, side and relative CPU time in one table.

    python benchmarks/accounting/laws_beside_peers.py --peer "dp-accounting=PYTHON" --peer "PLD_accounting=PYTHON" …

PYTHON is an interpreter in whose environment that peer is installed: dp-accounting==0.6.0, PLD_accounting==2.0,
autodp, riskcal==1.5.1. Every answer comes from a process of its own with one thread, imports not counted; peers have
their defaults. ``side`` says where the peer's value lies against our certified bracket: above it (sound, so much is
lost), inside, or BELOW (no bound). ``time`` is CPU time divided by ours for the
same law. Without replacement, the noise of a replacement is half of that of one record.
"""

import argparse
import json
import os
import subprocess
import sys

DELTA = 1e-5
PLD = "from dp_accounting.pld import privacy_loss_distribution as pld"
WITHOUT = """
import dp_accounting as dp
from dp_accounting.rdp import RdpAccountant
run = dp.SampledWithoutReplacementDpEvent(1000, 50, dp.GaussianDpEvent(1.0))
def answer():
    accountant = RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    return accountant.compose(run, 80).get_epsilon(1e-5)
"""
AUTODP_WITHOUT = """
from autodp.mechanism_zoo import GaussianMechanism
from autodp.transformer_zoo import AmplificationBySampling, Composition
def answer():
    one = GaussianMechanism(1.0)
    one.neighboring, one.replace_one = "replace_one", True
    sampled = AmplificationBySampling(PoissonSampling=False)(one, 0.05, improved_bound_flag=False)
    return Composition()([sampled], [80]).get_approxDP(1e-5)
"""
AUTODP_SAMPLED = """
from autodp.mechanism_zoo import GaussianMechanism
from autodp.transformer_zoo import AmplificationBySampling, Composition
def answer():
    sampled = AmplificationBySampling(PoissonSampling=True)(GaussianMechanism(1.0), 0.01, improved_bound_flag=True)
    return Composition()([sampled], [1000]).get_approxDP(1e-5)
"""
AUTODP_LAPLACE = """
from autodp.mechanism_zoo import LaplaceMechanism
from autodp.transformer_zoo import Composition
def answer():
    return Composition()([LaplaceMechanism(10.0)], [1000]).get_approxDP(1e-5)
"""
RISKCAL_SAMPLED = """
from riskcal.accountants import CTDAccountant
def answer():
    accountant = CTDAccountant()
    accountant.history = [(1.0, 0.01, 1000)]
    return accountant.get_epsilon(delta=1e-5)
"""
PERSON = (
    "from_mixture_gaussian_mechanism(1.0, range(5), "
    "[0.96059601, 0.03881196, 0.00058806, 3.96e-6, 1e-8])"  # of 4 records, each with probability 0.01
)
ALLOCATION = """
from PLD_accounting.random_allocation_api import gaussian_allocation_epsilon_range
def answer():
    return gaussian_allocation_epsilon_range(delta=1e-5, sigma=1.0, num_steps=100, num_epochs=5)[0]
"""


def composed(law: str, count: int) -> str:
    """Return the program that asks dp-accounting for a composed law."""
    return f"{PLD}\ndef answer():\n    return pld.{law}.self_compose({count}).get_epsilon_for_delta(1e-5)\n"


# ours, and every peer's
LAWS: dict[str, tuple[str, dict[str, str]]] = {
    "SubsampledGaussian(1, 0.01, 1000)": (
        "dn.SubsampledGaussian(1.0, 0.01, 1000)",
        {
            "dp-accounting": composed("from_gaussian_mechanism(1.0, sampling_prob=0.01)", 1000),
            "autodp": AUTODP_SAMPLED,
            "riskcal": RISKCAL_SAMPLED,
        },
    ),
    "SubsampledGaussian(1, 0.01, 1000), 4 records per person": (
        "dn.SubsampledGaussian(1.0, 0.01, 1000, records_per_person=4)",
        {"dp-accounting": composed(PERSON, 1000)},
    ),
    "Laplace(10), 1,000 steps": (
        "dn.Laplace(10.0, steps=1000)",
        {"dp-accounting": composed("from_laplace_mechanism(10.0)", 1000), "autodp": AUTODP_LAPLACE},
    ),
    "Laplace(1), 1,000 steps at rate 0.01": (
        "dn.Laplace(1.0, 1.0, 1000, 0.01)",
        {"dp-accounting": composed("from_laplace_mechanism(1.0, sampling_prob=0.01)", 1000)},
    ),
    "DiscreteLaplace(20, 3), 100 steps": (
        "dn.mechanisms.DiscreteLaplace(20.0, 3, 100)",
        {"dp-accounting": composed("from_discrete_laplace_mechanism(0.05, 3)", 100)},
    ),
    "DiscreteGaussian(30), 1,000 steps": (
        "dn.DiscreteGaussian(30.0, 1, 1000)",
        {"dp-accounting": composed("from_discrete_gaussian_mechanism(30.0, 1)", 1000)},
    ),
    "DiscreteGaussian(10, 10), 1,000 steps at rate 0.01": (
        "dn.DiscreteGaussian(10.0, 10, 1000, 0.01)",
        {"dp-accounting": composed("from_discrete_gaussian_mechanism(10.0, 10, sampling_prob=0.01)", 1000)},
    ),
    "RandomAllocation(1, 100, 5)": ("dn.RandomAllocation(1.0, 100, 5)", {"PLD_accounting": ALLOCATION}),
    "WithoutReplacement(2, 50, 1000, 80)": (
        "dn.WithoutReplacement(2.0, 50, 1000, 80)",
        {"dp-accounting": WITHOUT, "autodp": AUTODP_WITHOUT},
    ),
}
_TIMED = """
import json, logging, time, warnings
logging.disable(logging.WARNING); warnings.simplefilter("ignore")
start = time.process_time(); value = answer()
print(json.dumps([value, time.process_time() - start]))
"""


def asked(python: str, program: str) -> tuple[object, float] | str:
    """What a program answers, and its CPU seconds; or why it does not."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        found = subprocess.run(
            [python, "-c", program + _TIMED], env=environment, capture_output=True, text=True, timeout=300, check=True
        )
    except subprocess.CalledProcessError as problem:
        return problem.stderr.strip().splitlines()[-1][:80]
    except (subprocess.SubprocessError, OSError) as problem:
        return type(problem).__name__
    value, seconds = json.loads(found.stdout.splitlines()[-1])
    return value, seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", action="append", default=[], help="NAME=PYTHON")
    peers = dict(peer.split("=", 1) for peer in parser.parse_args().peer)
    print("| law | tool | ε at δ = 1e-5 | side | time |\n|---|---|---|---|---|")
    for name, (ours, theirs) in LAWS.items():
        sides = "[t.epsilon(1e-5, side=side) for side in ('lower', 'upper')]"
        program = f"import deniable as dn\ndef answer():\n    t = dn.tradeoff({ours})\n    return {sides}\n"
        bracket, own = asked(sys.executable, program)
        low, high = bracket  # type: ignore[misc]
        print(f"| {name} | deniable | [{low:.8f}, {high:.8f}] | both | 1 ({own:.2f} s) |", flush=True)
        for peer, asks in theirs.items():
            if peer not in peers:
                continue
            found = asked(peers[peer], asks)
            if isinstance(found, str):
                print(f"| | {peer} | {found} | | |", flush=True)
                continue
            value, seconds = found
            side = "BELOW" if value < low else "inside" if value <= high else f"above by {value - high:.1e}"
            print(f"| | {peer} | {value:.8f} | {side} | {seconds / own:.2g} |", flush=True)


if __name__ == "__main__":
    main()
