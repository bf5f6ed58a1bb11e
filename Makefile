# One word for each thing that a person or CI does here; `make` alone lists them.

VENV ?= .venv
PYTHON ?=
UV ?= $(shell command -v uv 2>/dev/null)
SCALE ?= 0.05
RUNS ?= 50
SEED ?= 1
PARALLEL ?= 1
BACKEND ?= folder
TIMES ?= 20
TIME ?= 600
TURN ?= commit
COMPOSE ?=
EXECUTOR ?= LocalExecutor

BIN := $(VENV)/bin
PAGES := include/stagehold/web
COMPILE := pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock"

# Each kind of test is its own process: Airflow and Spark keep state in the process that imports them.
FAST := not spark and not slow and not airflow and not e2e and not browser
SPARK := (spark or slow) and not airflow and not e2e and not browser
AIRFLOW := (airflow or browser) and not e2e
E2E := e2e

# One part: its ten slowest tests and its seconds, so that nobody has to guess where the time goes.
define run-tests
@began=$$(date +%s); $(BIN)/python -m pytest -p tests.turns --turn $(TURN) --durations=10 --durations-min=1 $(1); status=$$?; \
echo "$@: $$(($$(date +%s) - began)) s"; exit $$status
endef

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test test-all test-fast test-spark test-airflow test-e2e test-lowest test-generated lint docs up down status clean bench chaos words fuzz hostile simulate doors crowd compose-test lock sbom FORCE
unexport PYTHONDONTWRITEBYTECODE

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.packages ## make .venv and fetch Spark's JARs; every other target does this first (PYTHON=... chooses a Python)
	@$(BIN)/python -m stagehold.local.setup

demo: setup ## make a real run fail half-way, resume it, compare with DuckDB; leaves Airflow up (SCALE=0.05)
	@$(BIN)/stagehold demo --scale $(SCALE)

test: test-fast test-spark test-airflow test-e2e ## all fast tests, and this commit's share of the long ones (TURN=n for another's)

test-all: TURN := all
test-all: test-fast test-spark test-airflow test-e2e ## all tests, and write down what each takes

test-fast: setup ## tests that need neither Spark nor Airflow: all quick ones, and a share of the long ones
	$(call run-tests,--within 15 -n 2 --dist worksteal -m "$(FAST)")

test-spark: setup
	$(call run-tests,--within 200 -n 2 --dist loadfile --no-loadscope-reorder -m "$(SPARK)")

test-airflow: setup
	$(call run-tests,--within 80 -n 2 --dist loadfile -m "$(AIRFLOW)")

test-e2e: setup # each process has a stack of its own, and the tests that take one down are the last
	$(call run-tests,--within 80 -n 2 --dist loadfile --no-loadscope-reorder -m "$(E2E)")

test-lowest: setup ## the wheel in an Airflow of its own, with the lowest versions that it allows
	@STAGEHOLD_TEST_RESOLUTION=lowest-direct $(BIN)/python -m pytest -n 0 tests/packaging

test-generated: ## the Spark tests with Java and Spark's generated code as users have them; half as long again
	@STAGEHOLD_TEST_JAVA= $(MAKE) --no-print-directory test-spark

lint: setup ## ruff, its formatter, mypy, and form, faults and types of the pages' JavaScript
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@if [ -x $(BIN)/biome ]; then $(BIN)/biome format && $(BIN)/biome lint --error-on-warnings; \
	else echo "PyPI has no biome for this machine: the form of $(PAGES) was not checked"; fi
	@tools/check-page-types $(VENV)
	@if grep -rnE --exclude-dir=vendor '^.{121}' $(PAGES); then echo "Longer than 120 columns"; exit 1; fi

docs: setup ## write docs/reference/ and the pages' types from the code, and make the site of all documents in build/site
	@PYTHONPATH=include:. $(BIN)/python tools/reference.py docs/reference
	@PYTHONPATH=include:. $(BIN)/python tools/page_types.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs --quiet build --strict

up: setup ## start Spark and Airflow on this machine
	@$(BIN)/stagehold up

down: setup ## stop them
	@$(BIN)/stagehold down

status: setup ## what runs, and where
	@$(BIN)/stagehold status

clean: ## stop everything and remove the state folder (.stagehold, or STAGEHOLD_HOME)
	@if [ -d "$${STAGEHOLD_HOME:-.stagehold}" ] && [ -x $(BIN)/stagehold ]; then $(BIN)/stagehold down; fi
	@rm -rf "$${STAGEHOLD_HOME:-.stagehold}"

bench: setup ## run the benchmarks in bench/, but for soak.py, which takes two hours
	@for script in $(sort $(filter-out bench/soak.py,$(wildcard bench/*.py))); do PYTHONPATH=include:. $(BIN)/python "$$script" || exit 1; done

chaos: setup ## kill, freeze and rob RUNS random runs of small pipelines and check each (RUNS=50 SEED=1 PARALLEL=1 BACKEND=folder|bucket|cluster)
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.chaos.chaos --runs $(RUNS) --seed $(SEED) --parallel $(PARALLEL) --backend $(BACKEND)

words: setup ## waive, take back, correct, judge, kill and resume in RUNS random sequences and check each (RUNS=50 SEED=1)
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.chaos.words --runs $(RUNS) --seed $(SEED)

fuzz: setup ## make up RUNS stage functions, and TIMES as many sequences as the tests do, and check each (RUNS=50 SEED=1 TIMES=20)
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.metamorphic --cases $(RUNS) --seed $(SEED)
	@STAGEHOLD_FUZZ_TIMES=$(TIMES) $(BIN)/python -m pytest -n 2 --timeout 0 -m "slow or spark" $$(grep -rl "^from tests.made_up " tests)

hostile: setup ## read hostile specs, suites, manifests, parameters and settings: each has to be read or refused in words (RUNS=, SEED=)
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.hostile --cases $(RUNS) --seed $(SEED)

simulate: setup ## play histories of the protocol for TIME seconds, and all interleavings of a small world for as long (TIME=600)
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.simulator --seconds $(TIME)
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.simulator --small --seconds $(TIME)

doors: setup ## put each wish through each door of a live Airflow, and compare what is computed (CELLS="--doors tab")
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.doors $(CELLS)

crowd: setup ## run 8 pipelines 40 times at once by two schedulers and pgbouncer, kill one, compare with DuckDB (EXECUTOR=LocalExecutor|CeleryExecutor)
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.crowd --executor $(EXECUTOR)

compose-test: setup ## bring up docker-compose.yaml, kill a container of each kind during runs, compare with DuckDB (COMPOSE=podman-compose)
	@PYTHONPATH=include:. $(BIN)/python -m fuzz.compose --compose "$(COMPOSE)" --seed $(SEED)

lock: ## pin the newest packages that requirements*.in allow (needs uv)
	@test -n "$(UV)" || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@$(UV) $(COMPILE) --upgrade requirements.in --output-file requirements.txt
	@$(UV) $(COMPILE) --upgrade requirements-dev.in --output-file requirements-dev.txt

sbom: setup ## list what a release is made of, with versions, hashes and licences, in build/sbom.json (CycloneDX)
	@PYTHONPATH=include:. $(BIN)/python tools/sbom.py build/sbom.json

# A stamp is not enough when the Python that it was made with has gone from the machine.
$(VENV)/.packages: requirements.txt requirements-dev.txt pyproject.toml tools/make-environment $(if $(wildcard $(BIN)/python),,FORCE)
	@tools/make-environment "$(VENV)" "$(UV)" "$(PYTHON)"
	@touch $@
