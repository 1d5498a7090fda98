"""Composed laws are kept: a release more is one product more, and what is kept changes no number."""

import numpy as np

import deniable as dn
from deniable._kept import Kept
from deniable.accounting.pld import compose


def test_one_release_more_is_one_product_more(monkeypatch):
    rng = np.random.default_rng(0)
    releases = [dn.Laplace(float(b)) for b in rng.uniform(5.0, 30.0, 9)]
    products = []
    monkeypatch.setattr(compose, "_COMPOSED", Kept(16))
    monkeypatch.setattr(compose, "product", lambda *args, of=compose.product: products.append(1) or of(*args))

    def asked(count):
        products.clear()
        curve = dn.tradeoff(dn.Composition(releases[:count]), engine="pld")
        return [curve.delta(0.3), curve.tpr(0.01)], len(products)

    _, first = asked(8)
    found, more = asked(9)
    assert (first, more) == (7, 1)
    monkeypatch.setattr(compose, "_COMPOSED", Kept(16))
    alone, all_of_them = asked(9)
    assert (found, 8) == (alone, all_of_them)


class Forgetful(Kept):
    """Another thread makes a law go as soon as it was seen."""

    def get(self, key):
        found = super().get(key)
        self._values.pop(key, None)
        return found


def test_a_law_that_goes_meanwhile_takes_no_release_with_it(monkeypatch):
    releases = [dn.Laplace(b) for b in (5.0, 7.0, 9.0, 11.0)]
    monkeypatch.setattr(compose, "_COMPOSED", Forgetful(16))
    dn.tradeoff(dn.Composition(releases[:3]), engine="pld").delta(0.3)
    found = dn.tradeoff(dn.Composition(releases), engine="pld").delta(0.3)
    monkeypatch.setattr(compose, "_COMPOSED", Kept(16))
    assert found == dn.tradeoff(dn.Composition(releases), engine="pld").delta(0.3)
