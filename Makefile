# Two commands do everything on a machine that has Python 3.11, make and a package index:
#   make demo    an incident climbed on the real Claude CLI with a scripted model: no key, no cost
#   make test    formatter, linter, strict types, import layers, all tests
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# Three workers, also on two cores: the tests spend much of their time waiting for real processes.
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help install demo test lint types layers pytest kills bench wheel clean

help:
	@sed -n '1,3s/^# *//p' Makefile

$(VENV)/.run: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found on PATH." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than Python 3.11: set PYTHON=." >&2; exit 1; }
	@echo "Setting up $(VENV) with the real Claude CLI (a download of about 160 MB the first time)…"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -c constraints.txt -e '.[cli,postgres]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(PIP) install -c constraints.txt $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"])')
	@touch $@

install: $(VENV)/.run

demo: $(VENV)/.run
	@$(BIN)/opsladder demo

test: lint types layers pytest

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

pytest: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(ARGS)

# The supervisor killed at every commit and at random instants, for about half an hour.
KILLS ?= 500
kills: $(VENV)/.dev
	$(BIN)/python -m tests.climb.kill_loop --count $(KILLS)

bench: $(VENV)/.dev
	$(BIN)/python -m bench

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .cache
