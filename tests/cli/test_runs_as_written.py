"""Runs as people have them: fractions, percent, epochs, other names, files of other tools. All are the same run."""

import json

import pytest

import deniable as dn
from deniable.cli._app import run
from deniable.cli.run import read_run

SAME = [
    ("dpsgd,1,256/60000,2350", "dpsgd,1,256/60000,10 epochs"),
    ("dpsgd,1,256/60000,2350", "DPSGD,sigma=1,rate=256/60000,steps=10 epochs"),
    ("dpsgd,1,256/60000,2350", "dpsgd,noise=1,q=256/60000,steps=9.5 epochs"),
    ("dpsgd,1,0.0167,100", "dpsgd,1,1.67%,100"),
    ("dpsgd,1,0.01,300", "dpsgd,1,1%,3 epochs"),
    ("dpsgd,1,0.01,1", "dpsgd,1,25/2500,1"),
    ("dpsgd,1,0.01,5", "DP-SGD,1,0.01,5"),
    ("dpsgd,1,0.01,5", "dp_sgd,1,0.01,5"),
    ("person,3: dpsgd,1,0.01,100", "Person,3: DpSgd,1,1%,1 epoch"),
    ("dpsgd,1,0.01,10 + laplace,2", "DPSGD,1,1/100,10 + Laplace,2"),
]


@pytest.mark.filterwarnings("ignore:run .* epochs")
@pytest.mark.parametrize(("plain", "written"), SAME)
def test_a_run_as_people_write_it(plain, written):
    found, known = read_run(written), read_run(plain)
    assert type(found) is type(known)
    parts = zip(getattr(found, "mechanisms", [found]), getattr(known, "mechanisms", [known]), strict=True)
    for one, other in parts:
        assert vars(one) == pytest.approx(vars(other), rel=1e-12)


def test_steps_of_less_than_an_epoch_of_a_fraction_are_told():
    with pytest.warns(UserWarning, match=r"10 steps are 0\.043 epochs"):
        read_run("dpsgd,1.1,256/60000,10")


def test_a_file_may_name_the_numbers_of_a_run(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 5}')
    assert read_run(str(path)) == dn.SubsampledGaussian(1.1, 0.01, 5)
    path.write_text('{"noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 5, "records_in_a_batch": 3}')
    with pytest.raises(dn.InputError, match="must hold noise_multiplier, sample_rate and steps"):
        read_run(str(path))


@pytest.mark.parametrize(
    "words", ["dpsgd,1,1/0,5", "dpsgd,1,a%,5", "dpsgd,1,%,5", "dpsgd,1,200%,3 epochs", "dpsgd,1,?,3 epochs",
              "dpsgd,1,0.01,three epochs", "dpsgd,1,0.01,-1 epochs", "dpsgd,sigma=1,noise=2,rate=0.1,steps=1"]
)  # fmt: skip
def test_what_is_no_run_is_refused(words):
    with pytest.raises(dn.InputError):
        read_run(words)


def test_a_run_without_its_name_is_told_how_to_write_it(capsys):
    assert run(["bound", "1,0.01,5000"]) == 2
    assert "did you mean dpsgd,1,0.01,5000?" in capsys.readouterr().err


# made by json.dump(accountant.state_dict(), file) of opacus 1.6.0 (RDPAccountant, two settings, no step of a third)
OPACUS = {"history": [[1.0, 0.01, 3], [2.0, 0.02, 2]], "mechanism": "rdp"}
TRAINER = {"global_step": 100, "log_history": [{"final_epsilon_prv": 2.9, "final_epsilon_rdp": 3.2, "step": 100}]}


# made by json.dump(opake.serialization.state_dict(accountant), file) of opake-accounting and opake-dpsgd 0.16.1
def step(sigma, rate, **capped):
    return {"type": "Poisson", "inner": {"type": "Gaussian", "noise_multiplier": sigma}, "sample_rate": rate,
            "truncated_batch_size": None, "dataset_size": None, **capped}  # fmt: skip


REPEATED = {"type": "Repeated", "inner": step(1.1, 0.01), "count": 5}
FIRST = {"type": "Composed", "left": REPEATED, "right": step(2.0, 0.02)}
SECOND = {"type": "Composed", "left": FIRST, "right": {"type": "Gaussian", "noise_multiplier": 3.0}}
OPAKE = {"process": {"type": "Composed", "left": SECOND, "right": step(2.0, 0.02)},
         "budget": {"type": "EpsilonBudget", "epsilon": 3.0, "delta": 1e-05}}  # fmt: skip


def test_an_accountant_of_opake(tmp_path, capsys):
    def read(process):
        (tmp_path / "accountant.json").write_text(json.dumps({"process": process}))
        return read_run(str(tmp_path / "accountant.json"))

    known = [(1.1, 0.01, 5), (2.0, 0.02, 1), (3.0, 1.0, 1), (2.0, 0.02, 1)]
    assert read(OPAKE["process"]) == dn.Composition(dn.SubsampledGaussian(*phase) for phase in known)
    assert dn.tradeoff(read(OPAKE["process"])).epsilon(1e-5) == pytest.approx(1.27766967, rel=1e-4)  # epsilon_at(1e-5)
    assert read({"type": "Repeated", "inner": {"type": "CachedProcess", "inner": REPEATED}, "count": 3}) == (
        dn.SubsampledGaussian(1.1, 0.01, 15)
    )
    deep = step(1.0, 0.01)
    for number in range(300):
        deep = {"type": "Composed", "left": deep, "right": step(1.0 + number % 2, 0.01)}
    assert len(read(deep).mechanisms) == 300
    for wrong, says in (
        ({"type": "Identity"}, "history is empty"),
        (step(1.0, 0.01, truncated_batch_size=20, dataset_size=1000), "got 'Poisson'"),
        ({"type": "Composed", "left": REPEATED}, "got 'Composed'"),
        ({"type": "EpsDelta", "epsilon": 1.0, "delta": 0.0}, "got 'EpsDelta'"),
        ({"type": "Gaussian", "noise_multiplier": 0.0}, "noise_multiplier must be above 0"),
        ({**REPEATED, "count": -1}, "count must be"),
        ({**REPEATED, "inner": [1]}, "must hold Gaussian steps"),
    ):
        with pytest.raises(dn.InputError, match=says):
            read(wrong)


def test_files_of_tools(tmp_path, capsys):
    def written(content):
        path = tmp_path / "run.json"
        path.write_text(json.dumps(content))
        return str(path)

    known = dn.SubsampledGaussian(1.0, 0.01, 3) + dn.SubsampledGaussian(2.0, 0.02, 2)
    assert read_run(written(OPACUS)) == known
    assert read_run(written(OPACUS["history"])) == known
    assert read_run(written({**OPACUS, "history": [*OPACUS["history"], [3.0, 0.02, 0]]})) == known
    assert run(["compare", written(OPACUS), "gaussian,1"]) == 0
    noted = {"noise": 1.0, "batch": 256, "epochs": 10, "n": 60_000}
    assert read_run(written(noted)) == dn.SubsampledGaussian(1.0, 256 / 60_000, 2350)
    for wrong in ({**noted, "batch": 70_000}, {**noted, "epochs": 0}, {**noted, "sampling": "shuffled"}, {"noise": 1}):
        with pytest.raises(dn.InputError):
            read_run(written(wrong))
    with pytest.raises(dn.InputError, match="neither its δ nor the noise"):
        read_run(written(TRAINER))
    with pytest.raises(dn.InputError):
        read_run(written({**OPACUS, "history": [[1.0, 0.01, 0]]}))


def test_a_file_with_other_keys_names_them(tmp_path, capsys):
    file = tmp_path / "run.json"
    file.write_text('{"sigma": 1, "q": 0.01, "T": 100}')
    assert run(["bound", str(file)]) == 2
    said = capsys.readouterr().err
    assert "or noise, batch, epochs and n, got the keys 'sigma', 'q', 'T'" in said
