"""No question takes more than 500 MB: what does not fit gets a wider bracket."""

import subprocess
import sys

import pytest

_SCRIPT = """
import deniable as dn
S, C = dn.SubsampledGaussian, dn.Composition
t = dn.tradeoff({mechanism}, engine={engine!r})
assert t.{question} >= 0
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""

QUESTIONS = [
    # 20 phases of little noise took 650 MB, three of them 300
    ("C([S(.14, .001 + 1e-4 * i, 3) for i in range(20)])", "pld", "advantage()"),
    ("C([dn.GaussianDP(2e4), S(.14, 8e-4, 21)])", "pld", "advantage()"),
    (
        "C([S(.03, 1., 1)] + [S(.14 * (1 + i / 3), 1e-4 * (1 + i), 20 * (1 + i)) for i in range(16)])",
        "auto",
        "epsilon(1e-5)",
    ),
    ("C([dn.PureDP(.3), dn.PureDP(.2), dn.PureDP(1.), dn.GaussianDP(.09873)])", "auto", "epsilon(1e-5)"),
    ("C([dn.PureDP(.01)] * 3000 + [dn.PureDP(.013)] * 4000 + [dn.PureDP(.5)] * 10)", "auto", "epsilon(1e-5)"),
    ("S(.05, .5, 10**15)", "auto", "tpr(1e-3)"),
    # tilts of minus a million standard deviations listed as many outcomes: 8 GB and more
    ("dn.DiscreteGaussian(3.755, 3, 6, .0001552)", "auto", "inverse().tpr(1.77e-15, side='lower')"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc: ru_maxrss counts the parent")
@pytest.mark.parametrize(("mechanism", "engine", "question"), QUESTIONS)
def test_no_question_takes_more_than_500_mb(mechanism, engine, question):
    script = _SCRIPT.format(mechanism=mechanism, engine=engine, question=question)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 500 * 1024


_MANY = """
import deniable as dn

def asked(k):
    wide = dn.DiscreteGaussian(20000.0 + k, sensitivity=50000 + k)
    assert dn.tradeoff(wide + dn.PureDP(0.1)).advantage() > 0.5
    return int(open("/proc/self/statm").read().split()[1]) * 4096

sizes = [asked(k) for k in range(16)]
print(sizes[-1] - sizes[7])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the size is read from /proc")
def test_what_is_kept_of_laws_is_bounded_by_its_size():
    """Sixteen laws of half a million outcomes: 15 MB each were kept, up to a thousand of them."""
    done = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40e6
