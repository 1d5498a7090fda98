"""Judge a DP-SGD run from what its accountant recorded, and find the noise that would have met a target."""

import deniable as dn

history = [(1.1, 0.004, 2_500), (0.9, 0.004, 1_000)]  # (noise multiplier, sampling rate, steps), as Opacus keeps it
run = dn.Composition(dn.SubsampledGaussian(*phase) for phase in history)
curve = dn.tradeoff(run)
print(f"advantage of any attacker: at most {curve.advantage():.4f}")
print(f"members found at a false positive rate of 1e-5: at most {curve.tpr(1e-5):.3g}")
print(f"epsilon at delta 1e-5: {curve.epsilon(1e-5):.3f}")

noise = dn.calibrate(lambda s: dn.SubsampledGaussian(s, 0.004, 3_500), (0.3, 30), advantage=0.1)
print(f"noise multiplier for an advantage of 0.1 in 3,500 steps: {noise + 5e-4:.3f}")
dn.assess(run).to_html("dp_sgd_run.html")
print("wrote dp_sgd_run.html")
