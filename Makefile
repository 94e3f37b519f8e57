# Every target sets up .venv by itself: Python 3.11 or later with venv is all that is needed, and no GPU.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS := $(VENV)/.runs
# NVIDIA's host packages only where its driver is.
comma := ,
EXTRAS := webgpu$(if $(shell command -v nvidia-smi),$(comma)cuda)
JOBS ?= auto

.PHONY: demo test bench lint format conformance safety setup clean

demo: $(RUNS)
	$(BIN)/gridwise demo $(ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

bench: $(STAMP)
	$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python bench/run.py $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

conformance: $(STAMP)
	$(BIN)/python -m pytest tests/conformance -n $(JOBS) --conformance-page docs/conformance.md $(ARGS)

safety: $(STAMP)
	$(BIN)/python -m pytest tests/safety -n $(JOBS) $(ARGS)

setup: $(STAMP)

$(RUNS): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or later is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$(EXTRAS)]'
	touch $@

$(STAMP): $(RUNS)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$(EXTRAS),dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
