"""Is every line of the dump hit when it runs, and is every name on it there?  (``make lines``)

    python benchmarks/lines_hit.py [--backends eager aot_eager] [--monitoring] [--write FILE] [names ...]

Programs (``stepped.py``, the models of ``architectures.py`` in ``MODELS``, the demo) are compiled and run inside
``prepare_debug``, forward and backward; then they run again inside ``depyf.debug(pause=False)`` with a trace function
(with ``--monitoring``, from 3.12 on, a callback of ``sys.monitoring``) that notes each line of the dump at which a
debugger could have stopped.

A line counts as run if its statement stands in a block of which something was hit, up to a statement that leaves the
block. Two things are asked of each line that ran:

* it was hit;
* in transformed code, each variable that the statement reads is among the frame's locals when it is.

Lines of statements for which Python has no instructions (declarations, ``pass``, documentation) do not count.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import logging
import os
import pathlib
import platform
import symtable
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")

import torch
from _shared import dated, table
from stepped import PROGRAMS, step

import depyf

MODELS = ("bert", "gpt2", "llama", "mixtral", "t5", "mamba", "resnet", "vit", "whisper", "clip")
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"

#: Statements without instructions.
_SILENT = (ast.Global, ast.Nonlocal, ast.Pass, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)


class Watch:
    """Notes the lines at which a debugger could stop in a folder, and which variables they lack there."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.join(folder, "")
        self.hits: dict[str, set[int]] = defaultdict(set)
        self.lacking: dict[str, dict[int, set[str]]] = defaultdict(dict)
        self.reads: dict[str, dict[int, set[str]]] = {}
        self._stopped: tuple[FrameType | None, set[int]] = None, set()

    def reached(self, path: str, line: int, frame: FrameType) -> None:
        # A statement over several lines comes back to its first, to do what all of them are for. What counts is the
        # first stop: by the second its values may have been handed over.
        frame_before, lines = self._stopped
        if frame_before is not frame:
            lines = set()
            self._stopped = frame, lines
        if line in lines:
            return
        lines.add(line)
        self.hits[path].add(line)
        if path not in self.reads:
            self.reads[path] = variables_of_lines(path)
        if lacking := self.reads[path].get(line, set()) - set(frame.f_locals):
            self.lacking[path][line] = lacking

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        def trace(frame: FrameType, event: str, argument: object) -> Any:
            return local if frame.f_code.co_filename.startswith(self.folder) else None

        def local(frame: FrameType, event: str, argument: object) -> Any:
            if event == "line":
                self.reached(frame.f_code.co_filename, frame.f_lineno, frame)
            return local

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(before)

    @contextlib.contextmanager
    def monitoring(self) -> Iterator[None]:
        tool, monitor = sys.monitoring.DEBUGGER_ID, sys.monitoring  # type: ignore[attr-defined]

        def line(code: CodeType, number: int) -> Any:
            if not code.co_filename.startswith(self.folder):
                return monitor.DISABLE
            self.reached(code.co_filename, number, sys._getframe(1))
            return None

        monitor.use_tool_id(tool, "lines_hit")
        try:
            monitor.register_callback(tool, monitor.events.LINE, line)
            monitor.set_events(tool, monitor.events.LINE)
            yield
        finally:
            monitor.set_events(tool, 0)
            monitor.free_tool_id(tool)
            monitor.restart_events()


def variables_of_lines(path: str) -> dict[int, set[str]]:
    """Line -> local variables that its statement reads (empty where the file is no transformed code)."""
    if not os.path.basename(path).startswith("__transformed_code_"):
        return {}
    text = pathlib.Path(path).read_text(encoding="utf-8")
    variables: dict[int, set[str]] = {}
    functions = {table.get_name(): table for table in symtable.symtable(text, path, "exec").get_children()}
    for function in ast.parse(text).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        known = {s.get_name() for s in functions[function.name].get_symbols() if s.is_local() or s.is_free()}
        for stmt in ast.walk(function):
            if isinstance(stmt, ast.stmt) and stmt is not function:
                variables[stmt.lineno] = {name for part in header(stmt) for name in read(part)} & known
    return variables


def header(stmt: ast.stmt) -> list[ast.AST]:
    """What of a statement is evaluated on its own line."""
    if isinstance(stmt, (ast.If, ast.While)):
        return [stmt.test]
    if isinstance(stmt, ast.For):
        return [stmt.iter]
    if isinstance(stmt, (ast.With, ast.AsyncWith)):
        return [item.context_expr for item in stmt.items]
    return [] if hasattr(stmt, "body") else [stmt]


def read(node: ast.AST) -> Iterator[str]:
    """Names that are read there, outside of inner scopes."""
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from read(child)


def lines_that_ran(tree: ast.AST, hits: set[int]) -> list[int]:
    """First lines of the statements that must have run, given that those in ``hits`` did."""
    ran: list[int] = []

    def hit(node: ast.AST) -> bool:
        return any(getattr(inner, "lineno", 0) in hits for inner in ast.walk(node) if isinstance(inner, ast.stmt))

    def leaves(node: ast.AST) -> bool:
        return any(isinstance(inner, _LEAVING) and inner.lineno in hits for inner in ast.walk(node))

    def block(stmts: list[ast.stmt]) -> None:
        last = max((index for index, stmt in enumerate(stmts) if hit(stmt)), default=-1)
        if last < 0:
            return
        end = last + 1 if leaves(stmts[last]) else len(stmts)
        for stmt in stmts[:end]:
            documentation = isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
            declaration = isinstance(stmt, ast.AnnAssign) and stmt.value is None
            if not (isinstance(stmt, (*_SILENT, ast.Try)) or documentation or declaration):
                ran.append(stmt.lineno)
            if not isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                for field in ("body", "orelse", "finalbody"):
                    block(getattr(stmt, field, []))
                for handler in getattr(stmt, "handlers", []):
                    block(handler.body)

    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            block(function.body)
    return sorted(set(ran))


# --- what runs -------------------------------------------------------------------------------------
Calls = Callable[[], None]


def small_program(name: str, backend: str) -> Calls:
    compiled = torch.compile(PROGRAMS[name].function, backend=backend)

    def run() -> None:
        for seed in range(4):
            step(compiled, PROGRAMS[name], seed)
    return run


def model(name: str, backend: str) -> Calls:
    from architectures import ARCHITECTURES, LENGTHS
    from models import backward, tensors

    torch.manual_seed(0)
    module = ARCHITECTURES[name].make().eval()
    compiled = torch.compile(module, backend=backend)
    inputs = [ARCHITECTURES[name].inputs(length) for length in LENGTHS]

    def run() -> None:
        for given in inputs:
            backward(tensors(compiled(**given)))
    return run


def demo(backend: str) -> Calls:
    sys.path.insert(0, str(EXAMPLES))
    from demo import Generator

    torch.manual_seed(0)
    generator = torch.compile(Generator(), backend=backend)

    def run() -> None:
        torch.manual_seed(0)
        tokens = torch.randint(3, 100, (1, 8))
        with torch.no_grad():
            for _ in range(3):
                tokens = generator(tokens)
    return run


def program(name: str, backend: str) -> Calls:
    if name == "demo":
        return demo(backend)
    return small_program(name, backend) if name in PROGRAMS else model(name, backend)


def measure(name: str, backend: str, monitoring: bool) -> tuple[int, int, int, int, list[str]]:
    """``(files, lines that ran, lines hit, lines that lack a name, what is wrong)``."""
    torch._dynamo.reset()
    with tempfile.TemporaryDirectory() as folder:
        run = program(name, backend)
        with depyf.prepare_debug(os.path.join(folder, "dump")) as on:
            run()
        watch = Watch(on.path)
        with depyf.debug(pause=False), watch.monitoring() if monitoring else watch.tracing():
            run()
        wrong: list[str] = []
        lines = hit = unnamed = 0
        for path, hits in sorted(watch.hits.items()):
            text = pathlib.Path(path).read_text(encoding="utf-8")
            ran = lines_that_ran(ast.parse(text), hits)
            lines += len(ran)
            hit += len(hits & set(ran))
            unnamed += len(watch.lacking[path])
            place, rows = os.path.basename(path), text.splitlines()
            wrong += [f"{place}:{n}: not hit: {rows[n - 1].strip()[:90]}" for n in ran if n not in hits]
            wrong += [f"{place}:{n}: no {', '.join(sorted(names))}: {rows[n - 1].strip()[:90]}"
                      for n, names in watch.lacking[path].items()]
        notes = pathlib.Path(on.path, "notes.txt")
        if notes.exists():
            wrong += [line for line in notes.read_text(encoding="utf-8").splitlines() if " runs " in line]
        if not watch.hits:
            wrong.append("no file of the dump was reached")
        return len(watch.hits), lines, hit, unnamed, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs and models; all by default")
    parser.add_argument("--backends", nargs="+", default=["eager", "aot_eager"])
    parser.add_argument("--monitoring", action="store_true", help="sys.monitoring instead of sys.settrace")
    parser.add_argument("--write", metavar="FILE", help="put the table into this file")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    torch._logging.set_logs(all=logging.ERROR)
    rows: list[tuple[Any, ...]] = []
    totals = [0, 0, 0, 0]
    bad = 0
    for name in chosen.names or (*PROGRAMS, "demo", *MODELS):
        for backend in chosen.backends:
            *figures, wrong = measure(name, backend, chosen.monitoring)
            totals = [total + figure for total, figure in zip(totals, figures)]
            files, lines, hit, unnamed = figures
            rows.append((name, backend, files, lines, hit, lines - unnamed))
            bad += len(wrong)
            print(*rows[-1], flush=True)
            for line in wrong[:8]:
                print("   ", line, flush=True)
    files, lines, hit, unnamed = totals
    percent = f" ({100 * hit / max(lines, 1):.2f} %)"
    rows.append(("**all**", "", files, lines, f"{hit}{percent}", lines - unnamed))
    text = (f"{dated()}, Python {platform.python_version()}, torch {torch.__version__}, "
            f"{'sys.monitoring' if chosen.monitoring else 'sys.settrace'}\n\n" + table(
                ("program", "backend", "files", "lines that ran", "hit", "with every name it reads"), rows))
    print("\n" + text)
    if chosen.write:
        pathlib.Path(chosen.write).write_text(text, encoding="utf-8")
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
