# Needs Python 3.11+ and make, nothing else. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test bench lint install dev clean

demo: $(VENV)/installed  ## solve the opening instance and show the plan with its proof
	$(BIN)/inferplan solve instances/opening.yaml

test: $(VENV)/developed  ## all tests
	$(BIN)/python -m pytest

bench: $(VENV)/developed  ## measured comparisons, as ratios of one run
	$(BIN)/python tests/benchmarks/run.py

lint: $(VENV)/developed  ## style, and types against a plain install (the editable one hides the package)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build/plain
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/plain .
	cd build/plain && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p inferplan

install: $(VENV)/installed
dev: $(VENV)/developed

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/developed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) build *.egg-info
