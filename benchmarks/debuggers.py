"""Two real debuggers step through what torch.compile made.  (``make debuggers``)

    python benchmarks/debuggers.py [names] [--debuggers pdb debugpy] [--backends eager aot_eager inductor]

pdb in a pseudo-terminal, and debugpy (what VS Code uses) over its protocol, run ``stepped_program.py``. In each
program a breakpoint is set by file and line in each kind of file: transformed code, the captured graph (eager), the
forward and the backward graph (aot_eager), the generated modules (inductor). Asked is:

* ``condition``: with a condition on a live tensor and on the run it does not stop in run 0, and does in run 1;
* ``locals``: the variables of that line are shown;
* ``value``: an expression on a live tensor is computed;
* ``into``: stepping into the call of the graph leads from transformed code to the graph, and ``out`` out of it;
* ``over``: stepping over leads to the next line (in run 2 in transformed code, in run 3 in graphs);
* the values are, bit for bit, those of the same calls before.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import pathlib
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "link"))

import torch
from _shared import dated, table
from dap import Debugpy, Ended
from stepped import PROGRAMS
from terminal import Pdb

DEBUGGERS: dict[str, Any] = {"pdb": Pdb, "debugpy": Debugpy}
KINDS = {"eager": ("transformed", "captured"), "aot_eager": ("transformed", "forward", "backward"),
         "inductor": ("transformed", "forward", "backward")}
FILES = {"eager": {"captured": "Captured_Graph.0"},
         "aot_eager": {"forward": "Forward_graph.0", "backward": "Backward_graph.0"},
         "inductor": {"forward": "kernel_0", "backward": "kernel_1"}}
CHECKS = ("condition", "locals", "value", "into", "out", "over")
#: Arguments that hold the tensors, before they have names.
CARRIERS = ("self", "args", "args_list", "args_iter")
#: Steps into, on the way from a call in transformed code to the graph: torch's own functions lie between.
MOST_STEPS = 400


class Stop(NamedTuple):
    """Where to stop in one file.

    Attributes:
        line: where the breakpoint is set.
        following: the further lines of the statement and those of the next one; none for the last one of the block.
        variables: names that the line reads.
    """

    program: str
    kind: str
    path: str
    line: int
    following: range
    variables: tuple[str, ...]


def stop_in(program: str, kind: str, path: str) -> Stop | None:
    """The first statement of a function that computes something with variables."""
    tree = ast.parse(pathlib.Path(path).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
                 and (node.name in ("forward", "call") or node.name.startswith("__transformed_code_"))]
    for function in functions:
        known = {arg.arg for arg in function.args.args}
        for index, stmt in enumerate(function.body):
            names = [n.id for n in ast.walk(stmt) if isinstance(n, ast.Name)]
            read = dict.fromkeys(n.id for n in ast.walk(stmt) if isinstance(n, ast.Name)
                                 and isinstance(n.ctx, ast.Load) and n.id in known and n.id not in CARRIERS)
            calls_graph = any(name.startswith("__compiled_fn_") for name in names)
            computes = any(isinstance(n, (ast.Call, ast.BinOp)) for n in ast.walk(stmt))
            if read and (calls_graph if kind == "transformed" else computes):
                following = next((range(stmt.lineno + 1, (later.end_lineno or later.lineno) + 1)
                                  for later in function.body[index:] if later.lineno > stmt.lineno), range(0))
                return Stop(program, kind, path, stmt.lineno, following, tuple(read))
            known |= {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return None


def stops_of(program: str, backend: str, folder: pathlib.Path) -> list[Stop]:
    """One place in each kind of file; the files belong to one graph, where there is one that is run backward."""
    best: list[Stop] = []
    files = sorted(folder.glob("__transformed_code_*.py"), key=lambda path: ("_resume_in_" in path.name, path.name))
    for path in files:  # (which resume functions run is a matter of the values)
        first = stop_in(program, "transformed", str(path))
        if first is None:
            continue
        line = path.read_text(encoding="utf-8").splitlines()[first.line - 1]
        graph = re.search(r"__compiled_fn_\d+", line)
        assert graph is not None
        stops = [first]
        for kind, ending in FILES[backend].items():
            file = folder / f"{graph[0]}.{ending}.py"
            if file.exists() and (stop := stop_in(program, kind, str(file))):
                stops.append(stop)
        if len(stops) > len(best):
            best = stops
    return best


class Session:
    """One debugger, one backend, several programs; ``results[program, kind]`` names the checks that passed."""

    def __init__(self, debugger: str, backend: str, names: list[str], folder: str) -> None:
        self.results: dict[tuple[str, str], dict[str, bool]] = {}
        self.backend, self.names, self.folder = backend, names, pathlib.Path(folder)
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(ROOT / "benchmarks")]))
        command = [str(ROOT / "benchmarks" / "stepped_program.py"), backend, folder, *names]
        self.debugger = DEBUGGERS[debugger](command, environment, timeout=1800)

    def run(self) -> str:
        """All checks; returns what the program printed."""
        try:
            self.debugger.pause()
            self.stops = {stop.path: stop for name in self.names
                          for stop in stops_of(name, self.backend, self.folder / name)}
            for stop in self.stops.values():
                self.results[stop.program, stop.kind] = {"set": self.break_in(stop, 1)}
            place = self.debugger.go()
            while True:
                place = self.check(place) or self.debugger.go()
        except Ended:
            pass
        output: str = self.debugger.output()
        self.debugger.close()
        return output

    def break_in(self, stop: Stop, run: int) -> bool:
        """A breakpoint with a condition on a live variable and on the run."""
        condition = f"type({stop.variables[0]}) is not type and __import__('os').environ['STEPPED_RUN'] == '{run}'"
        return bool(self.debugger.break_at(stop.path, stop.line, condition))

    def check(self, place: tuple[str, int]) -> tuple[str, int] | None:
        """What is asked at a stop; the place of the next one if stepping came to it."""
        stop = self.stops.get(place[0])
        if stop is None or place[1] != stop.line:
            return None
        results, debugger = self.results[stop.program, stop.kind], self.debugger
        run = re.sub(r"\W", "", debugger.value("__import__('os').environ['STEPPED_RUN']"))
        if "condition" not in results:
            results["condition"] = run == "1"
            results["locals"] = set(stop.variables) <= debugger.names()
            results["value"] = any(self.is_zero(debugger.value(f"float(({name} * 0).sum())"))
                                   for name in stop.variables[:4])
            self.break_in(stop, 2 if stop.kind == "transformed" else 3)
            if stop.kind == "transformed":
                return self.into_and_out(stop, results)
        elif "over" not in results:
            debugger.break_at(stop.path, None)
            after = debugger.over()
            # Behind the last statement pdb shows the line once more, as it returns.
            at_end = after[0] != stop.path or after[1] == stop.line
            # (A statement over several lines runs on those of its parts.)
            results["over"] = after[0] == stop.path and after[1] in stop.following if stop.following else at_end
            return after if after[0] != stop.path else None
        return None

    def into_and_out(self, stop: Stop, results: dict[str, bool]) -> tuple[str, int] | None:
        graphs = {other.path for other in self.stops.values()
                  if other.program == stop.program and other.kind in ("captured", "forward")}
        for _ in range(MOST_STEPS):
            place = self.debugger.into()
            if place[0] in graphs:
                break
        results["into"] = place[0] in graphs
        if not results["into"]:
            return place
        # The graph's own breakpoint is looked at before it is left.
        other = self.stops[place[0]]
        if place[1] != other.line:
            place = self.debugger.go()
        if place == (other.path, other.line):
            self.check(place)
            after = self.debugger.out()
            results["out"] = after[0] != other.path
            return after
        return place

    @staticmethod
    def is_zero(text: str) -> bool:
        with contextlib.suppress(ValueError):
            return float(text) == 0
        return False


def rows_of(debugger: str, backend: str, session: Session, output: str) -> Iterator[tuple[Any, ...]]:
    for name in session.names:
        values = re.findall(rf"values {name} (\w+)", output)
        same = len(values) == 4 and set(values) == {"same"}
        kinds = [kind for kind in KINDS[backend] if (name, kind) in session.results]
        passed = failed = 0
        wrong = [] if "transformed" in kinds and len(kinds) > 1 else ["no file"]
        for kind in kinds:
            results = session.results[name, kind]
            wanted = [c for c in ("set", *CHECKS) if kind == "transformed" or c not in ("into", "out")]
            for check in wanted:
                if results.get(check):
                    passed += 1
                else:
                    failed += 1
                    wrong.append(f"{kind}: {check}")
        if not same:
            wrong.append("values")
        yield debugger, backend, name, ", ".join(kinds), f"{passed} of {passed + failed}", "; ".join(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--debuggers", nargs="+", default=list(DEBUGGERS), choices=list(DEBUGGERS))
    parser.add_argument("--backends", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--write", metavar="FILE", help="put the table into this file")
    chosen = parser.parse_args()
    rows: list[tuple[Any, ...]] = []
    for backend in chosen.backends:
        for debugger in chosen.debuggers:
            begun = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="dbg") as folder:
                session = Session(debugger, backend, chosen.names, folder)
                try:
                    output = session.run()
                except Exception as error:  # the rows say what is missing
                    output = f"{type(error).__name__}: {error}"
                    print(debugger, backend, output, flush=True)
                    session.debugger.close()
            for row in rows_of(debugger, backend, session, output):
                rows.append(row)
                print(*row, flush=True)
            print(f"{debugger}, {backend}: {time.monotonic() - begun:.0f} s", flush=True)
    text = (f"{dated()}, Python {platform.python_version()}, torch {torch.__version__}\n\n" + table(
        ("debugger", "backend", "program", "files stopped in", "checks passed", "failed"), rows))
    print("\n" + text)
    if chosen.write:
        pathlib.Path(chosen.write).write_text(text, encoding="utf-8")
    raise SystemExit(any(row[-1] for row in rows))


if __name__ == "__main__":
    main()
