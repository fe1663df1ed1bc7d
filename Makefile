# Kalends: `make` prints this help.
PYTHON ?= python3
BIN := .venv/bin
# One virtual environment, installed in two steps: the runtime dependencies, then the development tools.
RUNTIME := .venv/.runtime
STAMP := .venv/.installed
KALENDS := $(BIN)/python -m service
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
LOCK := $(BIN)/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --strip-extras --allow-unsafe $(if $(KEEP),,--upgrade)
BENCH := .venv-bench/bin
BENCH_STAMP := .venv-bench/.installed
FASTIFY_STAMP := .venv-bench/.fastify-installed
FASTIFY := benchmarks/peers/fastify
# The Python that runs Kalends in a benchmark; the peers have their own virtual environment.
BENCH_KALENDS ?= $(BIN)/python
EVENTS ?= 20000
ROUNDS ?= 3
READERS ?= open
# Tests of dates and times, which must pass in any time zone of the machine.
TIMED := tests/test_dates.py tests/test_zones.py tests/test_events.py tests/test_oracles.py

.DEFAULT_GOAL := help
.PHONY: help install run test soak crash check format catalogues lock audit bench bench-compare bench-lock browser clients clients-lock clean

help: ## print this help
	@echo "Kalends, a calendar-events service"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

install: $(STAMP) ## create .venv/ with all dependencies for development

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11 or newer, or set its path: make run PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Kalends needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) -V); choose another: make run PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot create virtual environments; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(PYTHON) -m venv .venv

$(RUNTIME): requirements-run.txt pyproject.toml config/version.py | $(BIN)/python
	@echo "Installing the service and MongoDB into .venv/ (once; about half a minute)"
	@$(PIP) install --require-hashes -r requirements-run.txt
	@PYTHONWARNINGS=ignore $(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMP): requirements-dev.txt $(RUNTIME)
	@echo "Installing the development tools into .venv/ (once; about a minute)"
	@$(PIP) install --require-hashes -r requirements-dev.txt
	@touch $@

run: $(RUNTIME) ## start MongoDB and the service on 127.0.0.1:8080 (DEMO=1 adds example events)
	@$(KALENDS) serve $(if $(DEMO),--demo)

test: install ## run the tests against a real mongod, then a minute of the history checker (ARGS; SLOW=1 runs slow ones, too)
	$(BIN)/python -m pytest -n 3 --dist worksteal $(if $(ARGS)$(SLOW),,-m "not slow") $(ARGS)
	$(if $(ARGS),,$(BIN)/python -m pytest tests/history -n 0)

soak: install ## run the history checker with faults for a long time (MINUTES=30, SEED)
	HISTORY_SECONDS=$$(($(or $(MINUTES),30) * 60)) HISTORY_SEED=$(or $(SEED),0) $(BIN)/python -m pytest tests/history -n 0 -s $(ARGS)

crash: install ## die before and after every database call of each operation (about an hour)
	CRASH_POINTS=all $(BIN)/python -m pytest tests/crashing -n 2 $(ARGS)

check: install ## check formatting, lint rules and types, and run all tests, slow ones too
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) --no-print-directory test SLOW=1
	TZ=Pacific/Auckland $(MAKE) --no-print-directory test ARGS="$(TIMED)"

format: install ## format the code and fix lint errors
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

catalogues: install ## update the translation catalogues in schemas/locale
	$(BIN)/python -m schemas.catalogues

lock: install ## update the locked dependencies (KEEP=1 keeps versions where possible)
	$(LOCK) --output-file requirements.txt pyproject.toml
	$(LOCK) --constraint requirements.txt --extra embedded --build-deps-for editable --output-file requirements-run.txt pyproject.toml
	$(LOCK) --constraint requirements-run.txt --extra embedded --extra dev --build-deps-for editable --output-file requirements-dev.txt pyproject.toml

audit: install ## check the locked dependencies for known vulnerabilities
	$(BIN)/pip-audit --strict --require-hashes --disable-pip -r requirements-dev.txt

bench: $(if $(filter $(BIN)/python,$(BENCH_KALENDS)),install) $(BENCH_STAMP) $(FASTIFY_STAMP) ## compare Kalends with its limits and peers (EVENTS, SECONDS, ROUNDS, ONLY, SKIP, READERS)
	@$(BENCH)/python -m benchmarks --python $(BENCH_KALENDS) --events $(EVENTS) --seconds $(or $(SECONDS),3) --rounds $(ROUNDS) --only "$(ONLY)" --skip "$(SKIP)" --readers $(READERS)

bench-compare: $(BENCH_STAMP) ## compare the results for 20,000 and 1,000,000 events
	@$(BENCH)/python -m benchmarks --compare benchmarks/results/20000.json benchmarks/results/1000000.json

bench-lock: install ## update the locked dependencies of the benchmarks
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --strip-extras --output-file benchmarks/requirements.txt benchmarks/requirements.in
	cd $(FASTIFY) && npm install --package-lock-only --omit-lockfile-registry-resolved=true --no-audit --no-fund

$(BENCH_STAMP): benchmarks/requirements.txt
	@echo "Setting up .venv-bench/ (once; about a minute)"
	@$(PYTHON) -m venv .venv-bench
	@$(BENCH)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r benchmarks/requirements.txt
	@touch $(BENCH_STAMP)

# Without node and npm the benchmark runs without this peer.
$(FASTIFY_STAMP): $(FASTIFY)/package-lock.json | $(BENCH_STAMP)
	@mkdir -p .venv-bench/fastify
	@cp $(FASTIFY)/package.json $(FASTIFY)/package-lock.json .venv-bench/fastify/
	@if command -v npm >/dev/null; then npm ci --prefix .venv-bench/fastify --silent --no-audit --no-fund --ignore-scripts && touch $@; fi

clean: ## remove .venv/, .venv-bench/ and caches; data is kept
	rm -rf .venv .venv-bench .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info

# Tests that need more than Python: `make test` does not run them.
BROWSER_STAMP := .venv/.browser-installed
CLIENTS_STAMP := .venv/.clients-installed

browser: install $(BROWSER_STAMP) ## test the pages in headless Chromium (/usr/bin/chromium; needs npm)
	$(BIN)/python -m pytest tests/browser $(ARGS)

clients: install $(CLIENTS_STAMP) ## use generated clients, and read feeds with calendar programs (needs node and npm)
	$(BIN)/python -m pytest tests/clients $(ARGS)

$(BROWSER_STAMP): tests/browser/requirements.txt tests/browser/package-lock.json | install
	@$(PIP) install --require-hashes -r tests/browser/requirements.txt
	@mkdir -p .venv/axe
	@cp tests/browser/package.json tests/browser/package-lock.json .venv/axe/
	@npm ci --prefix .venv/axe --silent --no-audit --no-fund --ignore-scripts
	@touch $@

$(CLIENTS_STAMP): tests/clients/requirements.txt tests/clients/package-lock.json | install
	@$(PIP) install --require-hashes -r tests/clients/requirements.txt
	@mkdir -p .venv/npm
	@cp tests/clients/package.json tests/clients/package-lock.json .venv/npm/
	@npm ci --prefix .venv/npm --silent --no-audit --no-fund --ignore-scripts
	@touch $@

clients-lock: install ## update the locked dependencies of `make browser` and `make clients`
	$(LOCK) --constraint requirements-dev.txt --output-file tests/browser/requirements.txt tests/browser/requirements.in
	$(LOCK) --constraint requirements-dev.txt --output-file tests/clients/requirements.txt tests/clients/requirements.in
	cd tests/browser && npm install --package-lock-only --omit-lockfile-registry-resolved=true --no-audit --no-fund
	cd tests/clients && npm install --package-lock-only --omit-lockfile-registry-resolved=true --no-audit --no-fund
