import sys

import deniable as dn
from deniable import _doctor
from deniable.cli._app import run


def test_known_answers_come_out_here(capsys):
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "deniable" in shown
    assert "WRONG" not in shown
    assert shown.count("\nok ") == len(_doctor._QUESTIONS)


def test_a_wrong_answer_and_a_failing_one_are_told(monkeypatch, capsys):
    monkeypatch.setitem(_doctor._QUESTIONS, "closed form", lambda: _doctor._advantage(dn.GaussianDP(1.0), 0.38))
    monkeypatch.setitem(_doctor._QUESTIONS, "inversion", lambda: 1 / 0)
    assert run(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "WRONG  closed form" in shown
    assert "WRONG  inversion: ZeroDivisionError" in shown


def test_an_accountant_that_cannot_be_loaded_is_told(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "deniable.accounting", None)
    monkeypatch.delitem(sys.modules, "deniable._doctor")
    assert run(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "WRONG  closed form: ModuleNotFoundError" in shown
    assert "numpy" in shown


def test_missing_libraries_name_their_extra(monkeypatch):
    monkeypatch.setattr(_doctor, "_version", lambda name: "" if name == "opendp" else "1.0")
    assert "not installed (pip install 'deniable[release]')" in "\n".join(_doctor.diagnose().lines())
