# Everything here needs only Python 3.11 or newer and make. The first run of a target creates .venv and
# installs what that target needs; later runs reinstall only when pyproject.toml or constraints.txt change. Another
# Python has an environment of its own: make test-all PYTHON=python3.13 VENV=.venv313.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SITE   := build/site
BENCHMARKS := logistic engines fronts regression noise running_noise running_sums participation accounting growth decayed_sums forgetting learn store service users starting utility accuracy search stages bandits
PINNED := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
# Bytecode is cached whatever the environment says: rewriting the tests' assertions takes half of their collection.
unexport PYTHONDONTWRITEBYTECODE
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo bench test test-all spark checks lint types docs doctest clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name what; do \
		printf '  make %-10s %s\n' "$$name" "$$what"; done

demo: $(VENV)/.demo ## learn ad clicks privately, show what privacy costs, and how the dashboard is opened
	$(BIN)/python examples/ad_clicks.py
	$(BIN)/python examples/served_clicks.py

bench: $(VENV)/.peers $(VENV)-diffprivlib/.ready ## run every benchmark against its peers (an hour and a half)
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || exit 1; done

test: checks ## every check, then the tests (slow ones left out)
	$(BIN)/python -m pytest tests -n 2

test-all: checks $(VENV)/.spark ## every check, then all tests, those of Spark included
	$(BIN)/python -m pytest tests -n 2 -m ""

spark: $(VENV)/.spark ## set up Spark (half a gigabyte; Java 17 is yours to install), and run the tests that need it
	$(BIN)/python -c 'from taciturn.spark import check_java; check_java()'
	$(BIN)/python -m pytest tests/test_spark.py -m spark

checks: lint types docs doctest

lint: $(VENV)/.dev ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## static types of the package, strictly
	$(BIN)/mypy

docs: $(VENV)/.dev ## build the documentation into build/site; a page may fetch nothing from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir $(SITE)
	@if grep -rnoE '<(script|link|img|iframe|source)[^>]*(src|href)="?(https?:)?//[^ >]*' $(SITE) --include='*.html'; then \
		echo 'A page of the documentation loads something from another host: see the lines above.'; exit 1; fi

doctest: $(VENV)/.dev ## the examples in the docstrings
	$(BIN)/python -m pytest --doctest-modules src docs_build

clean: ## remove what the targets leave behind, the virtual environment excepted
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests docs_build examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# ---- the environment ------------------------------------------------------------------------------

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "taciturn needs Python 3.11 or newer, and '$(PYTHON)' is older or cannot be run: name one, as in make PYTHON=python3.12."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(PINNED) -e ".[cli,plot,serve]"
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(PINNED) -e ".[all,docs,dev]"
	@touch $@ $(VENV)/.demo

$(VENV)/.spark: $(VENV)/.dev
	$(PINNED) -e ".[all,docs,dev,spark]"
	@touch $@

$(VENV)/.peers: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(PINNED) -e ".[all,peers]"
	@touch $@

$(VENV)-diffprivlib/.ready: benchmarks/diffprivlib.txt
	$(PYTHON) -m venv $(VENV)-diffprivlib
	$(VENV)-diffprivlib/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@
