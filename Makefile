# Everything from a fresh clone with Python 3.11 or later and a network: make demo, make test.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
NO_PYTHON = error: gangsched needs Python 3.11 or later and finds none: install one (https://www.python.org/downloads) or name it, as in make demo PYTHON=/path/to/python3.12

# Of make soak, outages, nightly and mutations: seconds of the soak, and the seed of a run that is to be repeated.
DURATION ?= 600
SEED ?=
# Of make mutations: how many.
NUMBER ?= 100
# Of make bench-compare: the commit, how many pairs, whether a browser follows the page of this checkout (PAGE=1), and
# parts of the titles of the scenarios. Of make workloads: what
# pytest takes to choose tests.
BASE ?=
PAIRS ?= 9
PAGE ?=
PARTS ?=
# Of make test: more memory for the servers, whose garbage collection would take a fifth of their processor time.
GO = GOGC=400
# Of make check and coverage: the quick tests.
QUICK = -n auto --dist worksteal --hypothesis-profile=check -m "not slow and not integration" \
	--ignore=tests/integration --ignore=tests/workloads
# Of make workloads and nightly: four control planes keep two cores busy, because the plays wait more than they compute.
PLAYS = -n 4 --dist loadscope --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo playground check coverage test workloads nightly soak outages mutations lint fmt bench bench-quick sizing bench-compare docs site control-plane clean python

help: ## what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name what; do \
		printf '  make %-14s %s\n' "$$name" "$$what"; done

python:
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 1; }

setup: python .venv/.ready ## prepare .venv, so that .venv/bin/gangsched runs

.venv/.ready: uv.lock pyproject.toml | python
	@"$(PYTHON)" -m testbed.environment

control-plane: python ## find or build the control plane's programs; the last line is their folder
	@"$(PYTHON)" -m testbed.binaries

demo: setup ## the race of two groups on a real API server
	@exec .venv/bin/python -m testbed.demo

playground: setup ## a cluster with gangsched to try things in, until Ctrl-C
	@exec .venv/bin/python -m testbed.playground

# Without bytecode each worker would compile and rewrite two hundred modules for ten seconds.
check: setup ## a quick look in less than a minute: no control plane, fewer random examples, in parallel
	@exec env PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest $(QUICK)

coverage: setup ## the tests of make check, with the coverage of the core, which has a floor
	@exec env PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest $(QUICK) --cov --cov-report=

# Five workers keep two cores busy, because integration tests wait for others. Each has a control plane.
test: setup control-plane ## all tests, the real control plane's included
	@"$(PYTHON)" -m testbed.controllers.build --quick
	@exec env PYTHONDONTWRITEBYTECODE= $(GO) .venv/bin/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder \
		-m "not workloads or played_in_make_test"

workloads: setup control-plane ## real controllers beside gangsched, as docs/workloads tells after it; PARTS="-k jobset" plays some
	@"$(PYTHON)" -m testbed.controllers.build
	@exec .venv/bin/python -m tests.workloads.written $(PLAYS) $(PARTS)

nightly: DURATION = 3600
nightly: SEED := $(or $(SEED),$(shell date +%s))
nightly: setup control-plane ## explore for hours: random examples, worlds and faults; SEED=n repeats a night
	@echo "the seed of this night is $(SEED); make nightly SEED=$(SEED) repeats it"
	@failed=; \
	.venv/bin/python -m pytest -n 2 --dist loadfile -m "hypothesis or explores" --timeout=14400 \
		--hypothesis-profile=nightly --hypothesis-seed=$(SEED) || failed="$$failed pytest"; \
	.venv/bin/python -m tests.faults.soak --duration $(DURATION) --seed $(SEED) || failed="$$failed soak"; \
	.venv/bin/python -m tests.faults.outages --seed $(SEED) || failed="$$failed outages"; \
	"$(PYTHON)" -m testbed.controllers.build && .venv/bin/python -m pytest $(PLAYS) -m workloads tests/workloads || failed="$$failed workloads"; \
	test -z "$$failed" || { echo "FAILED with SEED=$(SEED):$$failed"; exit 1; }

soak: setup control-plane ## random groups, nodes and all faults for DURATION=600 seconds; SEED=n repeats a run
	@exec .venv/bin/python -m tests.faults.soak --duration $(DURATION) $(if $(SEED),--seed $(SEED))

outages: setup control-plane ## kills of the API server while gangs are bound; SEED=n repeats a run
	@exec .venv/bin/python -m tests.faults.outages $(if $(SEED),--seed $(SEED))

mutations: setup ## how many of NUMBER=100 random defects of the core make check notices; SEED=n chooses others
	@exec .venv/bin/python -m tests.mutations --number $(NUMBER) $(if $(SEED),--seed $(SEED))

lint: setup ## style, types and import contracts
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports

fmt: setup ## format the code and mend what can be mended
	@.venv/bin/ruff check --fix-only --quiet
	@.venv/bin/ruff format

bench: setup ## every benchmark, one JSON line each; writes docs/performance.md, its plots, and the tables that follow from it
	@"$(PYTHON)" -m testbed.binaries >&2
	@exec .venv/bin/python -m bench --write

bench-quick: setup ## the most telling benchmarks in less than three minutes
	@"$(PYTHON)" -m testbed.binaries >&2
	@exec .venv/bin/python -m bench --quick

sizing: setup ## what the operator takes in clusters of several sizes, in some ten minutes; writes docs/sizing.md
	@"$(PYTHON)" -m testbed.binaries >&2
	@exec .venv/bin/python -m bench --write --runs 1 "in use"

bench-compare: setup ## whether this checkout is as fast as the commit BASE=ref; PARTS='"stream 500"' chooses scenarios
	@test -n "$(BASE)" || { echo "error: say with which commit to compare, as in make bench-compare BASE=main" >&2; exit 2; }
	@"$(PYTHON)" -m testbed.binaries >&2
	@exec .venv/bin/python -m bench.compare --pairs $(PAIRS) $(if $(PAGE),--page) $(BASE) $(PARTS)

docs: setup ## write the generated parts of docs/, crds/, charts/ and manifests/ anew, and the site
	@"$(PYTHON)" -m testbed.binaries >&2
	@.venv/bin/python -m tests.integration.pairs
	@.venv/bin/python -m testbed.chromium
	@.venv/bin/python -m tests.integration.why_pending
	@.venv/bin/python -m tests.integration.pictures
	@.venv/bin/python -m testbed.docs
	@exec .venv/bin/python -m testbed.site

site: setup ## build the documentation as a site in build/site; a link that leads nowhere fails
	@exec .venv/bin/python -m testbed.site

clean: ## remove what the other targets have made in this folder
	@rm -rf .venv .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	@find . -name __pycache__ -prune -exec rm -rf {} +
	@echo "the programs built for all checkouts stay in $${XDG_CACHE_HOME:-$$HOME/.cache}/gangsched"
