"""What the tests of the documentation share."""

import pytest


@pytest.fixture
def _only_when_asked(request, tmp_path, monkeypatch):
    if not request.config.getoption("--run-docs"):
        pytest.skip("the examples of the documentation are run by `make docs`")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
