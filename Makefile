# Everything from nothing but Python 3.11 and make; the environment is in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/run
READY := $(VENV)/ready
CHECK_PYTHON := $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "podstatus needs Python 3.11 or newer; run make PYTHON=python3.11 …")'
# Each worker of pytest and each agent that it starts would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run tour test churn flood soak day mutation test-real test-cri test-e2e real-parts e2e-parts lint docs docs-check bench-core bench-containers bench-replay bench-apiserver bench-client bench-sync bench-node bench-nodes bench-probes bench-observe bench-watch bench-alerts bench-cli format lock clean
.DEFAULT_GOAL := help

help: ## show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

# Two sets, each with a stamp: what running needs, and all of it with the tools of development.
$(RUN): requirements/run.txt pyproject.toml
	@$(CHECK_PYTHON)
	@$(PYTHON) tools/install.py $(VENV) $<
	@touch $@

$(READY): requirements/dev.txt pyproject.toml
	@$(CHECK_PYTHON)
	@$(PYTHON) tools/install.py $(VENV) $<
	@touch $(RUN) $@

PODSTATUS_ROOT_DIR ?= .podstatus
run: $(RUN) ## run a node with its own API server and two sample pods, until Ctrl-C: [PODSTATUS_ROOT_DIR=.podstatus]
	@$(BIN)/python tools/foreground.py $(BIN)/podstatus run --root-dir "$(PODSTATUS_ROOT_DIR)" --use-free-ports --from-make

tour: $(RUN) ## the life of a pod's status, step by step, in virtual time
	@$(BIN)/python examples/keep_a_status.py

test: $(READY) ## run all tests but those of test-real
	$(BIN)/python -m pytest -n 4 --dist worksteal

churn: $(READY) ## start and stop 50 pods 20 times on the process runtime: nothing may be left (minutes)
	$(BIN)/python -m pytest -n 0 -s -m long tests/agent/e2e/process/test_process_leftovers.py

flood: $(READY) ## flood each port with 5,000 connections; the agent must keep answering
	$(BIN)/python -m pytest -n 0 -s -m long tests/agent/e2e/security/test_connection_flood.py

SECONDS ?= 180
soak: $(READY) ## faults and churn on a real agent, all invariants checked: [SECONDS=180] [SEED=…] [KILLS=200]
	@$(BIN)/python -m tests.soak --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(KILLS),--kills $(KILLS)) $(if $(ISOLATION),--isolation $(ISOLATION))

day: $(READY) ## five minutes of deployments, crash loops, readiness changes, deletions and upgrades; nothing is lost
	$(BIN)/python -m pytest -n 0 -s -m long tests/agent/e2e/lifecycle/test_day_in_the_life.py $(DAY)

MUTANTS ?= 300
mutation: $(READY) ## change decisions in small ways; the tests must kill 95% of the mutants: [MUTANTS=300] [SEED=…]; an hour
	@nice -n 19 $(BIN)/python tools/mutation.py --sample $(MUTANTS) $(if $(SEED),--seed $(SEED))

test-real: $(READY) ## run slow tests, and the API server tests of make test against a real kube-apiserver
	$(BIN)/python -m pytest -n 6 --dist worksteal -m "slow or real_server" --servers=embedded,real $(REAL)

test-cri: $(READY) ## run the tests of the CRI runtime on containerd, as root; fetches Debian's once
	@$(BIN)/python tools/containerd_parts.py
	$(BIN)/python -m pytest -n 2 --dist worksteal -m containerd tests/runtime/cri

test-e2e: $(READY) ## run Kubernetes' own node tests on the agent, as root: [SAMPLE=1] [REQUIRED=1] [FOCUS=regex]
	@$(BIN)/python -m tests.node_e2e $(if $(SAMPLE),--sample) $(if $(REQUIRED),--required) $(if $(FOCUS),--focus '$(FOCUS)') $(if $(PROCESSES),--processes $(PROCESSES))

real-parts: $(READY) ## build kube-apiserver (needs Go) and etcd for test-real, once
	@$(BIN)/python tools/build_real_parts.py real

e2e-parts: $(READY) real-parts ## build the programs of Kubernetes' own node tests (needs Go), once
	@$(BIN)/python tools/build_real_parts.py e2e

lint: $(READY) docs-check ## style, types, import contracts, generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY) ## write the tables of the reference pages: settings, commands, metrics, events, alerts
	@$(BIN)/python tools/generate_docs.py

docs-check: $(READY) ## fail if a table of the reference pages differs from the code
	@$(BIN)/python tools/generate_docs.py --check

bench-core: $(READY) ## what the core costs, next to one decode of the same pod
	@$(BIN)/python bench/statuses.py

bench-containers: $(READY) ## what a container costs in pods of 10, 1,000 and 10,000 of them
	@$(BIN)/python bench/containers.py

bench-replay: $(READY) ## how long a recorded scenario takes
	@$(BIN)/python bench/replay.py

bench-apiserver: $(READY) ## what the embedded API server does in a second
	@$(BIN)/python bench/apiserver.py

bench-client: $(READY) ## what the client costs, next to bare aiohttp
	@$(BIN)/python bench/client.py

bench-sync: $(READY) ## how fast statuses reach a real API server, next to its limit and to Go
	@$(BIN)/python bench/sync.py

bench-node: $(READY) ## what a node of 110 pods costs, and how late its statuses and its lease are
	@$(BIN)/python bench/node.py

bench-nodes: $(READY) ## what the controllers of silent nodes cost the embedded API server: 1,000 nodes with leases
	@$(BIN)/python bench/nodes.py

bench-probes: $(READY) ## what probing 110 process pods once a second costs, and how late results arrive
	@$(BIN)/python bench/probes.py

bench-observe: $(READY) ## what it costs to see every transition: the caller, and the process
	@$(BIN)/python bench/observe.py

bench-alerts: $(READY) ## what alert rules cost: one change of one pod; 5,000 pods; an observer of a cluster
	@$(BIN)/python bench/alerts.py
	@$(BIN)/python bench/alerts_watch.py
	@$(BIN)/python bench/alerts_cluster.py

bench-watch: $(READY) ## 50 clients watch a whole agent of [WATCHED_PODS=500], 200 changes a second; minutes
	WATCHED_PODS=$(or $(WATCHED_PODS),500) $(BIN)/python -m pytest -n 0 -s -m long tests/agent/e2e/query/test_watch_whole_agent.py

bench-cli: $(READY) ## the CPU time of help, completion and get pods
	@$(BIN)/python bench/cli.py

format: $(READY) ## let ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

COMPILE := uv pip compile --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11
lock: ## update the locked requirements (needs uv)
	$(COMPILE) --extra agent requirements/build.in pyproject.toml -o requirements/run.txt
	$(COMPILE) --constraints requirements/run.txt --group dev --extra agent --extra grpc requirements/build.in pyproject.toml -o requirements/dev.txt
	$(COMPILE) requirements/real.in -o requirements/real.txt

clean: ## remove .venv and what tools left behind; the node's data in .podstatus stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
