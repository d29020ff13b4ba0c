.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --no-input --disable-pip-version-check
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)
export PYTHONDONTWRITEBYTECODE :=  # share bytecode between workers

CODE := src plugins benchmarks tests scripts conftest.py
PLUGINS := plugins/nacre-code plugins/nacre-extras plugins/nacre-gateway plugins/nacre-server
SUITE := not live and not hosts and not web

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: quickstart
quickstart: $(VENV)/.installed  ## install into .venv, read this machine's transcripts, answer a few questions
	@$(BIN)/python -m compileall -q src/nacre
	@$(BIN)/nacre quickstart

.PHONY: test
test: lint  ## linters, types, import contracts, and all tests not listed in tests/slow.toml
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "$(SUITE) and not slow"  # cores are idle while tests wait for processes

GENERATED := manifest json_docs web_types plugin_tools agents

.PHONY: generated
generated: $(VENV)/.installed-dev  ## write the files that scripts generate from the code
	for name in $(GENERATED); do $(BIN)/python scripts/write_$$name.py || exit 1; done

.PHONY: test-slow
test-slow: $(VENV)/.installed-dev  ## the tests listed in tests/slow.toml
	$(BIN)/python -m pytest -n 3 -m "$(SUITE) and slow"

.PHONY: test-hosts
test-hosts: $(VENV)/.installed-dev  ## test real hosts, installed with npm into .hosts or HOSTS_DIR=…; newest versions: HOSTS=newest
	$(BIN)/python scripts/install_hosts.py
	$(BIN)/python -m pytest -m hosts tests/hosts -k "not writer_failure"
	$(BIN)/python -m pytest -n 2 -m hosts tests/hosts/test_writers.py -k writer_failure  # these wait and have no time limits

.PHONY: test-live
test-live: $(VENV)/.installed-dev  ## test real models of every provider with a key in the environment
	$(BIN)/python -m pytest -m live

.PHONY: cassettes
cassettes: named-model $(VENV)/.installed-dev  ## record a model's answers to the prompts of the tests: MODEL=provider:model
	$(BIN)/python scripts/record_cassettes.py $(MODEL)

.PHONY: named-model
named-model:
	@test -n "$(MODEL)" || { echo "name a model: make cassettes MODEL=provider:model" >&2; exit 2; }

.PHONY: benchmark
benchmark: $(VENV)/.installed-dev  ## run a benchmark: NAME="retrieval --suite coding"; without NAME list all benchmarks
	$(BIN)/python -m benchmarks $(NAME)

FUZZ_SECONDS ?= 600

.PHONY: fuzz
fuzz: $(VENV)/.installed-dev  ## fuzz the parsers for 10 minutes, or FUZZ_SECONDS=…
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(PIP) install -c constraints.txt -e '.[fuzz]' || true
	$(BIN)/python scripts/fuzz.py --seconds $(FUZZ_SECONDS) --jobs 2

KILLS ?= 300

.PHONY: trust
trust: $(VENV)/.installed-dev  ## interrupt nacre at every point and at 300 random times, or KILLS=…
	$(BIN)/python scripts/trust.py --kills $(KILLS)

DAMAGES ?= 500

.PHONY: damage
damage: $(VENV)/.installed-dev  ## damage each part of homes 500 times, or DAMAGES=…, and follow the remedies
	$(BIN)/python scripts/damage.py --runs $(DAMAGES)

.PHONY: docs
docs: $(VENV)/.installed-dev  ## build the documentation site into build/site; a broken link fails
	$(BIN)/python scripts/build_docs.py

.PHONY: lint
lint: $(VENV)/.installed-dev lint-web  ## linters, types, import contracts, sizes
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check --quiet $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_house.py

.PHONY: format
format: $(VENV)/.installed-dev  ## format the code
	$(BIN)/ruff format $(CODE)

.PHONY: format-check
format-check: $(VENV)/.installed-dev  ## check the format of the code
	$(BIN)/ruff format --check $(CODE)

.PHONY: web
web: web/node_modules/.installed  ## build the dashboard into src/nacre/serve/static; needs Node.js
	cd web && npm run build

.PHONY: lint-web
lint-web:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory checked-web; \
	  else echo "npm is not installed: the dashboard's source is not checked" >&2; fi

.PHONY: checked-web
checked-web: web/node_modules/.installed
	cd web && npm run --silent check && npm test --silent

.PHONY: test-web
test-web: $(VENV)/.installed-dev web  ## test the dashboard in Chromium
	$(BIN)/python scripts/install_chromium.py
	$(BIN)/python -m pytest -n 2 -m web tests/web

.PHONY: programs
programs: $(VENV)/.installed-dev  ## install the programs for test-web and test-hosts
	$(BIN)/python scripts/install_chromium.py
	$(BIN)/python scripts/install_hosts.py

.PHONY: model
model: build/model/bin/python  ## rebuild the bundled embedding model
	$< -m pip install --quiet --no-input $$(sed -n 's/^ *python -m pip install //p' scripts/build_minilm.py)
	$< scripts/build_minilm.py

.PHONY: dist
dist: $(VENV)/.installed-dev web  ## build the distributions, install them and test them
	$(BIN)/python scripts/check_distribution.py dist

.PHONY: clean
clean:  ## remove built and installed files
	rm -rf $(VENV) .hosts build dist web/node_modules src/nacre/serve/static .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml $(PLUGINS:%=%/pyproject.toml) constraints.txt | $(BIN)/python
	@echo "Installing nacre into $(VENV): half a minute the first time"
	@$(PIP) install --compile -c constraints.txt -e '.[full]' $(PLUGINS:%=-e %)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(PLUGINS:%=%/pyproject.toml) constraints.txt | $(BIN)/python
	@echo "Installing nacre and its development tools into $(VENV)"
	@$(PIP) install --compile -c constraints.txt -e '.[dev,docs]' $(PLUGINS:%=-e %)
	@touch $(VENV)/.installed $@

web/node_modules/.installed: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@

# Test each interpreter: it may be too old, a shim without a Python, or lack venv.
%/bin/python:
	@for python in $(PYTHONS); do \
	  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    exec $$python -m venv --clear $*; \
	  fi; \
	done; \
	echo "nacre needs Python 3.11 or newer, with venv: none of '$(strip $(PYTHONS))' is." >&2; \
	echo "Install one (Debian, Ubuntu: apt install python3-venv), or set it: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; \
	exit 1
