"""Run one tool on the six reference runs and print JSON. Each environment gets a process of its own; see peers.py."""

import importlib.util
import json
import statistics
import sys
import sysconfig
import time
import warnings
from pathlib import Path

RUNS = [
    (1.0, 0.01, 5000),
    (0.5, 0.001, 10000),
    (0.8, 0.02, 2500),
    (2.0, 0.05, 1000),
    (0.6, 1e-4, 1000000),
    (5.0, 1.0, 500),
]
FPR = 1e-5
TARGET_TPR = 1e-4


class Deniable:
    repeats = 31

    def __init__(self):
        import deniable

        self.dn = deniable

    def advantage(self, sigma, rate, steps):
        return self.dn.tradeoff(self.dn.SubsampledGaussian(sigma, rate, steps)).advantage()

    def tpr(self, sigma, rate, steps):
        return self.dn.tradeoff(self.dn.SubsampledGaussian(sigma, rate, steps)).tpr(FPR)

    def calibrate(self, rate, steps, **target):
        return self.dn.calibrate(lambda s: self.dn.SubsampledGaussian(s, rate, steps), (0.1, 50.0), **target)

    def calibrate_advantage(self, rate, steps, advantage):
        return self.calibrate(rate, steps, advantage=advantage)

    def calibrate_tpr(self, rate, steps):
        return self.calibrate(rate, steps, limit=self.dn.Limit(tpr=TARGET_TPR, fpr=FPR))


class DpAccounting:
    """Connect-the-dots at its default grid of 1e-4. It has no true positive rate of its own."""

    repeats = 2

    def __init__(self):
        from dp_accounting.pld import privacy_loss_distribution

        self.pld = privacy_loss_distribution

    def composed(self, sigma, rate, steps):
        one = self.pld.from_gaussian_mechanism(standard_deviation=sigma, sampling_prob=rate, use_connect_dots=True)
        return one.self_compose(steps)

    def advantage(self, sigma, rate, steps):
        return self.composed(sigma, rate, steps).get_delta_for_epsilon(0.0)


class DpAccountingMain(DpAccounting):
    """The main branch (b5b0286, August 2026), not released, has true positive rates; minutes each.

    pip install 'git+https://github.com/google/differential-privacy@b5b0286#subdirectory=python/dp_accounting'
    """

    repeats = 0

    def tpr(self, sigma, rate, steps):
        return float(self.composed(sigma, rate, steps).get_true_positive_rates(FPR))


class Riskcal:
    """Its own accountant on top of dp-accounting, at its default grid of 1e-4."""

    repeats = 2

    def accountant(self, sigma, rate, steps):
        from riskcal.accountants import CTDAccountant

        accountant = CTDAccountant()
        accountant.history = [(sigma, rate, steps)]
        return accountant

    def advantage(self, sigma, rate, steps):
        return self.accountant(sigma, rate, steps).get_advantage()

    def tpr(self, sigma, rate, steps):
        return 1 - float(self.accountant(sigma, rate, steps).get_beta(alpha=FPR))

    def calibrate_advantage(self, rate, steps, advantage):
        from riskcal.calibration.dpsgd import find_noise_multiplier_for_advantage

        return find_noise_multiplier_for_advantage(advantage=advantage, sample_rate=rate, num_steps=steps)

    def calibrate_tpr(self, rate, steps):
        from riskcal.calibration.dpsgd import find_noise_multiplier_for_err_rates

        return find_noise_multiplier_for_err_rates(alpha=FPR, beta=1 - TARGET_TPR, sample_rate=rate, num_steps=steps)


class PrvAccountant:
    """Its DP-SGD accountant at its defaults (eps_error 0.1, delta_error 1e-9); δ(0) is its estimate."""

    repeats = 2

    def advantage(self, sigma, rate, steps):
        from prv_accountant.dpsgd import DPSGDAccountant

        accountant = DPSGDAccountant(noise_multiplier=sigma, sampling_probability=rate, max_steps=steps)
        return accountant.compute_delta(0.0, steps)[1]


class PldAccounting:
    """Its subsampling of dp-accounting's Gaussian (grid 1e-4), composed by dp-accounting; TPR by riskcal."""

    repeats = 0  # seconds each

    def composed(self, sigma, rate, steps):
        import PLD_accounting
        from dp_accounting.pld import privacy_loss_distribution

        base = privacy_loss_distribution.from_gaussian_mechanism(sigma)
        return PLD_accounting.subsample_pld(pld=base, sampling_probability=rate).self_compose(steps)

    def advantage(self, sigma, rate, steps):
        return self.composed(sigma, rate, steps).get_delta_for_epsilon(0.0)

    def tpr(self, sigma, rate, steps):
        from riskcal.analysis import get_beta_from_pld

        return 1 - float(get_beta_from_pld(self.composed(sigma, rate, steps), alpha=FPR))


class PldAccountingFft(PldAccounting):
    """Entirely its own: Gaussian at its default grid of 1e-2, its subsampling, its FFT composition."""

    repeats = 2

    def composed(self, sigma, rate, steps):
        import PLD_accounting as pld
        from PLD_accounting.fft_convolution import fft_self_convolve

        base = pld.gaussian_distribution(scale=sigma)
        made = []
        for direction in (pld.Direction.REMOVE, pld.Direction.ADD):
            one = pld.subsample_pld_realization(base_pld=base, sampling_prob=rate, direction=direction)
            made.append(
                fft_self_convolve(
                    dist=one,
                    num_convolutions=steps,
                    tail_truncation=pld.DEFAULT_TAIL_TRUNCATION,
                    bound_type=pld.BoundType.DOMINATES,
                    use_direct=True,
                )
            )
        return pld.compose_full_pld(remove_dist=made[0], add_dist=made[1], bound_type=pld.BoundType.DOMINATES)


class Opake:
    """Its compiled accountant at its default grid of 1e-4; under Python 3.11 its Python side does not import."""

    repeats = 2

    def __init__(self):
        site = Path(sysconfig.get_path("platlib"))
        file = site / "opake/api/accounting/core/opake_accounting.abi3.so"
        spec = importlib.util.spec_from_file_location("opake_accounting", file)
        self.opake = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.opake)

    def composed(self, sigma, rate, steps):
        one = self.opake.gaussian_pld(sigma, config=self.opake.DiscretizationConfig())
        return (one if rate == 1 else self.opake.poisson_pld(one, rate)).self_compose(steps)

    def advantage(self, sigma, rate, steps):
        return self.composed(sigma, rate, steps).advantage()

    def tpr(self, sigma, rate, steps):
        return 1 - self.composed(sigma, rate, steps).beta_at(FPR)


TOOLS = {
    "deniable": Deniable,
    "dp-accounting 0.6.0": DpAccounting,
    "riskcal 1.5.1": Riskcal,
    "prv-accountant 0.2.0": PrvAccountant,
    "PLD_accounting 2.0": PldAccounting,
    "PLD_accounting 2.0, own FFT": PldAccountingFft,
    "opake-accounting 0.16.1": Opake,
}


ALSO = {"dp-accounting main": DpAccountingMain}  # in an environment of its own; not in the table


def timed(function, repeats):
    """(value, median CPU seconds, failure); the noise differs a little each time: nothing can be remembered.

    The first call counts only if there is no other.
    """
    try:
        seconds = []
        for k in range(repeats + 1):
            start = time.process_time()
            value = function(1 + 1e-9 * (repeats - k))
            seconds.append(time.process_time() - start)
        return float(value), statistics.median(seconds[min(1, repeats) :]), None
    except Exception as error:
        return None, None, f"{type(error).__name__}: {error}"


def main(name, job):
    warnings.simplefilter("ignore")
    tool = {**TOOLS, **ALSO}[name]()
    if job.startswith("calibrate"):
        targets = {"calibrate_advantage": lambda: tool.calibrate_advantage(0.01, 5000, 0.1)}
        calibrate = targets.get(job, lambda: tool.calibrate_tpr(0.01, 5000))
        tool.advantage(1.0, 0.01, 5000)  # imports and tables; only one is measured, since one peer takes minutes
        start = time.process_time()
        print(json.dumps({"value": float(calibrate()), "seconds": time.process_time() - start}))
        return
    rows = []
    for sigma, rate, steps in RUNS:
        row = {"tool": name, "sigma": sigma, "rate": rate, "steps": steps}
        found = timed(lambda f: tool.advantage(sigma * f, rate, steps), tool.repeats)  # noqa: B023
        row.update(zip(("advantage", "seconds", "failure"), found, strict=True))
        if hasattr(tool, "tpr"):
            row["tpr"], row["tpr_seconds"], _ = timed(lambda f: tool.tpr(sigma * f, rate, steps), 0)  # noqa: B023
        rows.append(row)
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
