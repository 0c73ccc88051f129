# `make demo` and `make test` need nothing but make and Python 3.11 or newer: they build their own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Added by .ci/run, or on the command line.
PYTEST_OPTIONS ?=

.PHONY: help demo test test-all check lint types imports bench docs clean

help:
	@echo "make demo      a first look: two tables, and a picture and reports in results/"
	@echo "make test      what every change must pass: lint, types, imports, quick tests"
	@echo "make test-all  the same with every test, however slow, and what they cover"
	@echo "make check     lint, types and imports only"
	@echo "make bench     the benchmarks"
	@echo "make docs      the documentation, with all its examples, in docs/_build/html"
	@echo "make clean     remove .venv, caches and builds"

# One stamp per extra, renewed when pyproject.toml changes: nothing is installed twice.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/stamp-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

demo: $(VENV)/stamp-cli
	$(BIN)/deferlearn demo

lint: $(VENV)/stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/stamp-dev
	$(BIN)/mypy

# Rooms import downward only, and nothing that is private to another room.
imports: $(VENV)/stamp-dev
	$(BIN)/lint-imports
	$(BIN)/python tools/import_graph.py

check: lint types imports

test: check
	$(BIN)/pytest -n 2 -rs -m "not slow" $(PYTEST_OPTIONS)

test-all: check
	DEFERLEARN_FULL=1 $(BIN)/pytest -n 2 -rs --cov --cov-report=term:skip-covered $(PYTEST_OPTIONS)

bench: $(VENV)/stamp-cli
	@for script in $(wildcard benchmarks/*.py); do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

# One thread for the linear algebra: examples are small, and two sphinxes may share a machine.
docs: $(VENV)/stamp-docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist docs/_build docs/auto_examples docs/api docs/sg_execution_times.rst .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
