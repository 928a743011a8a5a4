# A fresh clone needs only Python 3.11 or later and a network: make demo, make test.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
NO_PYTHON = error: gangsched needs Python 3.11 or later and finds none: install one (https://www.python.org/downloads) or name it, as in make demo PYTHON=/path/to/python3.12

# For make soak and nightly, DURATION: seconds of the soak. For make soak, outages, nightly and mutations, SEED: the
# seed of a run to repeat.
DURATION ?= 600
SEED ?=
# For make mutations: the number of random defects.
NUMBER ?= 100
# For make bench-compare: the commit, the number of pairs, whether a browser follows this checkout's page (PAGE=1), and
# parts of the scenarios' titles. For make workloads, PARTS: pytest's options to select tests.
BASE ?=
PAIRS ?= 9
PAGE ?=
PARTS ?=
# For make test and samples: more memory for the servers, whose garbage collection otherwise takes a fifth of their
# processor time, and one processor for each, with which an API server's start takes about a fifth less of it.
GO = GOGC=400 GOMAXPROCS=1
# For make check and coverage: the quick tests, and each story as it is written. Each worker spends five seconds on
# collecting all tests, so that there is only one more of them than processors, for the time in which others wait.
QUICK = -n $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 ))) --dist worksteal \
	--hypothesis-profile=check --ignore=tests/integration --ignore=tests/workloads \
	-m "not slow and not integration and not extras and not another_course"
# For make workloads and nightly: four control planes keep two cores busy; the plays wait more than they compute.
PLAYS = -n 4 --dist loadscope --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo playground check coverage test test-extras samples workloads versions nightly soak outages mutations lint audit fmt bench bench-quick sizing bench-compare docs site control-plane clean python

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name what; do \
		printf '  make %-14s %s\n' "$$name" "$$what"; done

python:
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 1; }

setup: python .venv/.ready ## prepare .venv, so that .venv/bin/gangsched runs

.venv/.ready: uv.lock pyproject.toml | python
	@"$(PYTHON)" -m testbed.environment

control-plane: python ## find or build the control plane's programs; the last line printed is their folder
	@"$(PYTHON)" -m testbed.binaries

demo: setup ## the race of two groups on a real API server
	@exec .venv/bin/python -m demo.show

playground: setup ## a cluster with gangsched to experiment in, until Ctrl-C
	@exec .venv/bin/python -m demo.playground

# Without cached bytecode, each worker spends ten seconds on compiling and rewriting two hundred modules.
check: setup ## the quick tests in less than a minute: no control plane, fewer random examples, in parallel
	@exec env PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest $(QUICK)

coverage: setup ## the tests of make check, with the coverage of the core, which must not fall below a minimum
	@exec env PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest $(QUICK) --cov --cov-report=

# Five workers keep two cores busy, because integration tests mostly wait for other processes. Each has a control plane.
test: setup control-plane ## all tests, also on a real control plane, except the soak, the outages, real workload controllers and older versions
	@exec env PYTHONDONTWRITEBYTECODE= $(GO) .venv/bin/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder \
		-m "not workloads and not sample and not versions and not extras"

test-extras: python ## the tests of what .venv lacks: kubernetes-asyncio, which kopf imports where it finds it
	@exec "$(PYTHON)" -m testbed.extras

samples: setup control-plane ## a minute each of make soak, make outages, make workloads and the fuzzing of readers
	@"$(PYTHON)" -m testbed.controllers.build --quick
	@exec env PYTHONDONTWRITEBYTECODE= $(GO) .venv/bin/python -m pytest -n 3 --dist loadfile -m sample

workloads: setup control-plane ## play real controllers beside gangsched and update docs/workloads; PARTS="-k jobset" selects some
	@"$(PYTHON)" -m testbed.controllers.build
	@exec .venv/bin/python -m tests.workloads.written $(PLAYS) $(PARTS)

versions: setup control-plane ## play the main stories on each tested version of Kubernetes; writes the table of versions
	@"$(PYTHON)" -m testbed.versions
	@.venv/bin/python -m tests.versions.played --write
	@exec .venv/bin/python -m documentation.generate

nightly: DURATION = 3600
nightly: SEED := $(or $(SEED),$(shell date +%s))
nightly: setup control-plane ## explore for hours: random examples, worlds and faults; SEED=n repeats a night
	@echo "the seed of this night is $(SEED); make nightly SEED=$(SEED) repeats it"
	@failed=; \
	.venv/bin/python -m pytest -n 2 --dist loadfile -m "hypothesis or explores or another_course" --timeout=14400 \
		--hypothesis-profile=nightly --hypothesis-seed=$(SEED) || failed="$$failed pytest"; \
	.venv/bin/python -m tests.faults.soak --duration $(DURATION) --seed $(SEED) || failed="$$failed soak"; \
	.venv/bin/python -m tests.faults.outages --seed $(SEED) || failed="$$failed outages"; \
	.venv/bin/python -m tests.faults.rivals --seed $(SEED) || failed="$$failed rivals"; \
	.venv/bin/python -m tests.faults.starving --seed $(SEED) || failed="$$failed starving"; \
	"$(PYTHON)" -m testbed.controllers.build && .venv/bin/python -m pytest $(PLAYS) -m workloads tests/workloads || failed="$$failed workloads"; \
	"$(PYTHON)" -m testbed.versions && .venv/bin/python -m tests.versions.played || failed="$$failed versions"; \
	test -z "$$failed" || { echo "FAILED with SEED=$(SEED):$$failed"; exit 1; }

soak: setup control-plane ## random groups, nodes and all kinds of faults for DURATION=600 seconds; SEED=n repeats a run
	@exec .venv/bin/python -m tests.faults.soak --duration $(DURATION) $(if $(SEED),--seed $(SEED))

outages: setup control-plane ## kills of the API server while gangs are bound; SEED=n repeats a run
	@exec .venv/bin/python -m tests.faults.outages $(if $(SEED),--seed $(SEED))

mutations: setup ## count how many of NUMBER=100 random defects in the core make check detects; SEED=n chooses others
	@exec .venv/bin/python -m tests.mutations --number $(NUMBER) $(if $(SEED),--seed $(SEED))

lint: setup ## style, types, import contracts and workflows
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@.venv/bin/zizmor --offline --quiet --no-progress .github

audit: python ## whether something that uv.lock names has a known vulnerability; asks PyPI
	@exec hack/audit.sh "$(PYTHON)"

fmt: setup ## format the code and apply automatic fixes
	@.venv/bin/ruff check --fix-only --quiet
	@.venv/bin/ruff format

bench: setup ## every benchmark, one JSON line each; writes docs/performance.md, its plots, and the tables derived from it
	@"$(PYTHON)" -m testbed.binaries >&2
	@exec .venv/bin/python -m bench --write

bench-quick: setup ## the most important benchmarks in less than three minutes
	@"$(PYTHON)" -m testbed.binaries >&2
	@exec .venv/bin/python -m bench --quick

sizing: setup ## measure the operator's resource use in clusters of several sizes, in about ten minutes; writes docs/sizing.md
	@"$(PYTHON)" -m testbed.binaries >&2
	@exec .venv/bin/python -m bench --write --runs 1 "in use"

bench-compare: setup ## whether this checkout is as fast as the commit BASE=ref; PARTS='"stream 500"' chooses scenarios
	@test -n "$(BASE)" || { echo "error: say with which commit to compare, as in make bench-compare BASE=main" >&2; exit 2; }
	@"$(PYTHON)" -m testbed.binaries >&2
	@exec .venv/bin/python -m bench.compare --pairs $(PAIRS) $(if $(PAGE),--page) $(BASE) $(PARTS)

walk: setup ## count how much of the core runs for the last member of a gang of three
	@.venv/bin/python -m documentation.walk

docs: setup ## regenerate the generated parts of docs/, crds/, charts/ and manifests/, and build the site
	@"$(PYTHON)" -m testbed.binaries >&2
	@.venv/bin/python -m tests.integration.pairs
	@.venv/bin/python -m testbed.chromium
	@.venv/bin/python -m tests.integration.why_pending
	@.venv/bin/python -m tests.integration.pictures
	@.venv/bin/python -m documentation.generate
	@exec .venv/bin/python -m documentation.site

site: setup ## build the documentation as a site in build/site; a broken link fails the build
	@exec .venv/bin/python -m documentation.site

clean: ## remove everything that the other targets created in this folder
	@rm -rf .venv .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	@find . -name __pycache__ -prune -exec rm -rf {} +
	@echo "the programs built for all checkouts stay in $${XDG_CACHE_HOME:-$$HOME/.cache}/gangsched"
