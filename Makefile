# Every target prepares its own environment: a fresh clone needs Python 3.11, pip, make and git.
PYTHON ?= python3
# The environment that is active, else one of this folder.
VENV   ?= $(or $(VIRTUAL_ENV),.venv)
BIN    := $(VENV)/bin
# Many tests wait for a process or a clock: one worker more than cores keeps the cores busy.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start Python thousands of times: without compiled modules each start compiles them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-faults fuzz mutants lint bench stubs shape docs calibration clean

help:  ## Say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

$(BIN)/trialwise: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable .
	@touch $@

# Most of what the tests need is imported rarely: Python compiles it when it is.
$(VENV)/.dev: pyproject.toml $(BIN)/trialwise
	$(BIN)/pip install --quiet --no-compile --editable '.[dev]'
	@touch $@

$(VENV)/.docs: pyproject.toml $(BIN)/trialwise
	$(BIN)/pip install --quiet --editable '.[docs]'
	@touch $@

demo: $(BIN)/trialwise  ## Run an example, show its result and name its report
	@$(BIN)/trialwise run --quiet --suite examples/quickstart/trialwise.yaml --seed 2

test: $(VENV)/.dev  ## Run the tests (a few minutes on two cores)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow'

# There is no build of atheris for every machine; without it its tests are skipped.
$(VENV)/.fuzz: pyproject.toml $(VENV)/.dev
	-$(BIN)/pip install --quiet --editable '.[fuzz]'
	@touch $@

test-all: $(VENV)/.dev $(VENV)/.fuzz  ## Run every test, the slow ones too
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-faults: $(VENV)/.dev  ## Break runs in every way and write docs/reliability.md
	mkdir -p build
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -o junit_family=xunit2 \
		--junitxml=build/faults.xml tests/faults tests/executors; \
		code=$$?; $(BIN)/python -m tools.write_reliability build/faults.xml; exit $$code

# Minutes of `make fuzz`, over all readers.
MINUTES ?= 5

fuzz: $(VENV)/.dev $(VENV)/.fuzz  ## Fuzz every reader for MINUTES and write docs/reliability.md
	$(BIN)/python -m tools.fuzz_readers --minutes $(MINUTES)

# How many mutants to draw, and from which seed.
COUNT ?= 200
SEED  ?= 1

mutants: $(VENV)/.dev  ## Change the code at COUNT places and count what the tests notice
	$(BIN)/python -m tools.mutants --count $(COUNT) --seed $(SEED)

lint: $(VENV)/.dev  ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev  ## Measure speed as ratios against bare Python and peers
	$(BIN)/python -m bench

stubs: $(VENV)/.dev  ## Write the stubs, the schema and the reference from the declarations
	$(BIN)/python -m tools.stubs
	$(BIN)/python -m tools.requirements

shape:  ## Measure the shape of the code: size, names, private imports
	@$(PYTHON) -m tools.shape

calibration: $(BIN)/trialwise  ## Recompute docs/calibration.md
	$(BIN)/trialwise conformance --calibration --output docs/calibration.md

docs: $(VENV)/.docs  ## Build the documentation site into docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:  ## Remove what the other targets made
	rm -rf $(VENV) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
