"""Pytest plugin of deniable: budget options, JUnit properties and a summary of ``@deniable.audit.promise`` tests.

Nothing of deniable is imported unless a decorated test runs.
"""

from __future__ import annotations

from typing import Any

import pytest

_PROPERTY = "deniable"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the budget of every promise that does not name its own."""
    group = parser.getgroup("deniable", "privacy promises (@deniable.audit.promise)")
    group.addoption("--deniable-trials", type=int, metavar="N", help="releases of each world, at most (1000)")
    group.addoption("--deniable-seconds", type=float, metavar="S", help="time for each promise, at most (60)")


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """Run a decorated test within the budget, and keep what it found for JUnit XML and the summary."""
    function = pyfuncitem.obj
    if not getattr(function, "deniable_promise", False):
        yield
        return
    from deniable.audit.checking import limits

    with limits(pyfuncitem.config.getoption("--deniable-trials"), pyfuncitem.config.getoption("--deniable-seconds")):
        yield
    found = getattr(function, "deniable_check", None)
    if found is not None:
        pyfuncitem.user_properties.append((_PROPERTY, str(found)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say of every promise what was found, and what could have been."""
    lines = [
        f"{report.nodeid}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == _PROPERTY
    ]
    if lines:
        terminalreporter.section("privacy promises")
        for line in lines:
            terminalreporter.write_line(line)
