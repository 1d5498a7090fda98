# Two commands do everything on a machine that has Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
CODE := src tests papers benchmarks examples tools docs
PAPERS_OUT ?= out/papers
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-slow torch lint docs site bench evidence papers statements fuzz architecture ci clean help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[tables]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.base

demo: $(VENV)/.base  ## fit a private model to 20,000 invented people and write out/demo.html
	@mkdir -p out
	$(BIN)/python examples/people.py out/people.csv
	$(BIN)/deniable train out/people.csv --target ill --advantage 0.1 --owner-report out/demo.html
	@echo "Open this page in a browser: $(CURDIR)/out/demo.html"

test: $(VENV)/.dev  ## run the tests, in some four minutes
	$(BIN)/pytest --numprocesses auto -m "not slow and not browser"

test-slow: $(VENV)/.dev  ## the slow tests and those in a browser; ARGS="--part 1/3" for the second third of them
	$(BIN)/pytest --numprocesses auto -m "slow or browser" $(ARGS)

lint: $(VENV)/.dev  ## style, types and the import contract
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

TORCH := .venv-torch
$(TORCH)/.made: pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed" >&2; exit 2; }
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/pip install --quiet --disable-pip-version-check --index-url https://download.pytorch.org/whl/cpu torch
	$(TORCH)/bin/pip install --quiet --disable-pip-version-check --editable '.[dev,torch]'
	@touch $@

torch: $(TORCH)/.made  ## run the tests that need PyTorch and Opacus, in an environment of its own, without CUDA
	$(TORCH)/bin/python -m pytest --numprocesses auto $$(grep -lrE 'importorskip\("(torch|opacus)' tests --include 'test_*.py')
	$(TORCH)/bin/python -m pytest tests/docs --override-ini 'addopts=' -q --run-docs -k private_pytorch

docs: $(VENV)/.dev  ## run every example of README, docs and docstrings and compare its output
	$(BIN)/pytest src/deniable --doctest-modules --override-ini 'addopts=' -q --numprocesses auto
	$(BIN)/pytest tests/docs --override-ini 'addopts=' -q --run-docs --numprocesses auto

SITE := .venv-site
$(SITE)/.made: pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed" >&2; exit 2; }
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check --index-url https://download.pytorch.org/whl/cpu torch
	$(SITE)/bin/pip install --quiet --disable-pip-version-check --editable '.[site,torch]'
	@touch $@

site: $(SITE)/.made  ## build the site into docs/_build/html, in an environment of its own, warnings as errors
	$(SITE)/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(SITE)/bin/python tools/check_site.py docs/_build/html

ci:  ## everything that must hold before a change lands
	.ci/run

bench: $(VENV)/.dev  ## time and width of what is tracked, against the recorded figures; ARGS=--record keeps them
	@mkdir -p out
	$(BIN)/python -m pytest benchmarks/tracked --override-ini addopts= -p no:xdist -q --benchmark-timer time.process_time --benchmark-json out/bench.json
	$(BIN)/python benchmarks/tracked/compare.py out/bench.json $(ARGS)

evidence: $(VENV)/.dev  ## figures of README and docs/evidence.md again, against the recorded ones; ARGS=--record keeps them
	$(BIN)/python benchmarks/evidence.py $(ARGS)

fuzz: $(VENV)/.dev  ## random mechanisms against every check; ARGS="--minutes 60 --seed 7" (default: ten minutes)
	PYTHONPATH=tests $(BIN)/python -m fuzz $(ARGS)

papers: $(VENV)/.dev  ## redraw every figure of the papers in full, into out/papers, with its numbers and its time
	@$(BIN)/python papers/reproduce.py --out $(PAPERS_OUT)

statements: $(VENV)/.dev  ## write the pages of docs/papers from papers/statements.toml
	$(BIN)/python tools/statements.py

architecture: $(VENV)/.dev  ## write ARCHITECTURE.md from the imports
	$(BIN)/python tools/architecture.py

clean:  ## remove the environment and everything made
	rm -rf $(VENV) $(SITE) $(TORCH) docs/_build docs/api docs/api.rst docs/images/architecture.svg $(addprefix docs/,architecture.md changelog.md contributing.md security.md) out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
