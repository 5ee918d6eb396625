"""The command ``depyf``: a module for each of its commands, and ``recorded`` for those that read the records of a run.

    depyf explain dump --rank 1
    recorded._add_explain(commands)     adds its parser to those of the command line
    recorded.explain(given)             runs it and gives the exit status

Nothing that a command needs is imported before it runs. ``terminal`` decides on colours and width.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import __version__
from .terminal import INTERRUPTED, TooSlow, harmless_streams, refused, time_limit

#: In the order in which ``depyf --help`` shows them.
COMMANDS = ("run", "explain", "fix", "diff", "check", "fits", "repro", "open", "report", "decompile", "doctor")
#: Those that read records, whose processor time is limited.
_LIMITED = ("explain", "diff", "check", "fits", "repro", "open", "report")


class _Parser(argparse.ArgumentParser):
    """Reports an unknown option or command before arguments that are missing."""

    _words: Any = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        words, self._words = self._words, None
        if words is not None:
            for each in self._actions:
                each.required = False
            unknown = super().parse_known_args(words)[1]  # (another error than that something is missing comes again)
            message = f"unrecognized arguments: {' '.join(unknown)}" if unknown else message
        super().error(message)


def parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of the command line, with one command alone where that is known."""
    command_line = _Parser(
        prog="depyf", description="See what torch.compile does with a program; source for compiled Python.",
        epilog="depyf COMMAND --help describes a command.")
    command_line.add_argument("--version", action="version", version=f"depyf {__version__}")
    commands = command_line.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in [command] if command in COMMANDS else COMMANDS:
        module = importlib.import_module(f".{'recorded' if name in _LIMITED else name}", __name__)
        getattr(module, f"_add_{name}")(commands)
    return command_line


def command() -> int:
    """Run the command that this process was started for; returns the exit status."""
    status = main()
    # Python looks for garbage once more when it ends. What is left goes with the process.
    gc.freeze()
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        with contextlib.suppress(ValueError):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    with harmless_streams():
        return _status(words)


def _status(words: list[str]) -> int:
    if words[:1] == ["run"]:
        from ..program.options import spelled_out

        words = ["run", *spelled_out(words[1:])]
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        import difflib

        near = [f"; did you mean {each}?" for each in difflib.get_close_matches(words[0], COMMANDS, 1)]
        parser().error(f"there is no command {words[0]}{(near or [': give one of ' + ', '.join(COMMANDS)])[0]}")
    given = parser(*words[:1]).parse_args(words)
    try:
        with time_limit() if given.command in _LIMITED else contextlib.nullcontext():
            status: int = given.run(given)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("\ndepyf: interrupted" if sys.stderr.isatty() else "depyf: interrupted", file=sys.stderr)
        return INTERRUPTED
    except TooSlow as error:
        return refused(error)
    except (RecursionError, MemoryError) as error:
        if given.command not in _LIMITED:
            raise
        return refused("a text of the input is nested too deeply or too large for this Python "
                       f"({type(error).__name__}); give other records")
    except ModuleNotFoundError as error:
        if error.name != "rich":
            raise
        return refused(f"`depyf {given.command}` lays its text out with Rich, which is not installed: pip install rich")
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is left in the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        from ..records.store import RecordsError

        if given.command in _LIMITED and isinstance(error, (RecordsError, OSError)):
            return refused(error)  # (there is nothing that can be read, or the result cannot be written)
        if given.command not in _LIMITED or sys.flags.dev_mode:
            raise
        return refused(
            f"an internal error of `depyf {given.command}` ({type(error).__name__}: {error}); `python -X dev -m depyf` "
            "shows where. If the records are as depyf wrote them, please report it")
