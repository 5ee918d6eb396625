"""``%%depyf``: what a cell compiles, shown below the cell.

The cell runs as it does without the magic, because it *is* run without: its first line is taken away before IPython
compiles it (an input transformer), and what watches is switched on and off around it (IPython's events). So output,
exceptions, ``await``, the value of the last expression, variables and line numbers are those of a plain cell.
"""

from __future__ import annotations

import argparse
import os
import shlex
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from IPython.core.error import UsageError
from IPython.display import display

from ..harmless import say
from ..prepare import prepare_debug
from ..records import store
from ..views.markdown import count
from .view import HEIGHT, View, temporary

if TYPE_CHECKING:
    from .earlier import Compiled

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
        words = shlex.split(line, comments=True)
    except ValueError as error:
        _PARSER.error(str(error))
    options = _PARSER.parse_args(words)
    try:
        View("", height=options.height)
    except ValueError as error:
        _PARSER.error(str(error))
    return options


class Watched:
    """One cell, from before it runs until it is shown."""

    def __init__(self, options: argparse.Namespace, cell: str, namespace: dict[str, Any]) -> None:
        self.options, self.cell, self.namespace = options, cell, namespace
        self.block = prepare_debug(options.output or temporary(), files="now")
        self.block.__enter__()
        self.earlier = self._compiled()

    def _compiled(self) -> list[Compiled]:
        from . import earlier

        return earlier.compiled(earlier.names_in(self.cell), self.namespace)

    def end(self) -> View:
        """Write the dump, and return its view."""
        self.block.__exit__(None, None, None)
        capture = store.read(self.block.path)
        notes = []
        if self.earlier:
            from . import earlier

            names = ", ".join(f"{one.name} ({count(one.versions, 'version')})" for one in self.earlier)
            notes.append(f"Compiled before this cell, so torch did not compile it again: {names}. To see all of it "
                         "compiled, run torch.compiler.reset() first.")
            if not capture.compilations and not capture.functions:
                notes.append("What torch still holds of it is shown (graphs only where the backend kept them).")
                return View.of(earlier.merged(self.earlier), notes=notes, height=self.options.height)
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
        """Return the cell itself; a line stays where it was.

        (IPython also calls this for cells that it does not run.)
        """
        if options_line("".join(lines[:1])) is None:
            return lines
        return ["\n", *lines[1:]]

    def before(self, info: Any) -> None:
        """IPython is about to run a cell."""
        cell = info.raw_cell.lstrip("\n")
        first, _, rest = cell.partition("\n")
        line = options_line(first)
        if line is None or self.running is not None:  # (a cell that a watched cell runs belongs to it)
            return
        try:
            self.running = info, Watched(options_of(line), self._plain(rest), self.shell.user_ns)
        except Exception as error:  # the cell runs all the same
            _say(error, "this cell is not watched")

    def _plain(self, cell: str) -> str:
        try:
            return str(self.shell.transform_cell(cell))
        except Exception:  # IPython says so when it runs the cell
            return ""

    def after(self, result: Any) -> None:
        """IPython has run a cell, well or not."""
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
        # Comes here with wrong options, or from code: as a first line, without_first_line() has taken it away.
        options = options_of(line)
        watched = Watched(options, self._plain(cell or ""), self.shell.user_ns)
        try:
            result = self.shell.run_cell(cell or "")
        finally:
            display(watched.end())
        result.raise_error()


def options_line(first: str) -> str | None:
    """Return the options behind ``%%depyf`` in a cell's first line.

    ``None`` without that mark or with a wrong option.
    """
    words = first.strip()
    if words != _MARK and not words.startswith((f"{_MARK} ", f"{_MARK}\t")):
        return None
    line = words[len(_MARK):]
    try:
        options_of(line)
    except UsageError:
        return None
    return line


def _say(error: Exception, consequence: str) -> None:
    where = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(where[-1].filename)}:{where[-1].lineno})" if where else ""
    say(f"depyf: {consequence}: {type(error).__name__}: {error}{place}")
