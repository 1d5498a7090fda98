"""With NumPy, SciPy and Typer alone the core works, and everything else names the line that installs what it needs."""

import subprocess
import sys
import textwrap

import pytest

from deniable._optional import EXTRA_OF

BLOCK = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRA_OF)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def bare(code: str) -> subprocess.CompletedProcess[str]:
    script = BLOCK + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_the_core_works_without_any_extra():
    done = bare("""
        import deniable as dn
        t = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 500) + dn.PureDP(0.1))
        assert t.advantage() < t.tpr(0.5) and t.epsilon(1e-5) > 0
        dn.calibrate(lambda s: dn.SubsampledGaussian(s, 0.01, 100), (0.5, 10), advantage=0.2)
        dn.bounds.advantage(1.0); dn.unlearning; dn.planning.plan_subsampling
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ("dn.assess(dn.PureDP(1)).to_html()", "report"),
        ("dn.MembershipPrivate", "release"),
        ("dn.release", "release"),
        ("dn.release_statistics", "tables"),
        ("dn.PrivateClassifier", "training"),
        ("dn.profile_estimator", "training"),
        ("dn.tradeoff(dn.PureDP(1)).plot()", "report"),
        ("dn.audit_scores([1, 2, 3, 4] * 9, [0, 1, 2, 3] * 9).to_frame()", "records"),
    ],
)
def test_what_is_missing_names_its_install_line(call, extra):
    done = bare(f"""
        import deniable as dn
        try:
            {call}
        except ImportError as error:
            print(error)
    """)
    assert done.returncode == 0, done.stderr
    assert f"which is not installed; run: pip install 'deniable[{extra}]'" in done.stdout


def test_a_module_of_our_own_that_is_not_there_is_told_as_it_is():
    done = bare("""
        import deniable as dn
        sys.modules["deniable.training.account"] = None
        try:
            dn.PrivateClassifier
        except ImportError as error:
            print(error)
    """)
    assert "deniable.training.account" in done.stdout
    assert "pip install" not in done.stdout


def test_commands_on_runs_work_and_the_others_say_the_line_that_installs_them():
    wanted = {
        "bound dpsgd,4,0.1,10": "",
        "bound epsilon,1 --json": "",
        "bound gaussian,1 --plot a.svg": "report",
        "calibrate dpsgd,?,1,10 --advantage 0.1": "",
        "plan dpsgd,?,1,1 --records 10 --advantage 0.2": "",
        "plan dpsgd,?,1,10 --records 100 --precision 0.3 --fpr 0.01 --rate 0.1": "",
        "compare gaussian,0.1 laplace,20": "",
        "assess gaussian,0.1": "",
        "assess gaussian,0.1 --report a.html": "report",
        "doctor": "",
        "train breast-cancer": "tables",
        "check breast-cancer": "tables",
        "attack breast-cancer --model tree": "tables",
        "profile breast-cancer --epsilon 1": "tables",
        "publish breast-cancer --statistic count()": "tables",
        "predict model.skops new.csv": "release",
    }
    done = bare(f"""
        import contextlib, io
        import deniable.cli
        from deniable.cli._app import run
        for line in {list(wanted)!r}:
            told = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
                code = run(line.split())
            print(code, (told.getvalue().strip().splitlines() or [""])[-1])
    """)
    assert done.returncode == 0, done.stderr
    said = dict(zip(wanted, done.stdout.splitlines(), strict=True))
    wrong = {
        line: told
        for line, told in said.items()
        if not (told.startswith("0 ") if not wanted[line] else told.endswith(f"pip install 'deniable[{wanted[line]}]'"))
    }
    assert wrong == {}


def test_import_loads_neither_scipy_nor_any_extra():
    heavy = {"scipy", "typer", "rich", "dp_accounting", *EXTRA_OF}
    code = f"import sys, deniable; print(sorted({heavy!r} & {{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_first_curve_of_dp_sgd_loads_no_more_than_it_needs():
    done = bare("""
        import deniable as dn
        t = dn.tradeoff(dn.SubsampledGaussian(1.0, 0.01, 5000))
        t.advantage(), t.delta(1.0)
        assert not {name for name in sys.modules if name.startswith(("scipy", "deniable.accounting.pld"))}
        t.epsilon(1e-5), t.tpr(1e-3)
    """)
    assert done.returncode == 0, done.stderr
