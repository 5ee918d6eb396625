# Two commands do all set-up on a fresh machine: `make demo` and `make test`.
# The environment goes to .venv; PYTHON is the interpreter it is made from.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
TORCH := 2.13.0
# Other interpreters for the part of the suite that needs no torch; those that are absent are left out.
OTHERS ?= 3.10 3.12 3.13

# The site's environment is its own: nothing that the package needs is in it.
DOCS_VENV := .venv-docs

.PHONY: conditions hostile correctness docs notebook demo test lint unit others zoo inside artefacts identical lines debuggers linked fits repro models legible fix provenance bench bench-cold bench-ranks instructions large page page-assets roundtrip roundtrip-old \
	behaviour natural bench-decompile fuzz-source fuzz fuzz-covered fuzz-minute fuzz-pyc-minute fuzz-inputs-minute heavy clean matrix long-run

# torch comes first and alone, so that nothing else chooses its version.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q torch==$(TORCH)
	$(PY) -m pip install -q -e '.[dev]'
	touch $@

demo: $(VENV)/.ready
	$(PY) examples/demo.py

test: $(VENV)/.ready
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory -j2 --output-sync=target others fuzz-pyc-minute fuzz-inputs-minute
	$(MAKE) --no-print-directory unit

lint: $(VENV)/.ready
	$(VENV)/bin/ruff check src tests scripts examples benchmarks
	$(VENV)/bin/mypy

others: $(VENV)/.ready
	$(PY) scripts/test_other_pythons.py $(OTHERS)

# A process for each core, up to four: each may take 1 GB.
# (Files are begun in the order of tests/conftest.py.)
UNIT := $(PY) -m pytest tests -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
unit: $(VENV)/.ready
	$(UNIT) -m "not heavy"

# What takes a minute each; a fault in each function that runs while a program is watched, and torch without each of
# the private names (`unit`: one of five).
heavy: $(VENV)/.ready
	$(UNIT) -m heavy
	DEPYF_TEST_ONE_OF=1 $(PY) -m pytest tests/test_faults.py -k "test_each_function_of_ours_that_raises or test_torch_without_a_name"

fuzz-minute: fuzz-pyc-minute fuzz-inputs-minute

fuzz-pyc-minute: $(VENV)/.ready
	$(PY) scripts/fuzz_pyc.py --runs 10000 --seed 1

fuzz-inputs-minute: $(VENV)/.ready
	$(PY) scripts/fuzz_inputs.py --runs 2000 --seed 1 --seconds 600

# The documentation as a site in site/; a broken link fails.
docs: $(DOCS_VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "site/index.html"

$(DOCS_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install -q -e '.[docs]'
	touch $@

# The small programs of tests/zoo on all three backends.
zoo: $(VENV)/.ready
	DEPYF_TEST_BACKENDS="eager aot_eager inductor" $(PY) -m pytest tests/zoo

# Tests of side effects and closures (or those of a FOLDER), plain and inside prepare_debug.
FOLDER ?= benchmarks/watched
inside: $(VENV)/.ready
	$(PY) benchmarks/inside.py $(FOLDER)

# The same dump in a second process, and where torch's caches are warm.
artefacts: $(VENV)/.ready
	$(PY) benchmarks/same_artefacts.py

# Four programs under options, limits, broken disks, tools, threads and ways to end, plain and watched.
conditions: $(VENV)/.ready
	cd benchmarks && $(abspath $(PY)) -m conditions --write ../docs/measured/conditions.md

# Two identical runs have no difference: `depyf diff` says nothing, their files are the same.
identical: $(VENV)/.ready
	$(PY) benchmarks/identical_runs.py

# The suite on six versions of torch, an environment each (5 GB); MATRIX="--ready FOLDER" takes those that are there.
matrix: $(VENV)/.ready
	$(PY) scripts/matrix.py $(MATRIX) --write docs/measured/compatibility.md

# 10,000 compilations in one process, and prepare_debug entered and left as often.
long-run: $(VENV)/.ready
	$(PY) benchmarks/long_run.py --write docs/measured/unharmed.md

# A breakpoint on every line of the dumps of small programs and ten models is hit when the line runs.
lines: $(VENV)/.ready
	$(PY) benchmarks/lines_hit.py

# pdb and debugpy step through ten programs on three backends (Inductor compiles C++: about ten minutes on two cores).
debuggers: $(VENV)/.ready
	$(PY) benchmarks/debuggers.py

# depyf.compare on wrong and right programs: what it finds and names, false alarms, what it leaves behind (half an hour).
correctness: $(VENV)/.ready
	$(PY) benchmarks/correctness.py --write docs/measured/correctness.md

# What being linked costs a call.
linked: $(VENV)/.ready
	$(PY) benchmarks/linked_calls.py

# The guard oracle (depyf.fits) against what torch then does, on changed calls of the zoo and of models.
fits: $(VENV)/.ready
	$(PY) benchmarks/fits.py --write docs/measured/fits.md
	$(PY) benchmarks/fits_calls.py

# Each compilation of the zoo and of ten models as a program that runs alone (depyf repro).
repro: $(VENV)/.ready
	$(PY) benchmarks/repro.py $(REPRO) --write docs/measured/repro.md

# Hugging Face models from tiny configs, with and without the tool.
models: $(VENV)/.ready
	$(PY) benchmarks/models.py --write docs/measured/models.md

# How the dumps of those models read: compiler's names, long lines, lengths, differences of two runs.
legible: $(VENV)/.ready
	$(PY) benchmarks/legible.py --write docs/measured/legible.md

# `depyf fix` over a corpus: what is gone, and that results stay.
fix: $(VENV)/.ready
	$(PY) benchmarks/fix_programs.py --write docs/measured/fix.md

# How much leads where: kernels to graph nodes, graph nodes to user lines.
provenance: $(VENV)/.ready
	$(PY) benchmarks/provenance.py --write docs/measured/kernel_mapping.md
	$(PY) benchmarks/inferred_modules.py --write docs/measured/inferred_modules.md

# What watching costs a fresh process, beside TORCH_TRACE and TORCH_COMPILE_DEBUG.
bench-cold: $(VENV)/.ready
	$(PY) -m pip install -q tlparse==0.4.3
	$(PY) benchmarks/cold.py --write docs/measured/cold.md
	for caches in empty full; do $(PY) benchmarks/cold.py --backend inductor --models electra opt phi3 --rounds 3 \
		--caches $$caches --append --write docs/measured/cold.md; done

# Hostile .pyc files of a megabyte: time, memory, and what is answered.
hostile: $(VENV)/.ready
	$(PY) benchmarks/hostile_pyc.py --write docs/measured/hostile.md

# depyf report and depyf explain of a thousand ranks.
bench-ranks: $(VENV)/.ready
	$(PY) benchmarks/many_ranks.py --write docs/measured/many_ranks.md

# What watching costs: compile time, time per call, memory.
bench: $(VENV)/.ready
	$(PY) benchmarks/overhead.py --write docs/measured/overhead.md

# The same in instructions, which valgrind counts (Debian's package valgrind).
instructions: $(VENV)/.ready
	$(PY) benchmarks/instructions.py

# The same on a llama of 48 layers, forward and backward.
large: $(VENV)/.ready
	$(PY) benchmarks/large_model.py --write docs/measured/large_model.md

# The page's script and style, from the packages that the lock names.
page-assets:
	cd frontend && npm ci --no-fund --no-audit && npm run build

# The page in a real Chromium (CHROMIUM names it), with axe; its speed on 48 layers.
LARGE := .large
page: $(VENV)/.ready page-assets
	$(PY) -m pip install -q playwright==1.65.2
	test -e $(LARGE)/index.md || $(PY) benchmarks/large_model.py --one $(LARGE)
	DEPYF_PAGE_LARGE=$(LARGE) $(PY) -m pytest tests/page
	PYTHONPATH=src $(PY) benchmarks/page_speed.py $(LARGE) --write docs/measured/page_speed.md

# The example in a real Jupyter Lab, in the same Chromium; its pictures go to docs/images.
notebook: $(VENV)/.ready
	$(PY) -m pip install -q playwright==1.65.2 jupyterlab==4.6.6
	DEPYF_PICTURES=docs/images $(PY) -m pytest tests/notebook

# Decompile whole libraries, compile the text again, compare; on every interpreter that is there.
roundtrip: $(VENV)/.ready
	$(PY) benchmarks/fidelity_report.py --packages torch transformers sympy numpy networkx --write docs/measured/fidelity.md

# The standard libraries of 3.7 to 3.9, read on this interpreter.
roundtrip-old: $(VENV)/.ready
	for v in 3.7 3.8 3.9; do $(PY) benchmarks/foreign.py $$v; done

# How far the decompiled text is what its author wrote: whole standard libraries, some packages, resume functions.
natural: $(VENV)/.ready
	$(PY) benchmarks/natural.py --versions 3.7 3.8 3.9 3.10 3.11 3.12 3.13 3.14 --modes whole lines none \
		--packages networkx sympy transformers torch pip --write docs/measured/natural.md
	$(PY) benchmarks/resumes.py --write docs/measured/natural.md

# CPython's own tests on a standard library that was decompiled.
behaviour: $(VENV)/.ready
	$(PY) benchmarks/behaviour.py --write docs/measured/fidelity.md

# Speed of the decompiler, next to the last release of the old one.
bench-decompile: $(VENV)/.ready
	$(PY) -m pip install -q --no-deps --target .peer depyf==0.20.0 astor dill
	$(PY) benchmarks/decompile_speed.py --peer .peer --write docs/measured/speed.md

# Random programs (pysource-codegen), 10,000 on each interpreter that is there: valid source always, never wrong,
# fallbacks by reason.
fuzz-source: $(VENV)/.ready
	$(PY) benchmarks/random_programs.py --count 10000 --jobs 2 --versions 3.10 3.11 3.12 3.13

# Broken .pyc files and code objects; then an hour of broken records, logs and command lines (FUZZ="--seconds 600" for
# less of each; "--files FOLDER" breaks the .pyc files of a folder, of any version).
FUZZ ?= --runs 1000000
fuzz: $(VENV)/.ready
	$(PY) scripts/fuzz_pyc.py $(FUZZ)
	$(PY) scripts/fuzz_inputs.py --seconds 3600

# An hour of broken .pyc files, guided by what of the decompiler they reach (COVERED="-max_total_time=60" for less).
# .fuzz/corpus keeps what reached something new; .fuzz/crash-... is a finding. COVERED_FILES: folders to begin with.
COVERED ?= -max_total_time=3600
COVERED_FILES ?= $(wildcard $(HOME)/.pyenv/versions/3.*/lib/python3.*)
fuzz-covered: $(VENV)/.ready
	$(PY) -m pip install -q -e '.[fuzz]'
	$(PY) scripts/fuzz_covered.py .fuzz/corpus --files $(COVERED_FILES) -- $(COVERED)

clean:
	rm -rf $(VENV) $(DOCS_VENV) site .matrix .pytest_cache .mypy_cache .ruff_cache
