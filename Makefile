# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all lint bench reproduce setup clean

demo: setup  ## what placement buys: 160 operators on embedded Spark, under two minutes
	@$(BIN)/levelwind demo --format text

test: setup lint .venv/compiled  ## everything that runs in minutes
	$(BIN)/pytest -q -n 2 --dist loadfile

test-all: setup lint .venv/compiled  ## and what takes longer
	LEVELWIND_EXPLORE=1 $(BIN)/pytest -q -n 2 --dist loadfile -m "slow or not slow"
	$(BIN)/levelwind reproduce --quick --out out/reproduced --format text
	$(BIN)/levelwind bench --format text

lint: setup  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## speed, as ratios
	$(BIN)/levelwind bench --format text

reproduce: setup  ## the papers' figures and tables
	$(BIN)/levelwind reproduce --out out/reproduced --format text

setup: .venv/ready .venv/kernels

# numba keeps compiled code by the file a function stands in, not by the files of those it calls.
.venv/kernels: .venv/ready $(wildcard $(addprefix src/levelwind/,space/*.py placement/*.py balance/*.py diffusion/*.py sim/*.py operators/*.py operators/*/*.py))
	@find src -name '*.nb[ic]' -delete
	@touch $@

# Once, before the tests: each of their processes would compile what it does not find.
.venv/compiled: .venv/kernels scripts/compile
	@printf '%s\n' simulator policies planners | xargs -P 2 -n 1 $(BIN)/python scripts/compile
	@touch $@

.venv/ready: pyproject.toml requirements.lock scripts/setup
	@PYTHON=$(PYTHON) scripts/setup

clean:
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache
