"""The entry of the registry of deployments has the names, types and words of its published schema, and no other."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.mechanisms import Laplace

yaml = pytest.importorskip("yaml")

# schemas/deployments-schema.yaml of opendp/deployments-registry-data, July 2026: names, and what each may hold
TEXT = str
BASIC = {
    "name": TEXT, "data_curators": [TEXT], "intended_use": TEXT, "data_product_region": TEXT, "description": TEXT,
    "data_product_type": {"Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
                          "Interactive API", "SQL queries"},
    "publication_date": datetime.date, "data_product_sector": TEXT,
}  # fmt: skip
SCHEMA = {
    "url_slug": TEXT,
    "status": {"Draft"},
    "tier": {1, 2, 3},
    "deployment": {
        "basic": BASIC,
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT, "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT, "privacy_unit_details": TEXT, "privacy_parameters_details": TEXT,
            "privacy_parameters": {"epsilon": float, "delta": float, "rho": float},
        },
        "deployment_model": {
            "model_name": {"Central"}, "model_name_details": TEXT, "actors": TEXT,
            "release_type": {"One release", "Many releases"}, "release_type_details": TEXT,
            "data_source_type": {"Static", "Dynamic"}, "data_source_type_details": TEXT,
            "access_type": {"Interactive", "Non-interactive"}, "access_type_details": TEXT,
        },
        "accounting": {"post_processing": TEXT, "composition": TEXT},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT, "mechanisms": TEXT, "justification": TEXT,
        },
        "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": [TEXT]},
    },
}  # fmt: skip
REQUIRED = (("url_slug", "status", "tier", "deployment"), set(BASIC) - {"data_product_sector"})


def faults(value, schema, where=""):
    """What the schema does not allow."""
    if isinstance(schema, dict):
        return [f"{where}/{key}: unknown" for key in value.keys() - schema.keys()] + [
            line for key in value.keys() & schema.keys() for line in faults(value[key], schema[key], f"{where}/{key}")
        ]
    if isinstance(schema, list):
        return [line for one in value for line in faults(one, schema[0], where)] if value else [f"{where}: empty"]
    if isinstance(schema, set):
        return [] if value in schema else [f"{where}: {value!r}"]
    if schema is datetime.date:
        return [] if isinstance(value, str) and datetime.date.fromisoformat(value) else [f"{where}: {value!r}"]
    return [] if isinstance(value, schema) else [f"{where}: {value!r} is no {schema.__name__}"]


def reports():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(size=300), "b": rng.choice(["x: y", "# z"], 300)})
    scores = dn.audit_scores(rng.normal(0.5, 1, 400), rng.normal(0, 1, 400))
    return {
        "run": dn.assess(dn.SubsampledGaussian(1.0, 0.01, 500)),
        "gaussian": dn.assess(dn.GaussianDP(0.3), meta={"organisation": 'An "office": \\ #1', "region": "Ö\nÜ"}),
        "pure": dn.assess(dn.PureDP(1.5)),
        "unbounded": dn.assess(dn.PureDP(math.inf)),
        "small": dn.assess(Laplace(1e7), delta=1e-300),
        "table": dn.assess(dn.release_statistics(table, ["count() by b"], advantage=0.2, ranges={"b": ["x: y"]})),
        "attack": dn.assess(scores),
    }


REPORTS = reports()


@pytest.mark.parametrize("name", REPORTS)
def test_every_entry_is_what_the_schema_takes(name):
    found = yaml.safe_load(REPORTS[name].annex("dp-registry"))
    assert faults(found, SCHEMA) == []
    for part, required in zip((found, found["deployment"]["basic"]), REQUIRED, strict=True):
        assert set(required) <= set(part)
    assert found["url_slug"].replace("_", "").isalnum()


def test_what_the_schema_refuses_is_found():
    found = yaml.safe_load(REPORTS["run"].annex("dp-registry"))
    found["surprise"] = found["deployment"]["basic"]["publication_date"] = 1
    found["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] = "4.2"
    assert len(faults(found, SCHEMA)) == 3


def test_parameters_are_numbers_and_those_of_the_report():
    def of(name):
        found = yaml.safe_load(REPORTS[name].annex("dp-registry"))["deployment"]
        return found["dp_variant"]["variant_name"], found["privacy_loss"]["privacy_parameters"]

    numbers = REPORTS["gaussian"].numbers
    epsilon = numbers["bound.epsilon@delta=1e-05"].value
    assert of("gaussian") == ("Approximate DP", {"epsilon": epsilon, "delta": 1e-5, "rho": pytest.approx(0.045)})
    assert of("pure") == ("Pure DP", {"epsilon": 1.5})
    assert of("unbounded") == ("Custom", {})
    assert of("attack") == ("Custom", {})
    assert of("table")[1].keys() == {"epsilon", "delta", "rho"}
    rng = np.random.default_rng(0)
    found = dn.release_statistics(pd.DataFrame({"b": rng.choice(["u", "v"], 300)}), ["count() by b"], advantage=0.2)
    REPORTS["may fail"] = dn.assess(found)  # since categories were found
    assert of("may fail")[1].keys() == {"epsilon", "delta"}
