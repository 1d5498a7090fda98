"""Find the people for whom this model is a risk. The result is as confidential as the data."""

import numpy as np
from sklearn.datasets import load_breast_cancer

import deniable as dn

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
X /= np.linalg.norm(X, axis=1).max()
profile = dn.privacy_profile(X, y, regularization=1e-2, mechanism=dn.OutputPerturbation(epsilon=1.0), rng=0)
advantage = profile.advantage()
print(f"half of the records: advantage at most {np.median(advantage):.3%}")
for row in np.argsort(advantage)[::-1][:5]:
    print(f"record {row}: at most {advantage[row]:.2%}")
