# Every target makes its own set-up; `make help` lists them.
VENV ?= .venv
BIN := $(VENV)/bin
export VENV

.DEFAULT_GOAL := help
.PHONY: help demo test test-long check format bench bench-compare soak simulate interop record-oracle messages docs clean

help:
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: ## an embedded broker, generated orders, a pipeline on Spark, and the proof that nothing was lost or doubled
	@scripts/setup java
	@$(BIN)/python -m examples.demo

test: ## run the tests of every layer, real clients and a Spark included (about 6 minutes on two cores)
	@scripts/setup kcat java cc
	@scripts/run-tests

test-long: ## run the other tests, listed in tests/long.py, and some with the lowest versions of dependencies (about 11 minutes)
	@scripts/setup kcat java cc
	@scripts/run-tests long
	@scripts/test-lowest

check: ## ruff, mypy --strict, import contracts; tables and docs are what their generators write; planted bugs apply
	@scripts/setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/generate_messages.py --check
	@$(BIN)/python scripts/generate_docs.py --check
	@$(BIN)/python -m scripts.check_planted

format: ## rewrite the sources in the project's format
	@scripts/setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: ## measure this machine and Riverlog on it, beside Spark's connector where Maven Central can be reached
	@scripts/setup java mvn
	@$(BIN)/python -m benchmarks

COMPARE ?=
bench-compare: ## Riverlog beside Apache Kafka in one run (needs Maven Central; COMPARE="--quick")
	@scripts/setup java mvn cc
	@$(BIN)/python -m benchmarks.compare $(COMPARE)

SOAK ?= --repeats 5 --seed 1 --kills 20 --spark-batches 10000 --spark-hours 2
soak: ## repeat the delivery tests with other seeds, kill all of a cluster, then a long run of Spark; writes docs/guarantees.md (SOAK="--repeats 5")
	@scripts/setup java
	@$(BIN)/python -m scripts.soak $(SOAK)

SIMULATE ?= --seeds 0-199 -j 2
simulate: ## whole brokers in the simulator, over many seeds; writes its section of docs/guarantees.md (SIMULATE="--seeds 0-9999 -j 2")
	@scripts/setup
	@$(BIN)/python -m scripts.simulate $(SIMULATE)

interop: ## Java client and Kafka's own tools against us (needs Maven Central)
	@scripts/setup java javac mvn
	@scripts/interop

record-oracle: ## ask Apache Kafka the differential questions anew (needs Maven Central)
	@scripts/setup java mvn
	@$(BIN)/python -m tests.differential.record

messages: ## rewrite the message tables (scripts/generate_messages.py lists them)
	@scripts/setup
	@$(BIN)/python scripts/generate_messages.py

docs: ## rewrite the generated tables in the docs
	@scripts/setup
	@$(BIN)/python scripts/generate_docs.py

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
