"""Write a table of 20,000 people who do not exist, for `make demo`: python examples/people.py people.csv."""

import sys

import numpy as np
import pandas as pd

rng, n = np.random.default_rng(0), 20_000
age = rng.integers(18, 91, n)
bmi = np.clip(rng.normal(26, 4, n), 15, 50).round(1)
smoker = rng.random(n) < 0.3 - 0.002 * (age - 18)
town = rng.choice(["North", "South", "East", "West"], n, p=[0.4, 0.3, 0.2, 0.1])
income = rng.lognormal(10.3 + 0.1 * (town == "North"), 0.5).round(-2)
score = -5 + 0.06 * age + 1.2 * smoker + 0.1 * np.abs(bmi - 24) - 0.3 * (income > 40_000)
ill = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
people = pd.DataFrame(
    {"age": age, "bmi": bmi, "smoker": np.where(smoker, "yes", "no"), "town": town, "income": income, "ill": ill}
)
people.to_csv(sys.argv[1], index=False)
