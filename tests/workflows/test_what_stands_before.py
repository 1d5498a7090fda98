"""A certificate covers the fit that ran: whatever learnt from the records before or around it is refused."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import all_estimators

import deniable as dn
from deniable.training.features import TableReader
from deniable.workflows.assessing import _unwrap

SENTENCE = "{} was fitted to the records without noise; give the private model the raw table, it reads it itself"


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    ward = rng.choice(["north", "south"], n).astype(object)
    ward[0] = "the only guest of room 101"
    table = pd.DataFrame({"age": rng.normal(50, 10, n), "ward": ward, "other": rng.normal(size=n)})
    return table, (table["age"] > 50).to_numpy()


@pytest.fixture(scope="module")
def model():
    return dn.PrivateClassifier(advantage=0.4, ranges={"age": (0, 120)}).fit(*people())


class Wrapper(BaseEstimator):
    """Somebody's own wrapper: it keeps what it fits in a dictionary."""

    def __init__(self, parts=None):
        self.parts = parts


class OwnModel(dn.PrivateClassifier):
    """A private model that prepares its columns itself."""

    def fit(self, X, y, **given):
        return super().fit(X.assign(age=X["age"] - X["age"].mean()), y, **given)


class OwnPipeline(Pipeline):
    """A pipeline that could do anything in its fit."""


FRONT = {
    "ColumnTransformer": lambda m: make_pipeline(make_column_transformer((StandardScaler(), ["age"])), m),
    "StandardScaler": lambda m: make_pipeline("passthrough", make_pipeline(StandardScaler(), "passthrough"), m),
    "OneHotEncoder": lambda m: make_pipeline(OneHotEncoder(), make_pipeline("passthrough", m)),
    "FeatureUnion": lambda m: make_pipeline(FeatureUnion([("all", "passthrough")]), m),
    "FunctionTransformer": lambda m: make_pipeline(TableReader(["age"]), FunctionTransformer(), m),
    "OwnPipeline": lambda m: OwnPipeline([("read", TableReader(["age"])), ("model", m)]),
}
AROUND = {
    "StackingClassifier": lambda m: StackingClassifier([("m", m)]),
    "VotingClassifier": lambda m: VotingClassifier([("m", make_pipeline("passthrough", m))]),
    "BaggingClassifier": BaggingClassifier,
    "CalibratedClassifierCV": lambda m: CalibratedClassifierCV(FrozenEstimator(m)),
    "GridSearchCV": lambda m: GridSearchCV(m, {"advantage": [0.1, 0.2]}),
    "TransformedTargetRegressor": TransformedTargetRegressor,
    "OneVsRestClassifier": lambda m: make_pipeline(TableReader(["age"]), OneVsRestClassifier(m)),
    "SelectFromModel": lambda m: make_pipeline(SelectFromModel(FrozenEstimator(m)), LogisticRegression()),
    "Wrapper": lambda m: Wrapper({"best": [m]}),
}


@pytest.mark.parametrize(("name", "make"), [*FRONT.items(), *AROUND.items()], ids=[*FRONT, *AROUND])
@pytest.mark.parametrize("data", ["alone", "with records"])
def test_whatever_learns_before_or_around_a_private_model_is_refused(model, name, make, data):
    given = () if data == "alone" else people()
    with pytest.raises(dn.InputError, match=SENTENCE.format(name)):
        dn.assess(make(model), *given)
    with pytest.raises(dn.InputError, match=SENTENCE.format(name)):
        dn.compare(make(model), dn.PureDP(1.0))


def test_every_transformer_of_scikit_learn_is_refused_before_a_private_model(model):
    refused = 0
    for name, kind in all_estimators("transformer"):
        try:
            step = kind()
        except TypeError:  # it needs estimators of its own
            continue
        with pytest.raises(dn.InputError, match=SENTENCE.format(name)):
            dn.assess(Pipeline([("step", step), ("model", model)]))
        refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    "make",
    [
        lambda m: make_pipeline("passthrough", m),
        lambda m: Pipeline([("none", None), ("model", m)]),
        lambda m: make_pipeline(TableReader(["age", "ward", "other"]), m),
        lambda m: make_pipeline(make_pipeline("passthrough"), make_pipeline(TableReader(["age", "ward", "other"]), m)),
        FrozenEstimator,
        lambda m: make_pipeline(FrozenEstimator(m)),
    ],
)
def test_steps_that_learn_nothing_change_nothing(model, make):
    X, y = people(seed=1)
    bare, made = dn.assess(model, X, y), dn.assess(make(model), X, y)
    assert made.numbers == bare.numbers
    assert made.assumptions == bare.assumptions


def test_a_reader_leaves_out_what_the_model_never_saw(model):
    X, y = people(seed=1)
    pipeline = make_pipeline(TableReader(list(X.columns)), make_pipeline(model))
    assert dn.assess(pipeline, X.assign(unused=1.0), y).numbers == dn.assess(model, X, y).numbers


def test_why_the_pickled_pipeline_names_a_person_and_the_model_alone_does_not():
    X, y = people()
    encode = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(sparse_output=False), ["ward"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(encode, dn.PrivateClassifier(advantage=0.01)).fit(X, y)
        alone = dn.PrivateClassifier(advantage=0.01).fit(X, y)
    text = X["ward"][0].encode()
    assert text in pickle.dumps(pipeline)
    assert text not in pickle.dumps(alone)
    with pytest.raises(dn.InputError, match="ColumnTransformer was fitted"):
        dn.assess(pipeline)


def test_an_unfitted_clone_is_no_proof(model):
    for source in (clone(model), clone(make_pipeline("passthrough", model))):
        with pytest.raises(dn.InputError, match="must be fitted first"):
            dn.assess(source)


@pytest.mark.parametrize(
    "source", [make_pipeline(StandardScaler(), LogisticRegression()), {"a": [1]}, 3, dict, Wrapper]
)
def test_sources_without_a_private_model_are_left_alone(source):
    assert _unwrap(source, None) == (source, None)


def test_an_estimator_that_holds_itself_is_walked_once():
    source = Wrapper()
    source.parts = [source]
    assert _unwrap(source, None) == (source, None)


def test_certificates_say_what_they_do_not_cover(model):
    words = "the columns as they were given; what prepared them is not covered"
    certificate, page = model.certificate_, dn.assess(model)
    for text in (str(certificate), certificate._repr_html_(), model._html_repr(), page.to_html(), page.to_json()):
        assert words in text
    assert any(words in line for line in page.assumptions.notes)
    table = people()[0][["age"]]
    released = dn.release_statistics(table, ["mean(age)"], advantage=0.4, ranges={"age": (0, 120)})
    for text in (str(released.certificate), released.certificate._repr_html_(), dn.assess(released).to_html()):
        assert words in text


@pytest.mark.parametrize("steps", [0, 1])
def test_a_subclass_may_prepare_what_it_fits_and_is_refused(steps):
    own = OwnModel(advantage=0.4, ranges={"age": (-60, 60)}).fit(*people())
    with pytest.raises(dn.InputError, match=SENTENCE.format("OwnModel")):
        dn.assess(make_pipeline(*["passthrough"] * steps, own))
