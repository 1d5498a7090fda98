"""Release a mean with a certificate that covers every record."""

import numpy as np

import deniable as dn
from deniable.releases import Mean

ages = np.clip(np.random.default_rng(0).normal(42, 17, 4_000), 0, 100)  # your column
released = dn.release(Mean(), ages[:, None], advantage=0.2, bound="swap")
print(f"released mean {released.value[0]:.2f}, standard deviation of the noise {released.noise_scale[0]:.3f}")
print(released.certificate)
