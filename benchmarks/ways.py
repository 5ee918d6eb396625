"""Counts the graphs of torch's own trace that a dump lacks, program by program, and false labels of inputs.

    python benchmarks/ways.py PROGRAM.py ... [--write docs/measured/ways.md]

Each program runs once, with ``TORCH_TRACE`` and under depyf: ``depyf run``, or its own ``prepare_debug`` where it
takes a directory. A graph of the trace is in the dump if a stage of the same kind has the same operations with
the same targets, in order; each stage counts for one graph. (Torch writes the graph after Inductor's passes twice:
equal ones of one kind and one compilation count once.) A label of an input of a piece is false if the graph that was
split has an input of that name with another label.
"""

from __future__ import annotations

import argparse
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

from depyf.capture.trace_log import events
from depyf.model.graph_text import read_graph
from depyf.records import naming, store
from depyf.records.model import Capture

LIMIT = 300  # seconds
MARK = "<!-- measured -->"
#: Kind of a stage and its operations.
Key = tuple[str, tuple[tuple[str, str], ...]]


def operations(text: str) -> tuple[tuple[str, str], ...]:
    """Return the operations of a graph, in order."""
    return tuple((node.op, node.target) for node in read_graph(text).nodes if node.op not in ("placeholder", "output"))


def run(program: str, directory: pathlib.Path) -> int:
    """Run a program with both on; return its exit status."""
    own = "prepare_debug(sys.argv[1]" in pathlib.Path(program).read_text(encoding="utf-8")
    dump = str(directory / "dump")
    command = [sys.executable, program, dump] if own else [
        sys.executable, "-m", "depyf", "run", "-o", dump, program, str(directory / "unused")]
    environment = {**os.environ, "TORCH_TRACE": str(directory / "trace"), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    return subprocess.run(command, env=environment, capture_output=True, timeout=LIMIT).returncode


def traced(directory: pathlib.Path) -> Counter[Key]:
    """Return the graphs of torch's trace."""
    found: Counter[Key] = Counter()
    for log in directory.glob("*.log"):
        with open(log, encoding="utf-8", errors="surrogateescape") as file:
            seen = set()
            for metadata, payload in events(file):
                stage = naming.stage_of(metadata)
                if stage and payload:
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


def measured(program: str) -> tuple[object, ...]:
    """Return a row: program, exit status, graphs in the trace, those that the dump lacks, pieces, false labels, ..."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        status = run(program, directory)
        wanted, runs = traced(directory / "trace"), list(captures(directory / "dump"))
    there: Counter[Key] = Counter(
        (stage.stage, operations(stage.text)) for each in runs for graph in each.graphs for stage in graph.stages)
    lacking = Counter(kind for (kind, _), number in (wanted - there).items() for _ in range(number))
    unread = Counter(event.name for each in runs for event in each.events)
    return (pathlib.Path(program).stem, status, sum(wanted.values()),
            ", ".join(f"{number} {kind}" for kind, number in lacking.items()) or "none",
            sum(bool(graph.piece_of) for each in runs for graph in each.graphs), sum(map(false_labels, runs)),
            ", ".join(sorted(unread)) or "none")


def main() -> None:
    """Run the programs, print the table, and write it on request."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for program in options.programs:
        rows.append(measured(program))
        print(*rows[-1], sep=" | ", flush=True)
    text = table(("program", "exit", "graphs in the trace", "missing in the dump", "pieces", "false labels",
                  "events not read"), rows)
    if options.write:
        head = options.write.read_text(encoding="utf-8").partition(MARK)[0]
        where = f"{dated()}, torch {torch.__version__}, Python {platform.python_version()}"
        options.write.write_text(f"{head}{MARK}\n\n{where}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
