"""``%%depyf``: what a cell compiles, shown below the cell.

The cell runs as without the magic: an input transformer empties its first line before IPython compiles it, and events
of IPython start and stop the recording. So output, exceptions, ``await``, the value of the last expression, variables
and line numbers are those of a plain cell.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import traceback
from collections.abc import Iterable, Mapping
from types import FunctionType, MethodType
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.display import display

from ..capture.live import capture_of
from ..capture.torch_private import cache_entries, compiled_callables
from ..capture.user_function import Meant, meant_by_function
from ..harmless import say
from ..prepare import prepare_debug
from ..records import store
from ..records.model import Capture
from ..values import frozen
from ..views.markdown import count
from .view import HEIGHT, View, temporary

NAME = "depyf"
_MARK = f"%%{NAME}"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{_MARK}: {message}\n{self.format_usage().strip()}")


_PARSER = _Parser(prog=_MARK, add_help=False)
_PARSER.add_argument("-o", "--output", metavar="DIR", help="keep all files of the dump there")
_PARSER.add_argument("--height", type=int, default=HEIGHT, metavar="PIXELS", help=f"of the page (default: {HEIGHT})")


def options_of(line: str) -> argparse.Namespace:
    """Return the options of the magic's line.

    Raises:
        UsageError: they are wrong.
    """
    try:
        options = _PARSER.parse_args(shlex.split(line, comments=True))
        View("", height=options.height)
    except ValueError as error:
        _PARSER.error(str(error))
    return options


class Watched:
    """One cell, from before it runs until it is shown."""

    def __init__(self, options: argparse.Namespace, cell: str, namespace: dict[str, Any]) -> None:
        self.options = options
        self.block = prepare_debug(options.output or temporary(), files="now")
        self.block.__enter__()
        self.earlier = compiled(names_in(cell), namespace)

    def end(self) -> View:
        """Write the dump, and return its view."""
        self.block.__exit__(None, None, None)
        capture = store.read(self.block.path)
        notes = []
        if self.earlier:
            names = ", ".join(f"{one.name} ({count(one.versions, 'version')})" for one in self.earlier)
            notes.append(f"Compiled before this cell, so torch did not compile it again: {names}. To see all of it "
                         "compiled, run torch.compiler.reset() first.")
            if not capture.compilations and not capture.functions:
                notes.append("What torch still has of it is shown (graphs only where the backend kept them).")
                return View.of(merged(self.earlier), notes=notes, height=self.options.height)
        return View.of(capture, self.block.path, notes=notes, height=self.options.height)


class Magic:
    """The magic in one shell of IPython's."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.running: tuple[Any, Watched] | None = None

    def register(self) -> None:
        """Add the magic to the shell."""
        self.shell.input_transformers_cleanup.append(self.without_first_line)
        self.shell.events.register("pre_run_cell", self.before)
        self.shell.events.register("post_run_cell", self.after)
        self.shell.register_magic_function(self.run, magic_kind="cell", magic_name=NAME)

    def unregister(self) -> None:
        """Take the magic out of the shell."""
        self.shell.input_transformers_cleanup.remove(self.without_first_line)
        self.shell.events.unregister("pre_run_cell", self.before)
        self.shell.events.unregister("post_run_cell", self.after)
        self.shell.magics_manager.magics["cell"].pop(NAME, None)

    def without_first_line(self, lines: list[str]) -> list[str]:
        """Empty the first line of a watched cell. IPython calls this for other cells, too."""
        return lines if first_options("".join(lines[:1])) is None else ["\n", *lines[1:]]

    def before(self, info: Any) -> None:
        """Start watching a cell that IPython is about to run."""
        first, _, rest = info.raw_cell.lstrip("\n").partition("\n")
        options = first_options(first)
        if options is None or self.running is not None:  # (a cell that a watched cell runs belongs to it)
            return
        try:
            self.running = info, Watched(options, self._plain(rest), self.shell.user_ns)
        except Exception as error:  # the cell runs all the same
            _say(error, "this cell is not watched")

    def _plain(self, cell: str) -> str:
        try:
            return str(self.shell.transform_cell(cell))
        except Exception:  # IPython says so when it runs the cell
            return ""

    def after(self, result: Any) -> None:
        """Show the page of a watched cell that IPython has run."""
        if self.running is None:
            return
        info, watched = self.running
        ended = getattr(result, "info", None)
        if ended is not None and ended is not info and ended.raw_cell != info.raw_cell:
            return
        self.running = None
        try:
            display(watched.end())
        except Exception as error:
            _say(error, "the page is missing")

    def run(self, line: str, cell: str | None = None) -> None:
        """Run the cell and show below it what torch.compile did.

        %%depyf [-o DIR] [--height PIXELS]

        All files of the dump go to DIR, else to a temporary directory. What was compiled before is not compiled again.
        """
        # Called with wrong options, or from code: as a first line, without_first_line() has removed it.
        watched = Watched(options_of(line), self._plain(cell or ""), self.shell.user_ns)
        try:
            result = self.shell.run_cell(cell or "")
        finally:
            display(watched.end())
        result.raise_error()


def first_options(first: str) -> argparse.Namespace | None:
    """Return the options after ``%%depyf`` in a cell's first line; ``None`` without it or with a wrong option."""
    words = first.strip()
    if words != _MARK and not words.startswith((f"{_MARK} ", f"{_MARK}\t")):
        return None
    try:
        return options_of(words[len(_MARK):])
    except UsageError:
        return None


def _say(error: Exception, consequence: str) -> None:
    where = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(where[-1].filename)}:{where[-1].lineno})" if where else ""
    say(f"depyf: {consequence}: {type(error).__name__}: {error}{place}")


# --- code that was compiled before a cell ran, which is not in the cell's records --------------------
#: `%time f(x)` becomes a call of the first with the text.
_MAGICS = ("run_line_magic", "run_cell_magic")


@frozen
class Compiled:
    """A function with compiled versions: its name in the notebook, and the number of versions."""

    name: str
    function: Any  # (a function)
    versions: int
    meant: Meant  # the user's function, not its wrapper


def names_in(cell: str) -> list[str]:
    """Return the names in a cell that IPython transformed, in order; none if it is not Python."""
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError):
        return []
    result: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(name):
                result.append(name)
            case ast.Call(ast.Attribute(attr=name), args) if name in _MAGICS:
                result += (word for text in args if isinstance(text, ast.Constant)
                           for word in re.findall(r"\w+", str(text.value)))
    return result


def compiled(names: Iterable[str], namespace: Mapping[str, Any]) -> list[Compiled]:
    """Return functions with compiled versions that the names refer to, also through functions of the namespace."""
    result: dict[int, Compiled] = {}
    pending, seen = list(names), set()
    while pending:
        name = pending.pop(0)
        if name in seen or name not in namespace:
            continue
        seen.add(name)
        for function, this in functions_of(namespace[name]):
            code = function.__code__
            if function.__globals__ is namespace:
                pending += code.co_names
            if (versions := len(cache_entries.cache_entries(code))) and id(code) not in result:
                result[id(code)] = Compiled(name, function, versions, meant_by_function(function, this))
    return list(result.values())


def functions_of(value: Any) -> list[tuple[FunctionType, Any]]:
    """Return the Python functions that run when a value is called, each with its ``self``.

    These are the value itself, the function that ``torch.compile`` wraps, a module's ``forward``. Attributes of other
    objects are not read: that can run their code.
    """
    import torch

    if not isinstance(value, (FunctionType, MethodType, torch.nn.Module)):
        return []
    inner = compiled_callables.innermost_function(value)
    candidates, this = [inner], None
    if isinstance(inner, torch.nn.Module):  # (an instance's own first: `model.forward = torch.compile(model.forward)`)
        candidates, this = [vars(inner).get("forward"), type(inner).forward], inner
    result: dict[FunctionType, Any] = {}
    for candidate in candidates:
        candidate = compiled_callables.innermost_function(candidate)
        owner = candidate.__self__ if isinstance(candidate, MethodType) else this
        candidate = getattr(candidate, "__func__", candidate)
        if isinstance(candidate, FunctionType):
            result.setdefault(candidate, owner)
    return list(result.items())


def merged(functions: Iterable[Compiled]) -> Capture:
    """Return the records of these functions, as far as torch has them."""
    captures = [capture_of(one.function.__code__, one.function.__globals__, one.meant) for one in functions]
    return Capture(
        tuple(function for capture in captures for function in capture.functions),
        tuple({graph.name: graph for capture in captures for graph in capture.graphs}.values()),
        (), captures[0].environment if captures else {})
