# Everything here needs a Python >= 3.11 with pip and venv, and make; no more.
#   make PYTHON=python3.12 test      choose the Python that .venv is made with
#   make PYTEST_ARGS="-k name" unit  pass arguments to pytest
#   make RELIABILITY_ARGS="--only A1 S2" reliability  some of its items

PYTHON      ?= python3
WORKERS     ?= 2
PYTEST_ARGS ?=
RELIABILITY_ARGS ?=

# The Pythons that `test-all-pythons` asks for, each by the name python3.X or, where
# that is not to be had, from pyenv's folder.
PYTHONS     ?= 3.11 3.12 3.13

# What `rounding` runs, and where the real data sets are if they are at hand.
NUMERICAL   := $(addprefix tests/,maths kernels methods)
PROMISED    := $(addprefix tests/,contracts/test_methods.py contracts/test_evaluators.py \
                 save/test_encoding.py)
DATA        := $(wildcard ../shared/data)

VENV        := .venv
BIN         := $(VENV)/bin
MINIMAL     := .venv-minimal
LOWEST      := .venv-lowest
TOOLS       := .venv-tools
PINS        := pyproject.toml constraints.txt
PIP         := -m pip --disable-pip-version-check --no-input install -qq -c constraints.txt
PYTEST      := -m pytest -n $(WORKERS)
TEST_TOOLS  := pytest pytest-timeout pytest-xdist hypothesis

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: $(VENV)/.stamp-demo ## Install the command line and run `dszog demo`
	@$(BIN)/dszog demo

# Three that keep one core busy each run beside each other; the tests need all of them.
.PHONY: test
test: $(VENV)/.stamp-dev ## All that a change must pass: lint, types, doctest, unit, rounding
	@$(MAKE) --no-print-directory -j2 types lint doctest
	@$(MAKE) --no-print-directory unit rounding

# Tests run beside each other, so each has one thread: two that wait for each other's
# threads took up to a hundred times as long on a busy machine.
unit rounding slow torch minimal lowest: export OMP_NUM_THREADS ?= 1

# Tests on real data are skipped without DSZOG_DATA, which stays as it is if it is set.
ifneq ($(DATA),)
unit slow: export DSZOG_DATA ?= $(abspath $(DATA))
endif

.PHONY: lint
lint: $(VENV)/.stamp-dev ## Check style and formatting with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: format
format: $(VENV)/.stamp-dev ## Let ruff format the code and make its safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: types
types: $(VENV)/.stamp-dev ## Check types with mypy --strict
	$(BIN)/mypy

.PHONY: unit
unit: $(VENV)/.stamp-dev ## Run the tests that take seconds
	$(BIN)/python $(PYTEST) -m "not slow and not browser" $(PYTEST_ARGS)

.PHONY: rounding
rounding: $(VENV)/.stamp-dev ## Run numerical tests with other rounding (BLAS, SIMD), and without Numba
	$(BIN)/python -m tests.rounding -n $(WORKERS) -m "not slow and not browser" \
	  $(NUMERICAL) $(PYTEST_ARGS)
	DSZOG_KERNELS=numpy $(BIN)/python $(PYTEST) -m "not slow and not browser" \
	  $(PROMISED) $(PYTEST_ARGS)

.PHONY: slow
slow: $(VENV)/.stamp-dev ## Run the tests that take minutes: thousands of configurations, kills
	$(BIN)/python $(PYTEST) -m "slow and not browser" $(PYTEST_ARGS)

.PHONY: reliability
reliability: $(VENV)/.stamp-dev ## Measure what is promised: kills, damage, fuzzing, mutants (an hour or so)
	$(BIN)/python tools/reliability.py $(RELIABILITY_ARGS)

.PHONY: mutants
mutants: $(VENV)/.stamp-dev ## Take guards away one at a time: the tests have to notice
	$(BIN)/python tools/mutants.py

.PHONY: doctest
doctest: $(VENV)/.stamp-dev ## Run the examples in the docstrings
	$(BIN)/python -m pytest --doctest-modules --ignore=src/dszog/torch \
	  src/dszog src/dszog_paper src/dszog_bench

.PHONY: torch
torch: $(VENV)/.stamp-torch ## Run the tests of dszog.torch, with PyTorch for the CPU
	$(BIN)/python $(PYTEST) -m "not slow" tests/torch \
		tests/test_docs.py::test_the_names_that_a_page_points_to_exist $(PYTEST_ARGS)
	$(BIN)/python -m pytest --doctest-modules \
	  --ignore=src/dszog/torch/on_gpu.py src/dszog/torch

.PHONY: docs
docs: $(VENV)/.stamp-docs ## Build the site into docs/_build/html; runs its examples, no network
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@! grep -rlE '<(script|link|img)[^>]*(src|href)="(https?:)?//' docs/_build/html \
	  --include='*.html' || { echo 'These pages fetch something: they must not.'; exit 1; }
	@echo 'The site is there: docs/_build/html/index.html'

.PHONY: browser
browser: $(VENV)/.stamp-dev ## Look at the paper's report and the dashboard in Chromium (Debian: apt install chromium)
	$(BIN)/python -m pytest -m browser tests/paper/browser tests/cli/test_watch.py

.PHONY: minimal
minimal: $(MINIMAL)/.stamp ## Run tests and doctests with NumPy and SciPy alone, no extras
	$(MINIMAL)/bin/python $(PYTEST) -m "not slow and not browser" $(PYTEST_ARGS)
	$(MINIMAL)/bin/python -m pytest --doctest-modules --doctest-ignore-import-errors \
	  --ignore=src/dszog/kernels --ignore=src/dszog/torch src/dszog

.PHONY: lowest
lowest: $(LOWEST)/.stamp ## Run the tests with the oldest NumPy and SciPy that are allowed
	$(LOWEST)/bin/python $(PYTEST) -m "not slow and not browser" $(PYTEST_ARGS)

.PHONY: test-all-pythons
test-all-pythons: $(PYTHONS:%=test-python-%) ## Run the tests on Python 3.11, 3.12 and 3.13

.PHONY: $(PYTHONS:%=test-python-%)
$(PYTHONS:%=test-python-%): test-python-%: .venv-%/.stamp
	.venv-$*/bin/python $(PYTEST) -m "not slow and not browser" $(PYTEST_ARGS)

.PHONY: dist
dist: $(VENV)/.stamp-dev ## Build the wheel and the source archive into dist/
	$(BIN)/python -m build --no-isolation

.PHONY: constraints
constraints: $(TOOLS)/.stamp ## Re-make constraints.txt from pyproject.toml, newest versions
	@{ echo '# The versions that tests run with. Re-make with: make constraints'; \
	  $(TOOLS)/bin/uv pip compile pyproject.toml --all-extras --universal \
	    --python-version 3.11 --no-header --no-annotate --no-emit-index-url \
	    --upgrade --quiet; } > constraints.new || { rm -f constraints.new; exit 1; }
	@mv constraints.new constraints.txt
	@echo 'constraints.txt is new: run `make test-all-pythons minimal` before it is kept.'

.PHONY: clean
clean: ## Remove environments, builds and caches
	rm -rf .venv .venv-* build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf docs/_build docs/api/generated docs/gallery
	find src tests docs examples -name __pycache__ -type d -prune \
	  -exec rm -rf {} + 2>/dev/null || true

# --- environments: made once, brought up to date when pyproject.toml or
# constraints.txt change -----------------------------------------------------------

# $(call make-venv,PYTHON,FOLDER)
define make-venv
	@command -v $(1) >/dev/null 2>&1 || { \
	  echo 'dszog needs Python 3.11 or newer, and "$(1)" was not found.' \
	       'Install one, or name it: make PYTHON=/path/to/python3'; exit 1; }
	@$(1) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'dszog needs Python 3.11 or newer, and "$(1)" is older or does not start.' \
	       'Name a newer one: make PYTHON=/path/to/python3'; exit 1; }
	@$(1) -m venv $(2)
endef

$(VENV)/.stamp-venv:
	$(call make-venv,$(PYTHON),$(VENV))
	@touch $@

$(VENV)/.stamp-demo: $(PINS) | $(VENV)/.stamp-venv
	@echo 'Installing dszog with its command line into $(VENV) ...'
	@$(BIN)/python $(PIP) -e '.[cli,viz]'
	@touch $@

$(VENV)/.stamp-dev: $(PINS) | $(VENV)/.stamp-venv
	@echo 'Installing dszog and the development tools into $(VENV) ...'
	@$(BIN)/python $(PIP) -e '.[dev]'
	@touch $@

# Exactly this version is a build for the CPU; others may bring gigabytes for GPUs.
$(VENV)/.stamp-torch: $(PINS) | $(VENV)/.stamp-dev
	@echo 'Installing PyTorch for the CPU into $(VENV) ...'
	@$(BIN)/python $(PIP) 'torch==2.13.0' safetensors
	@touch $@

$(VENV)/.stamp-docs: $(PINS) | $(VENV)/.stamp-venv
	@echo 'Installing dszog and what the site is built with into $(VENV) ...'
	@$(BIN)/python $(PIP) -e '.[docs]'
	@touch $@

$(MINIMAL)/.stamp: $(PINS)
	$(call make-venv,$(PYTHON),$(MINIMAL))
	@echo 'Installing dszog without extras into $(MINIMAL) ...'
	@$(MINIMAL)/bin/python $(PIP) -e . $(TEST_TOOLS)
	@touch $@

# No constraints.txt here: it has newer ones. The versions are those of `dependencies`.
$(LOWEST)/.stamp: pyproject.toml
	$(call make-venv,$(PYTHON),$(LOWEST))
	@echo 'Installing dszog with the oldest NumPy and SciPy into $(LOWEST) ...'
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check --no-input install -qq -e . \
	  $(TEST_TOOLS) $$(sed -n '/^dependencies/ { s/.*\[//; s/\]//; s/[",]/ /g; s/>=/==/g; p; }' \
	    pyproject.toml)
	@touch $@

$(TOOLS)/.stamp: | $(VENV)/.stamp-venv
	@$(BIN)/python -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip --disable-pip-version-check --no-input install -qq uv
	@touch $@

$(PYTHONS:%=.venv-%/.stamp): .venv-%/.stamp: $(PINS)
	@set -e; python=; \
	for try in python$* "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$*.*/bin/python; do \
	  if "$$try" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$*")' \
	    >/dev/null 2>&1; then python=$$try; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo 'Python $* was not found. Install it,' \
	  'or leave it out: make PYTHONS="..." test-all-pythons'; exit 1; fi; \
	"$$python" -m venv .venv-$*
	@echo 'Installing dszog and the development tools into .venv-$* ...'
	@.venv-$*/bin/python $(PIP) -e '.[dev]'
	@touch $@
