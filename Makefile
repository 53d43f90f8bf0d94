# Every target makes its own set-up; `make help` lists them.
VENV ?= .venv
BIN := $(VENV)/bin
export VENV

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench bench-compare soak interop record-oracle docs clean

help:
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: ## an embedded broker, generated orders, a pipeline on Spark, and the proof that nothing was lost or doubled
	@scripts/setup java
	@$(BIN)/python -m examples.demo

test: ## run the whole test-suite
	@scripts/setup kcat java cc
	@scripts/run-tests

check: ## ruff, mypy --strict, import contracts, generated files up to date
	@scripts/setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/generate_docs.py --check

format: ## rewrite the sources in the project's format
	@scripts/setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: ## measure this machine and Riverlog on it
	@scripts/setup java
	@$(BIN)/python -m benchmarks

COMPARE ?=
bench-compare: ## Riverlog beside Apache Kafka in one run (needs Maven Central; COMPARE="--quick")
	@scripts/setup java mvn cc
	@$(BIN)/python -m benchmarks.compare $(COMPARE)

SOAK ?= --repeats 5 --seed 1
soak: ## repeat the delivery tests with other seeds, write docs/guarantees.md (SOAK="--repeats 5 --seed 1")
	@scripts/setup java
	@$(BIN)/python -m scripts.soak $(SOAK)

interop: ## Java client and Kafka's own tools against us (needs Maven Central)
	@scripts/setup java javac mvn
	@scripts/interop

record-oracle: ## ask Apache Kafka the differential questions anew (needs Maven Central)
	@scripts/setup java mvn
	@$(BIN)/python -m tests.differential.record

docs: ## rewrite the generated tables in the docs
	@scripts/setup
	@$(BIN)/python scripts/generate_docs.py

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
