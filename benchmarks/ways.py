"""Counts the graphs of torch's own trace that a dump lacks, program by program, and false labels of inputs.

    python benchmarks/ways.py PROGRAM.py ... [--write docs/measured/ways.md]

Each program runs once, with ``TORCH_TRACE`` and under depyf: ``depyf run``, or its own ``prepare_debug`` where it
takes a directory, both with ``internal_stages``. tlparse (``pip install tlparse==0.4.3``) makes its report of the
trace; each file of that is a fact, which the records of the run have or lack as `tlparse_logs.py` decides it. A graph
of the trace is in the dump if a stage of the same kind has the same operations with the same targets, in order; each
stage counts for one graph. (Torch writes the graph after Inductor's passes twice:
equal ones of one kind and one compilation count once.) A label of an input of a piece is false if the graph that was
split has an input of that name with another label.
"""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator

import torch
from _shared import dated, table
from tlparse_logs import Records, facts, labels_of

from depyf.capture.trace_log import events
from depyf.model.graph_text import read_graph
from depyf.records import store
from depyf.records.model import Capture
from depyf.torch_text.trace_table import Has, row_of

LIMIT = 300  # seconds
MARK = "<!-- measured -->"
#: Runs a program that calls ``depyf.prepare_debug`` itself, with ``internal_stages``.
OWN = """
import functools, runpy, sys, depyf
depyf.prepare_debug = functools.partial(depyf.prepare_debug, internal_stages=True)
sys.argv[:1] = []
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
#: Kind of a stage and its operations.
Key = tuple[str, tuple[tuple[str, str], ...]]


def operations(text: str) -> tuple[tuple[str, str], ...]:
    """Return the operations of a graph, in order."""
    return tuple((node.op, node.target) for node in read_graph(text).nodes if node.op not in ("placeholder", "output"))


@functools.cache
def caches() -> str:
    """Return a new folder for torch's caches."""
    return tempfile.mkdtemp()


def run(program: str, directory: pathlib.Path) -> int:
    """Run a program with both on; return its exit status."""
    own = "prepare_debug(sys.argv[1]" in pathlib.Path(program).read_text(encoding="utf-8")
    dump = str(directory / "dump")
    command = [sys.executable, "-c", OWN, program, dump] if own else [
        sys.executable, "-m", "depyf", "run", "--internal-stages", "-o", dump, program, str(directory / "unused")]
    environment = {**os.environ, "TORCH_TRACE": str(directory / "trace"), "TORCHINDUCTOR_CACHE_DIR": caches()}
    return subprocess.run(command, env=environment, capture_output=True, timeout=LIMIT).returncode


def traced(directory: pathlib.Path) -> Counter[Key]:
    """Return the graphs of torch's trace."""
    found: Counter[Key] = Counter()
    for log in directory.glob("*.log"):
        with open(log, encoding="utf-8", errors="surrogateescape") as file:
            seen = set()
            for metadata, payload in events(file):
                what, stage = row_of(metadata)
                if what == Has.GRAPH and payload:
                    key = stage, operations(payload)
                    ids = stage, metadata.get("frame_id"), metadata.get("frame_compile_id"), payload
                    if stage != "AFTER_POST_GRAD" or ids not in seen:
                        found[key] += 1
                    seen.add(ids)
    return found


def captures(directory: pathlib.Path) -> Iterator[Capture]:
    """Yield the runs of a dump: one for each process."""
    for records in directory.rglob(store.FILE):
        yield store.read(str(records.parent))


def false_labels(capture: Capture) -> int:
    """Return how many inputs of pieces have the label of another input of the graph that was split."""
    of = {graph.name: {each.name.lower(): each.source for each in graph.inputs} for graph in capture.graphs}
    return sum(
        each.source != of[graph.piece_of].get(each.name.lower(), each.source)
        for graph in capture.graphs if graph.piece_of for each in graph.inputs)


def facts_of(directory: pathlib.Path) -> list[tuple[str, str]]:
    """Return the facts in tlparse's reports of a trace, by name of the file."""
    found = []
    for log in directory.glob("*.log"):
        export = ["--export"] if b'{"exported_program"' in log.read_bytes() else []
        subprocess.run(["tlparse", *export, str(log), "-o", str(directory / log.stem), "--overwrite", "--no-browser"],
                       check=True, capture_output=True)
        found += list(facts(str(directory / log.stem)))
    return found


class Program:
    """What a program's trace and its records have."""

    def __init__(self, program: str) -> None:
        self.name = pathlib.Path(program).stem
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            self.status = run(program, directory)
            self.wanted, self.runs = traced(directory / "trace"), list(captures(directory / "dump"))
            self.facts = facts_of(directory / "trace")

    def row(self, labels: dict[str, set[str]]) -> tuple[object, ...]:
        """Return a row of the table; ``labels`` are words that are no facts, by name of the file."""
        graphs = [graph for each in self.runs for graph in each.graphs]
        stages = [stage for graph in graphs for stage in graph.stages]
        there: Counter[Key] = Counter((stage.stage, operations(stage.text)) for stage in stages)
        lacking = Counter(kind for (kind, _), number in (self.wanted - there).items() for _ in range(number))
        known = [Records(each) for each in self.runs]
        lost = Counter(name for name, text in self.facts
                       if not any(each.has(name, text, labels.get(name, set())) for each in known))
        return (self.name, self.status, sum(self.wanted.values()), listed(lacking),
                sum(bool(graph.piece_of) for graph in graphs), sum(map(false_labels, self.runs)),
                len(self.facts), listed(lost),
                ", ".join(sorted({event.name for each in self.runs for event in each.events})) or "none")


def listed(counts: Counter[str]) -> str:
    """Return names with their numbers."""
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "none"


def main() -> None:
    """Run the programs, print the table, and write it on request."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    programs = []
    for each in options.programs:
        programs.append(Program(each))
        print(each, programs[-1].status, flush=True)
    labels = labels_of([fact for each in programs for fact in each.facts])
    head = ("program", "exit", "graphs in the trace", "missing in the dump", "pieces", "false labels",
            "facts of tlparse", "missing in the records", "events not read")
    text = table(head, [each.row(labels) for each in programs])
    print(text)
    if options.write:
        head = options.write.read_text(encoding="utf-8").partition(MARK)[0] if options.write.exists() else ""
        where = f"{dated()}, torch {torch.__version__}, Python {platform.python_version()}"
        options.write.write_text(f"{head}{MARK}\n\n{where}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
