"""What is refused, in one line: a call, and words that are said; ";" divides several calls, "&" several words."""

import math
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from changed_spheres import changed_sphere
from known_laws import attack_random_subset, attack_transcript, ratio_advantage
from membership_games import play_game
from optimal_attack import exact_membership
from scipy import stats
from sklearn.naive_bayes import GaussianNB

import deniable as dn
from deniable import accounting, audit, bounds, mechanisms, noise, planning, records, releases, report, unlearning
from deniable.laws.norm_laplace import NormLaplaceTradeoff
from deniable.noise.laws import GaussianNoise
from deniable.noise.rounding import rounded_gaussian
from deniable.statistics.grammar import parse
from deniable.workflows import OpacusCallback

ROWS, LABELS = np.random.default_rng(0).normal(size=(60, 4)) / 9, np.where(np.arange(60) % 2, 1.0, -1.0)
FRAME = pd.DataFrame({"age": np.arange(60) % 37 + 18.0, "sex": ["F", "M"] * 30, "day": pd.Timestamp("2020-01-01")})


def usual(function, **options):
    """The function with these options, but for what a call gives."""
    return lambda **change: function(**(options | change))


def column_mean(part):
    return np.asarray(part).mean(axis=0)


def policy(text):
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "policy.toml").write_text(text)
        return dn.Policy.from_toml(path)


def fitted(kind, y):
    def fit(y=y, X=FRAME, **options):
        try:
            return (model := kind(**options)).fit(X, y)
        finally:
            assert not [name for name in vars(model) if name.endswith("_")]  # nothing is left of a fit that is refused

    return fit


MODULES = (accounting, audit, mechanisms, noise, planning, records, releases, report, dn)
NAMES = {name: getattr(module, name) for module in MODULES for name in module.__all__} | {
    **{"NormLaplaceTradeoff": NormLaplaceTradeoff, "GaussianNoise": GaussianNoise, "OpacusCallback": OpacusCallback},
    **{"rounded_gaussian": rounded_gaussian, "bounds": bounds, "unlearning": unlearning},
    **{f.__name__: f for f in (attack_random_subset, attack_transcript, ratio_advantage)},
    **{"np": np, "nan": math.nan, "inf": math.inf, "ONE": np.ones(1), "TABLE": np.eye(3), "COLUMN": np.arange(3.0)},
    "RUN": dn.SubsampledGaussian(1.0, 0.1, 10),
    "CURVE": dn.tradeoff(dn.SubsampledGaussian(1.0, 0.1, 50)),
    "GAUSS": dn.tradeoff(dn.GaussianDP(1.0)),
    "PURE": dn.tradeoff(dn.PureDP(1.0)),
    "AUDIT": dn.audit_scores([1.0] * 9, [0.0] * 9),
    "ACCOUNTANT": SimpleNamespace(history=[], mechanism=lambda: "prv"),
    "TREE": np.vstack([np.kron(np.eye(8 // w), np.ones(w)) for w in (1, 2, 4, 8)]),
    **{
        "stats": stats,
        "pd": pd,
        "SimpleNamespace": SimpleNamespace,
        "dn": dn,
        "parse": parse,
        "policy": policy,
        "FRAME": FRAME,
        "ROWS": ROWS,
    },
    "classifier": fitted(dn.PrivateClassifier, LABELS),
    "regressor": fitted(dn.PrivateRegressor, np.arange(60.0)),
    "played": usual(play_game, game="OIG", attack="FMA", noise_multiplier=1.0, sample_rate=0.1, steps=5),
    "shadows": usual(dn.attack_estimator, estimator=GaussianNB(), X=ROWS[:8], y=np.arange(8) % 2, n_shadows=8, rng=0),
    "canaries": usual(audit.canaries, X=np.ones((400, 2)), y=np.arange(400) % 2),
    "released": usual(dn.release, algorithm=column_mean, data=ROWS, advantage=0.2, bound="centre"),
    "samplers": usual(planning.plan_samplers, n_records=10, batch_size=5),
    "planned": usual(planning.plan_subsampling, pool_size=1000, precision=0.3, fpr=1e-3, batch_size=1000, rates=[0.1]),
    "calibrated": usual(dn.calibrate, make_mechanism=dn.GaussianDP, bracket=(0.1, 10)),
    "profiled": usual(
        dn.privacy_profile, X=ROWS, y=LABELS, regularization=0.1, mechanism=dn.OutputPerturbation(epsilon=1.0)
    ),
    "sphere": usual(changed_sphere, X=ROWS, y=LABELS, regularization=0.1),
    "PROFILE": dn.privacy_profile(ROWS, LABELS, regularization=0.1, rng=0),
    "exact": usual(exact_membership, algorithm=column_mean, data=np.arange(6.0), noise=GaussianNoise(1.0, np.ones(1))),
    "statistic": lambda asked, **options: dn.release_statistics(FRAME, asked, **{"advantage": 0.2} | options),
    "individual": lambda run: accounting.individual_tradeoffs([[0.5]], 1.0, run),
    "profile": lambda X: dn.privacy_profile(
        X, np.arange(6.0), regularization=0.0, loss="squared", mechanism=dn.OutputPerturbation(scale=1.0)
    ),
}

REFUSED = """
PureDP(-1.0) -> epsilon & at least 0 & -1
PureDP(nan) -> epsilon & nan
ApproximateDP(1.0, 1.5) -> delta & at most 1 & 1.5
GaussianDP(nan) -> mu
SubsampledGaussian(0.0, 0.1, 10) -> noise_multiplier & above 0
SubsampledGaussian(1.0, 0.0, 10) -> sample_rate & above 0
SubsampledGaussian(1.0, 1.01, 10) -> sample_rate & at most 1 & 1.01
SubsampledGaussian(1.0, 0.1, 2.5) -> steps & whole number & 2.5
Composition([]) -> mechanisms & empty
Composition([1.0]) -> mechanisms & 1.0
tradeoff(RUN, engine="fft") -> engine must be one of
tradeoff(RUN, adjacency="swap") -> adjacency must be one of
CURVE.tpr(-0.1); CURVE.tpr(1.1); CURVE.tpr(nan); CURVE.tpr([0.1, nan]); CURVE.tpr("x") -> fpr must be
GAUSS.explain(fpr=0.1, epsilon=1.0) -> one of fpr and epsilon
GAUSS.explain(fpr=0.1, direction="remove"); GAUSS.explain(direction="remove") -> direction goes with
GAUSS.explain(fpr=[0.1, 0.2]); GAUSS.explain(fpr=nan) -> fpr must be
GAUSS.explain(epsilon=1.0, direction="sideways") -> direction
CURVE.advantage(0.0) -> prior
CURVE.hockey_stick(-1.0) -> gamma
CURVE.delta(1.0, direction="sideways") -> direction
CURVE.tpr(0.1, side="middle") -> side
GaussianFilter(0.0) -> mu must be above 0
GaussianFilter(1.0).spend(-0.1) -> step must be at least 0
GaussianFilter(1.0).spend(SubsampledGaussian(1.0, 0.1, 2)) -> RenyiFilter serves
GaussianFilter(1.0).spend(MatrixMechanism(9.0, np.eye(2))) -> adjacency 'zero-out'
RenyiFilter([2.0], [1.0]).spend([0.1, 0.1]) -> one divergence per order
RenyiFilter([2.0], [1.0]).spend(ApproximateDP(0.1, 1e-9)) -> do not run it
RenyiFilter([0.5], [1.0]) -> orders must be above 1
individual_tradeoffs(np.ones((2, 9)), 1.0, RUN) -> cover each of the run's 10 steps, got 9
individual_tradeoffs(np.ones(10), 1.0, RUN) -> shape (records, steps)
individual_tradeoffs(-np.ones((1, 10)), 1.0, RUN) -> at least 0, got -1
individual_tradeoffs(np.ones((1, 10)), 0.0, RUN) -> clip must be above 0
individual_tradeoffs(np.ones((1, 10)), 1.0, RUN, levels=0) -> levels must be at least 1
individual_tradeoffs(np.ones((1, 1)), 1.0, GaussianDP(1.0)) -> mechanism must be a SubsampledGaussian & GaussianDP
NormRecorder(0) -> records must be at least 1
NormRecorder(3).add([0, 3], [1.0, 1.0]) -> indices must be in 0..2
NormRecorder(3).add([0, 0], [1.0, 1.0]) -> at most once per step
NormRecorder(3).add([0], [1.0, 1.0]) -> equal length
NormRecorder(3).add([0.5], [1.0]) -> whole numbers
NormRecorder(3).add([0], [nan]) -> norms must be at least 0
individual(PureDP(1.0)); individual(MatrixMechanism(1.0, sensitivity=1.0)) -> must be a SubsampledGaussian
individual(SubsampledGaussian(1.0, 0.1, 1, 2)) -> records_per_person=1
NoisyGradientDescent(1.0, 10, 0.0, 1.0, 0.5) -> strong_convexity must be above 0 & penalise every weight
NoisyGradientDescent(1.0, 10, 0.5, 0.1, 0.5) -> smoothness must be at least strong_convexity
NoisyGradientDescent(1.0, 10, 0.5, 1.0, 2.0) -> step_size must be below 2/smoothness
MatrixMechanism(1.0); MatrixMechanism(1.0, np.eye(2), sensitivity=1.0) -> either strategy or sensitivity
MatrixMechanism(1.0, np.ones(3)) -> one column per step
MatrixMechanism(1.0, TREE, sample_rate=0.1) -> from the first step to the last one
MatrixMechanism(1.0, np.zeros((2, 2))) -> must not be 0
MatrixMechanism(1.0, [[1.0, nan], [0.0, 1.0]]) -> strategy
MatrixMechanism(1.0, np.ones((3, 3)), sample_rate=0.1) -> fewer bands
MatrixMechanism(1.0, np.tril(np.ones((3, 3))), sample_rate=0.1) -> fewer bands
MatrixMechanism(1.0, np.eye(3), sample_rate=0.1, participations=2) -> not used with sample_rate
MatrixMechanism(1.0, sensitivity=1.0, sample_rate=0.1) -> needs the strategy
GAUSS.renyi(1.0); GAUSS.renyi(0.5); GAUSS.renyi(nan) -> order must be above 1
tradeoff(PureDP(1.0), adjacency="replace").renyi(2.0) -> renyi is not known
tuned(PureDP(1.0), trials=1.0) -> trials must be above 1
tuned(PureDP(1.0), trials=0.0, shape=inf) -> trials must be above 0
tuned(PureDP(1.0), trials=5.0, shape=-1.0) -> shape must be above -1
tuned("x", trials=5.0) -> mechanism must be
tradeoff(tuned(ApproximateDP(1.0, 1e-6), trials=5.0)) -> finite Rényi divergences
tuned(PureDP(1.0), trials=5.0, shape=inf).stop -> Poisson
RenyiDP([1.0, 2.0], [0.1, 0.1]) -> orders must be above 1
RenyiDP([2.0, 2.0], [0.1, 0.1]) -> increasing
RenyiDP([], []) -> non-empty
RenyiDP([2.0], [0.1, 0.2]) -> as many as orders
tradeoff(ZeroConcentratedDP(1.0), engine="pld") -> engine must be 'auto'
tradeoff(Laplace(1.0), engine="inversion") -> does not reach every step
RandomAllocation(1.0, 3, 1, 4) -> batches_per_record must be at most batches=3
TruncatedPoisson(1.0, 0.1, 10, 100, 100) -> max_batch
WithoutReplacement(0.0, 2, 4) -> noise_multiplier must be above 0
WithoutReplacement(1.0, 0, 4) -> batch must be
WithoutReplacement(1.0, 5, 4) -> batch must be at most n_records, got 5 and 4
WithoutReplacement(1.0, 2, 4.5) -> n_records must be
WithoutReplacement(1.0, 2, 4, 0) -> steps must be
audit_scores([1.0], [0.0], 0.5); audit_scores([1.0], [0.0], 1.0); audit_scores([1.0], [0.0], nan) -> confidence
audit_scores([1.0], [0.0], 95) -> confidence
AUDIT.tpr(0.0) -> fpr must be above 0
AUDIT.tpr(10) -> percentage
AUDIT.epsilon(nan) -> delta
AUDIT.compare(1.0) -> tradeoff must be a Tradeoff
attack_transcript(PureDP(1.0)) -> SubsampledGaussian phases
attack_random_subset(np.mean, [1.0, 2.0], 5, "gaussian", 1.0) -> below the number of records
ratio_advantage(AttackScores(np.ones(3), np.zeros(3), "loss", "a model")) -> exact log-likelihood
audit_one_run([1.0, 2.0], [1]) -> of one length
audit_one_run([1.0, 2.0], [1, 2]) -> True or False
audit_one_run([1.0, 2.0], [1, 0], confidence=2) -> confidence
SequentialAudit(PureDP(1)).update([nan], [0.0]); SequentialAudit(PureDP(1)).update([[1.0, 2.0]], [0.0]) -> scores
SequentialAudit(PureDP(1)).update("high", [0.0]) -> scores
NormLaplaceTradeoff(-1.0, 3); NormLaplaceTradeoff(nan, 3); NormLaplaceTradeoff(inf, 3) -> rho
GaussianNoise(0.0, ONE); GaussianNoise(-1.0, ONE); GaussianNoise(nan, ONE); GaussianNoise(inf, ONE) -> scale
GaussianNoise(1.0, np.array([0.0])); GaussianNoise(1.0, np.array([nan])) -> factor
GaussianNoise(1.0, np.array([[1.0, 2.0]])) -> factor
GaussianNoise(1.0, np.array(np.eye(2) + np.triu(np.ones((2, 2)), 1))) -> factor
rounded_gaussian(0.0, 3); rounded_gaussian(-1.0, 3); rounded_gaussian(nan, 3); rounded_gaussian(inf, 3) -> scale
rounded_gaussian(2.0**40 * 1.001, 3); rounded_gaussian([1.0, nan], 3); rounded_gaussian("wide", 3) -> scale
Histogram((1.0,)); Histogram((1.0, 1.0)) -> edges
profile(np.ones((6, 2))); profile(np.eye(6)[:, :3]) -> raise regularization
OutputPerturbation(); ObjectivePerturbation(); OutputPerturbation(epsilon=1.0, scale=1.0) -> exactly one of
ObjectivePerturbation(epsilon=1.0, scale=1.0) -> exactly one of
OutputPerturbation(epsilon=0.0); ObjectivePerturbation(epsilon=0.0) -> epsilon must be above 0
OutputPerturbation(scale=-1.0); ObjectivePerturbation(scale=-1.0) -> scale
OutputPerturbation(epsilon=1.0, noise="cauchy") -> noise must be one of
ObjectivePerturbation(epsilon=1.0, noise="cauchy") -> noise must be one of
OutputPerturbation(epsilon=1.0, row_bound=0.0); ObjectivePerturbation(epsilon=1.0, row_bound=0.0) -> row_bound
OutputPerturbation(epsilon=1.0, delta=1e-5); OutputPerturbation(epsilon=1.0, noise="gaussian") -> delta
Policy.from_toml("nowhere.toml") -> no such file
assess(PureDP(1.0), prior=1.0) -> prior & below 1
assess(PureDP(1.0), fpr=[0.0]) -> fpr & above 0
assess(PureDP(1.0), delta=nan) -> delta
assess(PureDP(1.0)).to_html("nowhere/a.html") -> nowhere & does not exist
assess(PureDP(1.0)).to_html("a.pdf") -> .html & a.pdf
assess(3.5) -> source & 3.5
bounds.accuracy(1, delta=0, prior=0.0); bounds.accuracy(1, delta=0, prior=1.0) -> prior
bounds.advantage(1, delta=1.5); bounds.advantage(1, delta=nan) -> delta
bounds.advantage(-0.1); bounds.negative_accuracy(nan, prior=0.5); bounds.advantage("one") -> epsilon
bounds.positive_accuracy(1, prior=0.5, fpr=50) -> fpr
bounds.positive_accuracy(1, prior=0.5, fpr=0.1, recall=0.1) -> not both
bounds.positive_accuracy(1, prior=[0.5, 0.1], delta=[0, 1e-5]) -> no bound
bounds.negative_accuracy(1, prior=0.5, delta=1e-5) -> no bound
bounds.accuracy([1, 2], delta=0, prior=[0.1, 0.2, 0.3]) -> broadcast
bounds.epsilon_for_advantage(1e-6, delta=1e-5) -> remains at epsilon 0
bounds.epsilon_for_positive_accuracy(0.005, prior=0.01) -> remains at epsilon 0
bounds.pinsker(-1) -> kl
bounds.tpr_from_mip(0.6, fpr=0.1) -> eta
bounds.mip_from_dp(1, adjacency="swap") -> adjacency
GAUSS.plot(GaussianDP(1.0)) -> must be trade-offs, got GaussianDP
GAUSS.plot(GAUSS, label="one") -> one text for each of the 2 curves, got 1
PURE.reconstruction(1.5); PURE.reconstruction(nan) -> baseline must be
PURE.attribute([0.5, 0.1]) -> adding up to 1
PURE.attribute([[0.5, 0.5]], weights=[1, 2]) -> weights must be
PURE.singling_out(2.5, 0.1) -> whole number
PURE.singling_out(0, 0.1) -> n must be
PURE.singling_out(5, -0.1) -> weight must be
PURE.singling_out(5, 0.1, side="middle") -> side must be
PURE.group(0); PURE.group(1.5) -> k must be
unlearning.deletion_capacity(1, 0.0, 0.8); unlearning.deletion_capacity(1, 1.0, 0.8) -> prior
unlearning.deletion_capacity(-1, 0.1, 0.8); unlearning.deletion_capacity(nan, 0.1, 0.8) -> epsilon
unlearning.deletion_capacity(1, 0.1, 1.0); unlearning.deletion_capacity(1, 0.1, 0.0) -> confidence
unlearning.deletion_capacity([1, 2], [0.1, 0.2, 0.3], 0.5) -> broadcast
unlearning.deletion_capacity_of_records(1, [0.1, 2.0], 0.8); unlearning.guarantee(1, [nan]) -> priors
OpacusCallback("engine") -> engine & str
OpacusCallback(ACCOUNTANT, every=0) -> every & at least 1
OpacusCallback(ACCOUNTANT, fpr=0.0) -> fpr & above 0
OpacusCallback(ACCOUNTANT, loader=[1, 2]) -> DPDataLoader & list & another mechanism
OpacusCallback(ACCOUNTANT)(); OpacusCallback(ACCOUNTANT).assessment() -> history is empty
assess(PureDP(1.0), n_sample=3) -> 'n_sample' & known are prior
assess("breast-cancer", epsilon=1) -> source must be & train a PrivateClassifier
assess(audit_scores([1.0] * 9, [0.0] * 9), bounds=None) -> did you mean 'bound'
assess(PureDP(1.0), np.ones((3, 1)), np.ones(3)) -> X and y go with a fitted model
assess(object()); assess([1, 2]) -> source must be
played(game="XFM") -> game must be one of
played(attack="ABC") -> attack must be one of
played(game="YFM", attack="LR") -> needs the intermediate models
played(noise_multiplier=0.0) -> noise_multiplier
played(sample_rate=1.5) -> sample_rate
played(steps=0) -> steps
played(dimension=1) -> dimension
attack_transcript(SubsampledGaussian(1.0, 0.1, 1, 2)) -> one record & records_per_person=2
shadows(y=np.zeros(8, int)) -> two classes
shadows(y=np.arange(7) % 2) -> one label per row
shadows(y=np.array([0, 1, 0, 1, 0, 1, 0, nan])) -> NaN
shadows(n_shadows=7) -> even
shadows(n_shadows=2) -> n_shadows must be at least 4
shadows(n_shadows=0, method="rmia") -> n_shadows must be at least 2
shadows(method="lyra") -> method must be one of
shadows(n_targets=0) -> n_targets
shadows(estimator=3) -> estimator must have fit
shadows(y=np.array([0, 0, 0, 0, 0, 0, 0, 1])) -> single class
canaries(k=5) -> k must be at least 10
canaries(kind="odd") -> kind must be one of
canaries(y=np.zeros(400)) -> two different values
canaries(y=np.zeros(3)) -> one label per row
canaries().scores(1.0) -> fitted estimator or a prediction function
released(advantage=0.0); released(advantage=-0.1); released(advantage=1.0); released(advantage=1.4) -> advantage
released(advantage=0.22, fraction=0.1) -> below 0.2
released(data=TABLE) -> at least 4 records
released(data=(ROWS, ROWS[1:])) -> equal length
Mean(bounds=(1, 0)); Mean(bounds=(0, inf)); Mean(bounds=3); Mean(bounds=(0, 1, 2)); Mean(bounds=("a", "b")) -> bounds
released(algorithm=Mean(), data=np.where(ROWS > 0.1, nan, ROWS), bound="auto") -> must be
released(noise="uniform") -> 'gaussian', 'norm-laplace'
released(bound="center") -> 'auto', 'direct', 'swap', 'centre'
released(fraction=1.0) -> fraction
released(confidence=1.0) -> confidence
released(n_resamples=2.5) -> n_resamples
released(n_jobs=0) -> n_jobs
released(noise="laplace") -> one-dimensional
released(algorithm="mean") -> callable
released(bound="swap") -> not for this; use bound='auto'
exact(data=np.arange(40.0)) -> fewer records
exact(k=6); exact(k=0) -> k must be
exact(algorithm=lambda part: np.random.random(), data=np.arange(4.0)) -> deterministic
exact(noise="gaussian") -> noise must have
exact(noise=SimpleNamespace(log_density=lambda x: -np.asarray(x)[..., 0] ** 2)) -> integrates to 1
exact(data=np.ones((4, 3))) -> as many dimensions as the output, 3
exact(data=np.ones((4, 3)), noise=stats.multivariate_normal(np.zeros(3))) -> sample
samplers(n_records=1, batch_size=1, advantage=0.2) -> n_records
samplers(batch_size=11, advantage=0.2) -> batch_size must be at most n_records, 10, got 11
samplers(epochs=0, advantage=0.2); samplers(epochs=1.5, advantage=0.2) -> epochs
samplers() -> give advantage
planned(rates=[0.5]) -> guessing from the prior
planned(rates=[0.0, 0.1]); planned(rates=[nan]) -> rates
planned(batch_size=0) -> batch_size
planned(epochs=-1) -> epochs
planned(delta=0.0) -> delta
planned(noise_multipliers=(5.0, 1.0)) -> noise_multipliers
calibrated() -> give advantage=0.1 or another limit
calibrated(advantage=0.1, limit=Limit(accuracy=0.6)) -> not both
calibrated(advantage=0.1, tolerance=0.0) -> tolerance must be
calibrated(advantage=0.1, bracket=(2, 1)); calibrated(advantage=0.1, bracket=3) -> bracket must be a pair
calibrated(advantage=0.1, bracket=(1, nan)) -> bracket[1] must be
calibrated(advantage=0.1, bracket=(1.5, 3), integer=True) -> bracket[0] must be a whole number
profiled(y=np.arange(60)); profiled(y=np.ones(60)) -> exactly two labels
profiled(y=np.tile([0.0, 1.0], 29)) -> one entry per row
profiled(regularization=nan); profiled(regularization=-1.0) -> regularization
profiled(loss="hinge") -> loss must be one of
profiled(released=np.zeros(5)) -> released must be 4 finite parameters
profiled(sample_weight=np.zeros(60)) -> sample_weight
profiled(tolerance=0.0) -> tolerance
profiled(loss="squared") -> bounded slope
profiled(intercept="unregularized") -> sensitivity has no bound
profiled(regularization=0.0) -> regularization above 0
profiled(y=np.array(["yes", None] * 30, dtype=object)) -> labels of one type
profiled(X=np.ones(60)) -> table of at least two rows
profiled(group=np.zeros(60)) -> at least two labels
profiled(group=np.zeros(3)) -> one label per row
profiled(group=np.arange(60), mechanism=ObjectivePerturbation(epsilon=1.0)) -> row by row
PROFILE.tpr(2.0) -> fpr
PROFILE.tpr(0.1, side="both") -> side
PROFILE.epsilon(nan) -> delta
PROFILE.tradeoff(60) -> record must be between
PROFILE.transition(quantile=1.5) -> quantile
PROFILE.to_frame(by="chance") -> by must be one of
PROFILE.transition(low=0.9, high=0.1) -> high
sphere() -> change
sphere(removed=[0, 0]) -> once
sphere(removed=[60]); sphere(removed=[0.5]) -> row numbers
sphere(removed=range(60)) -> at least one
sphere(added=(np.ones((1, 2)), [1.0])) -> 4 columns
sphere(added=(np.ones((2, 4)), [1.0])) -> one label
sphere(added=(np.ones((1, 4)), [5.0])) -> labels that y has
sphere(removed=[0], regularization=0.0) -> regularization
parse("maen(income)") -> did you mean 'mean'
parse("mean(income") -> expected ',' or ')', found the end
parse("mean income") -> expected '(' after the function, as in count() by region
parse("mean()") -> columns of mean must be 1, got 0 & write mean(x)
parse("mean(a, b)") -> columns of mean must be 1, got 2
parse("mean(income) per region") -> expected 'by'
parse("mean(income) by") -> expected the name of a column
parse("mean(income) by region sex") -> expected ',' or the end
parse("mean(a$b)"); parse("mean(a - b)") -> double quotes
parse("quantile(income)") -> must be 1 to 99 & write quantile(x, 0.5)
parse("quantile(income, 1)") -> below 1
parse("histogram(age, bin=5)") -> did you mean 'bins'
parse("histogram(age, bins=5, edges=1:2)") -> not both
parse("histogram(age, edges=2:1)") -> increasing
parse("ecdf(age, points=10)") -> power of two
parse("covariance(age, age)") -> different names
parse("regression(age)") -> expected '~'
parse("") -> expected a function
parse(3) -> must be a text
statistic("mean(agee)") -> no column 'agee'; did you mean 'age'
statistic("mean(age)", ranges={"age": "1 to 2"}) -> must be (low, high)
statistic("count() by sex", ranges={"sex": ["F", None]}) -> none of which means a missing cell
statistic("count() by sex", ranges={"sex": ["F", "(other)"]}) -> which every column has
statistic("count() by sex", ranges={"sex": ["F", "F"]}) -> different texts
statistic("mean(age)", n=0) -> n must be
statistic("mean(age)", advantage=1.0) -> promises nothing
statistic("mean(age)", advantage=None) -> give advantage
statistic("mean(age)", limit=Limit(tpr=0.1, fpr=0.01)) -> not both
statistic("mean(age)", ranges={"age": (90, 18)}) -> low < high
statistic("mean(age)", ranges={"agge": (0, 1)}) -> did you mean 'age'
statistic([]) -> at least one
statistic("mean(age)", confidence=1.0) -> confidence
statistic("count()", suppress_below=-1) -> suppress_below
statistic("mean(age)", advantage=1e-6) -> leaves too little
statistic("sum(day)", ranges={"day": ("2019-01-01", "2021-01-01")}) -> dates have no sum; ask for mean(day)
statistic("mean(day)", ranges={"day": ("2019-02-31", "2020-01-01")}) -> must be two finite numbers or dates
statistic("mean(day)", ranges={"day": ("2019-01-01", 5)}) -> must be two finite numbers or dates
statistic("mean(day)", ranges={"day": ("2020-01-01", "2019-01-01")}) -> low < high
statistic("histogram(day, edges=2020-13-01:2021-01-01)") -> 2020-13-01 is not a date
policy("advantag = 0.1") -> advantag & did you mean 'advantage'
policy("advantage = 10") -> advantage & at most 1 & 55 %
policy("advantage = nan") -> advantage & nan
policy("scope = 'mine'") -> scope & every data set
policy("require = ['luck']") -> require & attack
policy("fpr = 0.1") -> at least one rule
policy("[policy") -> not TOML
policy("[policy]\\nadvantage = 0.1\\n[other]\\na = 1") -> one table
classifier(y=np.repeat("ill", 60)) -> two classes
classifier(ranges={"age": (1, 1)}) -> low < high
classifier(ranges={"agee": (0, 1)}) -> did you mean 'age'
classifier(categories={"sax": ["F"]}) -> did you mean 'sex'
classifier(categories={"sex": []}) -> at least one
classifier(categories={"sex": range(60_000)}) -> at most 50000
classifier(X=pd.concat([FRAME, FRAME], axis=1)) -> different names
classifier(categories="guess") -> one of
classifier(advantage=1.0); classifier(advantage=0.0) -> advantage
classifier(advantage=0.1, limit=Limit(epsilon=1.0, delta=1e-5)) -> not both
classifier(limit=Limit(epsilon=1.0, delta=0.0)) -> no Gaussian noise
classifier(limit=Limit(singling_out=0.1, n=10, weight=0.0)) -> promises nothing
classifier(limit=Limit(tpr=0.1, fpr=0.0)) -> promises nothing
classifier(limit=PureDP(1.0)) -> full-batch Gaussian
classifier(advantage=1e-7, categories="discover") -> with a failure probability of 1e-06
classifier(model="forest") -> additive
classifier(model="linear", interactions=2) -> additive
classifier(interactions=-1) -> interactions
classifier(group="patient") -> group
regressor(loss="logistic") -> loss
regressor(loss="poisson", y=np.arange(60.0) - 5) -> at least 0
regressor(loss="poisson", target_range=(-1, 9)) -> at least 0 in target_range
regressor(target_range=(1, 0)) -> low < high
"""


def said(call):
    """What an InputError says; or what happened instead."""
    try:
        return f"returned {eval(call, NAMES)!r:.200}"
    except dn.InputError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}\n{error}"


def test_every_refusal_is_one_line_that_names_the_argument_and_the_rule():
    wrong = {}
    for line in REFUSED.strip().splitlines():
        calls, words = line.split(" -> ")
        for call in calls.split("; "):
            message = said(call)
            if "\n" in message or message.startswith("returned ") or not all(w in message for w in words.split(" & ")):
                wrong[call] = message
    assert wrong == {}
