# Two commands do everything: `make serve` and `make test`.
VENV    := .venv
PYTHON  ?= python3
BIN     := $(VENV)/bin
PORT    ?= 8000
# onnxruntime and onnxruntime-gpu exclude each other: the machine decides which one is installed.
BACKEND := $(if $(shell command -v nvidia-smi 2>/dev/null),gpu,cpu)
SOURCES := pyproject.toml CMakeLists.txt $(wildcard csrc/*.cc csrc/*.h csrc/*/*.cc csrc/*/*.h csrc/*/*.inc)
PIP     := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: help serve demo test slow check audit fmt bench gpu clean
help:
	@echo "make serve   serve the shipped model on port $(PORT)"
	@echo "make demo    watch one game of the served snake against built-in players"
	@echo "make test    run the tests           make slow   run the slow ones"
	@echo "make check   linters, types, layers  make fmt    format sources, renew the stub"
	@echo "make gpu     tests and benchmarks on an NVIDIA GPU"
	@echo "make audit   known holes in packages make bench  measure this machine"
	@echo "make clean   remove what was built"

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'

$(VENV)/.serve: $(SOURCES) | $(BIN)/pip
	$(PIP) install --editable '.[$(BACKEND)]'
	@touch $@

$(VENV)/.test: $(VENV)/.serve
	$(PIP) install --editable '.[$(BACKEND),export,bench,record]' --group test
	@touch $@

$(VENV)/.check: $(VENV)/.test
	$(PIP) install --group lint
	@touch $@

serve: $(VENV)/.serve
	@exec $(BIN)/snakekit serve --port $(PORT)

demo: $(VENV)/.serve
	@$(BIN)/snakekit serve --host 127.0.0.1 --port 8765 --metrics-port 0 & server=$$!; \
	trap "kill $$server" EXIT; \
	$(BIN)/snakekit play hybrid=http://127.0.0.1:8765 search:50 greedy greedy --games 1 --wait-s 20 --view

test: $(VENV)/.test
	$(BIN)/pytest

SLOW ?= slow
slow: $(VENV)/.test
	@$(PIP) install --group fuzz || echo "atheris cannot be had here: the long fuzzing is skipped"
	@$(PIP) install 'tensorrt-rtx>=1.7' 'cuda-bindings>=12.9' || echo "tensorrt-rtx cannot be had here: its builds are skipped"
	@$(PIP) install --editable '.[distributed]' || echo "Ray cannot be had here: its tests are skipped"
	$(BIN)/pytest -m "$(SLOW) and not gpu"

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python .ci/stub.py --check
	$(BIN)/clang-format --dry-run --Werror $(wildcard csrc/*.cc csrc/*.h csrc/*/*.cc csrc/*/*.h)
	$(BIN)/cmake -S . -B build/check > build/check.log 2>&1 || { cat build/check.log; exit 1; }
	$(BIN)/python .ci/tidy.py build/check

audit: $(VENV)/.check
	$(BIN)/python .ci/audit.py

fmt: $(VENV)/.check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(wildcard csrc/*.cc csrc/*.h csrc/*/*.cc csrc/*/*.h)
	$(BIN)/python .ci/stub.py

bench: $(VENV)/.test
	$(BIN)/snakekit bench all --json build/bench.json --html build/bench.html

gpu:
	.ci/gpu.sh build/gpu

clean:
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache
