# Two commands matter: `make demo` and `make test`. Both set up .venv first, and only when something changed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
ALL    := .[run,render,study]

.PHONY: help setup demo test test-all lint docs bench rooms clean

help:  ## show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(STAMP)  ## build .venv from pyproject.toml (a no-op when nothing changed)

# uv when it is there or can be installed, else pip: the same packages either way. Both compile to bytecode, without which
# every start of Python would take seconds longer.
$(STAMP): pyproject.toml Makefile
	@if command -v uv >/dev/null 2>&1; then \
	  test -x $(BIN)/python || uv venv --quiet --python '>=3.11' $(VENV); \
	else \
	  test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check uv || true; \
	fi
	@if command -v uv >/dev/null 2>&1; then installer="uv pip install --quiet --compile-bytecode --python $(BIN)/python"; \
	elif test -x $(BIN)/uv; then installer="$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python"; \
	else $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' && installer="$(BIN)/python -m pip install --quiet"; fi; \
	echo "installing randomist and its tools into $(VENV) ..."; \
	$$installer -e '$(ALL)' --group dev --group docs
	@touch $@

demo: setup  ## all learners on the four illustrative problems: a table and a figure
	$(BIN)/randomist demo --jobs $(JOBS)

test: setup  ## the test suite, without the slow statistical tests
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

test-all: setup  ## everything, the slow statistical tests included
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m 'slow or not slow'

lint: setup  ## ruff, mypy, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup  ## the HTML documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: setup  ## the benchmarks behind every figure of speed
	$(BIN)/python -m benchmarks

rooms: setup  ## lines of src, folder by folder
	$(BIN)/python -m benchmarks.rooms

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) docs/_build out .pytest_cache .mypy_cache .ruff_cache
