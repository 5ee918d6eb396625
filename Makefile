# Two commands do all set-up on a fresh machine: `make demo` and `make test`.
# The environment goes to .venv; PYTHON is the interpreter it is made from.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
TORCH := 2.13.0
# Other interpreters for the part of the suite that needs no torch; those that are absent are left out.
OTHERS ?= 3.10 3.12 3.13

.PHONY: demo test lint unit others zoo models bench roundtrip clean

# torch comes first and alone, so that nothing else chooses its version.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q torch==$(TORCH)
	$(PY) -m pip install -q -e '.[dev]'
	touch $@

demo: $(VENV)/.ready
	$(PY) examples/demo.py

test: $(VENV)/.ready
	$(MAKE) --no-print-directory lint others unit

lint: $(VENV)/.ready
	$(VENV)/bin/ruff check src tests scripts examples benchmarks
	$(VENV)/bin/mypy

others: $(VENV)/.ready
	$(PY) scripts/test_other_pythons.py $(OTHERS)

unit: $(VENV)/.ready
	$(PY) -m pytest tests

# The small programs of tests/zoo on all three backends.
zoo: $(VENV)/.ready
	DEPYF_TEST_BACKENDS="eager aot_eager inductor" $(PY) -m pytest tests/zoo

# Hugging Face models from tiny configs, with and without the tool.
models: $(VENV)/.ready
	$(PY) benchmarks/models.py --write docs/models.md

# What watching costs: compile time, time per call, memory.
bench: $(VENV)/.ready
	$(PY) benchmarks/overhead.py --write docs/overhead.md

# Decompile the standard library, compile the text again, compare.
roundtrip: $(VENV)/.ready
	$(PY) benchmarks/roundtrip.py --corpus stdlib

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
