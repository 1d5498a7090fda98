"""Games against releases whose law is known: the best attacker of each record, who knows every training set."""

import itertools

import numpy as np

from deniable.noise import Histogram, Quantile, release
from deniable.noise.laws import GaussianNoise

ETA, GAMES = 0.1, 1500


def gains(algorithm, x, weaken):
    """Largest gain of an attacker over GAMES halves: of each record the exact odds given what was released.

    The noise is that of a public call, divided by ``weaken``; 0 for none at all.
    """
    rng = np.random.default_rng(8)
    sets = np.array(list(itertools.combinations(range(len(x)), len(x) // 2)))
    member = np.zeros((len(sets), len(x)), dtype=bool)
    member[np.arange(len(sets))[:, None], sets] = True
    outputs = np.array([np.ravel(algorithm(x[one])) for one in sets])
    made = release(algorithm, x, advantage=2 * ETA, bound="direct")
    scale = np.ravel(made.noise_scale) / weaken if weaken else np.zeros(outputs.shape[1])
    truth = rng.integers(len(sets), size=GAMES)
    if scale.any():
        law = GaussianNoise(1.0, scale)
        seen = outputs[truth] + law.sample(GAMES, rng)
        weights = np.exp(law.log_density(seen[:, None, :] - outputs[None]))
    else:
        weights = (outputs[truth][:, None, :] == outputs[None]).all(axis=2).astype(float)
    odds = weights @ np.where(member, 1.0, -1.0)
    guess = np.where(odds == 0, rng.random(odds.shape) < 0.5, odds > 0)
    return float((guess == member[truth]).mean(axis=0).max() - 0.5), made


def test_a_quantile_with_an_outlier_and_equal_values():
    x = np.array([0.1, 0.1, 0.3, 0.4, 0.9, 1.2, 1.3, 1.5, 2.0, 90.0])
    gain, made = gains(Quantile(0.5), x, weaken=1)
    assert made.noise_scale[0] > 0
    assert gain < ETA + 0.04  # three standard errors of the largest of ten
    assert gains(Quantile(0.5), x, weaken=20)[0] > ETA + 0.04


def test_a_table_without_noise():
    x = np.repeat([0.5, 1.5], [8, 6])
    table = Histogram((0.0, 1.0, 2.0))
    evidence_kept = release(table, np.repeat(x, 8), advantage=2 * ETA, bound="direct")
    assert not evidence_kept.noise_scale.any()
    # eight copies of each record: enumerate the counts instead of the sets
    n, counted, k = 112, 64, 56
    rng = np.random.default_rng(3)
    counts = rng.hypergeometric(counted, n - counted, k, size=200_000)
    inside = rng.random(counts.size) < counts / counted  # whether one record of the first cell is in the half
    gain = np.mean((counts / counted > 0.5) == inside) - 0.5
    assert gain < evidence_kept.certificate.advantage / 2 + 0.004
    assert gain > 0.6 * evidence_kept.certificate.advantage / 2  # the attacker is a good one


def test_a_table_with_a_rare_cell_is_not_released_without_noise():
    """The negative control: without noise the only record of a cell is told with certainty."""
    x = np.array([0.5] * 9 + [1.5])
    assert release(Histogram((0.0, 1.0, 2.0)), x, advantage=2 * ETA, bound="swap").noise_scale.any()
    table = Histogram((1.0, 2.0))
    gain, made = gains(table, x, weaken=0)
    assert gain > 0.4
    assert made.noise_scale[0] > 0
    assert gains(table, x, weaken=1)[0] < ETA + 0.04
