# `make` alone lists what there is. Everything is installed into .venv; a second run starts at once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

# real data beside the project, where there is some; otherwise it is fetched when first needed
ifneq ($(wildcard ../shared/data),)
export SETMINUS_DATA ?= $(abspath ../shared/data)
endif

# the tests start many processes: each would compile the packages anew if no bytecode were kept
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint types docs docs-serve dist test-oldest test-spark sbom audit fuzz bench mutants picture clean

help: ## list these targets
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

demo: $(VENV)/.installed-demo ## the tour: a model made fair, claims checked, digits recolored, a new class mix; a page about it, within 6 minutes after installation
	@$(BIN)/setminus demo

test: lint types $(VENV)/.installed-dev ## everything that must hold: style, types, imports, tests, doctests
	@# one thread per worker: two workers already fill two cores; neighbours stay together, for they share fixtures
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

test-all: export SETMINUS_FUZZ = 100
test-all: test ## the same with more of what `test` samples: damaged model files, changed attributes

lint: $(VENV)/.installed-dev ## style, formatting and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-dev ## static types; every public name has one
	$(BIN)/mypy
	@# pyright reads the environment of the first python on the path
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pyright --verifytypes setminus --ignoreexternal > $(VENV)/types.txt || { sed -n "/^Symbols used/,$$ p" $(VENV)/types.txt; exit 1; }

docs: $(VENV)/.installed-dev ## the documentation, as a site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.installed-dev ## the same at http://localhost:8000, rebuilt after every change
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

dist: $(VENV)/.installed-dev ## sdist and wheel of both packages, checked, and the wheel tried in an empty environment
	rm -rf dist build/smoke
	for package in . paper; do $(BIN)/python -m build --no-isolation --outdir dist $$package || exit 1; done
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m venv build/smoke
	build/smoke/bin/python -m pip install -q -c constraints.txt "$$(ls $(CURDIR)/dist/setminus-*.whl)[cli]"
	cp tests/release_smoke.py build/smoke/
	cd build/smoke && bin/python -I release_smoke.py

test-spark: $(VENV)/.installed-dev ## the parts that run on a Spark cluster of this machine, one worker of which is killed; needs Java
	$(INSTALL) -e ".[spark]"
	OMP_NUM_THREADS=1 $(BIN)/pytest -rs tests/scale/test_spark_parts.py tests/scale/test_spark_parts_on_a_cluster.py tests/commands/test_audit_streams.py

OLDEST := build/oldest
CORE_TESTS := tests/core tests/auditing tests/estimators tests/tables tests/test_files.py tests/test_records.py
test-oldest: $(VENV)/.installed-dev ## the core tests with the lowest versions that pyproject.toml promises; WORKERS=2
	$(INSTALL) --group oldest
	$(BIN)/uv venv --clear --python $(BIN)/python $(OLDEST)
	$(BIN)/uv pip install --python $(OLDEST)/bin/python --resolution lowest-direct -e ".[cli,fast,scale]" --group core-tests
	OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n $(or $(WORKERS),2) $(CORE_TESTS)

audit: $(VENV)/.installed-dev ## known weaknesses of the pinned dependencies, by pip-audit; asks PyPI's advisories
	$(INSTALL) --group audit
	@$(BIN)/pip-audit --strict --disable-pip --no-deps -r constraints.txt || { echo "make audit: a weakness is named above, or nothing was checked: 'not found on PyPI' and errors of the connection mean that PyPI's advisories could not be asked from here." >&2; exit 1; }

sbom: $(VENV)/.installed-dev ## a bill of materials of the environment in dist/sbom.json (CycloneDX)
	$(INSTALL) --group audit
	mkdir -p dist
	$(BIN)/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-reproducible --no-validate --of JSON -o dist/sbom.json

fuzz: $(VENV)/.installed-dev ## attack the commands with damaged files, strange options, kills and full disks: MINUTES=10, SEED=a number
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(if $(BUDGET),--budget $(BUDGET))

bench: $(VENV)/.installed-dev ## ratios against other libraries and against the memory limit
	$(BIN)/python -m benchmarks

mutants: $(VENV)/.installed-mutants ## does a test notice each small change of the source? PACKAGES="core scale" SAMPLE=400 SEED=1 BUDGET=60 for less than all
	nice -n 15 $(BIN)/python -m benchmarks.mutants $(PACKAGES) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(if $(BUDGET),--budget $(BUDGET))

picture: $(VENV)/.installed-demo ## the README's picture, drawn from the demo's record
	@$(BIN)/setminus demo --parts fairness --picture docs/adult.png

clean: ## remove the environment, caches and generated pages
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist site report runs fuzz

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-demo: pyproject.toml paper/pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e ".[cli,nn]" -e paper
	@touch $@

$(VENV)/.installed-dev: pyproject.toml paper/pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) "pip>=25.1"  # the first that knows dependency groups
	$(INSTALL) -e . -e paper --group dev
	@touch $@ $(VENV)/.installed-demo

$(VENV)/.installed-mutants: $(VENV)/.installed-dev
	$(INSTALL) --group mutants
	@touch $@
