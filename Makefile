# Every command of the project. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PY := .venv/bin/python

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 22

.PHONY: setup
setup: ## Install everything that is missing (needs Python >= 3.11)
	@local/setup.sh

.PHONY: up
up: setup ## Start the local cloud, deploy to it, stay in the foreground
	@$(PY) -m local up $(if $(PORT),--port $(PORT)) $(if $(DATA),--data $(DATA))

.PHONY: demo
demo: setup ## The main job on real data: load FLIGHTS=100000 flights, read them back, compare
	@$(PY) -m local.demo

.PHONY: down
down: ## Stop a running local cloud
	@[ ! -x $(PY) ] || $(PY) -m local down

.PHONY: clean
clean: down ## Remove everything that setup and the commands made
	rm -rf .venv .local .build node_modules cdk.out cdk.out.* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.PHONY: test
test: setup ## Run all tests (a few minutes on two cores)
	$(PY) -m pytest -n 2 --dist loadgroup

.PHONY: test-quick
test-quick: setup ## Run the tests that need no engine, cloud or synthesis (at most a minute)
	$(PY) -m pytest --quick -n 2 --dist loadgroup

.PHONY: soak
soak: setup ## Run the model of concurrent processes for 10 million steps, and see each deviation caught (about 15 minutes)
	$(PY) -m tests.model.soak --steps $(or $(STEPS),10000000)
	$(PY) -m tests.model.soak --mutations

.PHONY: soak-real
soak-real: setup ## Check the same rule on a local cloud that fails, with processes that reshard under load for SECONDS=60
	$(PY) -m tests.soak --seconds $(or $(SECONDS),60)

.PHONY: bench
bench: setup ## Measure writes and reads side by side with their peers
	$(PY) -m benchmarks.write
	$(PY) -m benchmarks.read

.PHONY: bench-export
bench-export: setup ## Measure the three kinds of export against ordered pages and plain boto3
	$(PY) -m benchmarks.export

.PHONY: bench-query
bench-query: setup ## Measure pages of a sharded series beside other ways to read it, and the memory of aggregates
	$(PY) -m benchmarks.query
	$(PY) -m benchmarks.aggregate

.PHONY: bench-heat
bench-heat: setup ## Measure in virtual time how fast layouts follow heat (about 15 minutes)
	$(PY) -m benchmarks.heat $(if $(SEEDS),--seeds $(SEEDS))

.PHONY: bench-heat-modes
bench-heat-modes: setup ## Compare the heat model's two modes, single requests and rates, an hour each (about 10 minutes)
	$(PY) -m benchmarks.heat_modes $(if $(SEEDS),--seeds $(SEEDS))

.PHONY: bench-heat-endpoint
bench-heat-endpoint: setup ## Measure what throttling adds to a call, against the engine alone
	$(PY) -m benchmarks.endpoint

.PHONY: validate-heat
validate-heat: setup ## Print every published measurement of DynamoDB beside the model's, and fail where one is out (about 3 minutes)
	$(PY) -m dynamoheat.studies.validation

.PHONY: heat-sensitivity
heat-sensitivity: setup ## Print how the same outcomes react to each assumption that nobody outside AWS knows (about 15 minutes)
	$(PY) -m dynamoheat.studies.validation --sensitivity

.PHONY: heat-generations
heat-generations: setup ## One skewed workload on each generation of DynamoDB's design: what each step cured
	$(PY) -m dynamoheat.studies.generations

.PHONY: heat-figures
heat-figures: setup ## Draw the figures of docs/dynamoheat.md
	$(PY) -m dynamoheat.studies.figures docs/figures

.PHONY: bench-cold
bench-cold: setup ## Measure cold starts of the functions, beside a bare boto3 handler, and the size of the asset
	$(PY) -m benchmarks.cold

.PHONY: lint
lint: setup ## Formatting, types, import contracts
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	.venv/bin/lint-imports

.PHONY: deploy
deploy: setup ## Deploy STAGE=dev or prod to AWS; says first what it will do
	@$(PY) -m deploy deploy $(STAGE)

.PHONY: diff
diff: setup ## Show what deploying STAGE=… would change
	@$(PY) -m deploy diff $(STAGE)

.PHONY: destroy
destroy: setup ## Delete STAGE=… with its data, once you have typed its name; refuses prod
	@$(PY) -m deploy destroy $(STAGE)

.PHONY: bootstrap
bootstrap: setup ## Prepare the account and region for the CDK, once
	@$(PY) -m deploy bootstrap $(or $(STAGE),dev)

.PHONY: pins
pins: ## Compile the pinned requirements from pyproject.toml
	.venv/bin/uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml -o requirements.txt
	.venv/bin/uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 -c requirements.txt pyproject.toml --group dax -o requirements-dax.txt
	.venv/bin/uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml --extra cdk --group dax --group stacks --group local --group dev -o requirements-dev.txt
	.venv/bin/uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 --group ministack -o requirements-ministack.txt
