"""The terminal that commands write to: its colours, its width, and streams whose text it does not obey."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, cast

from .. import budgets, reading
from ..harmless import harmless

if TYPE_CHECKING:
    from rich.console import Console

    from ..views.progress import Progress

WIDEST = 120  #: Longer lines are hard to read.
RUN = "directory of a dump, its records.jsonl, or a log of TORCH_TRACE"  #: What commands read a run from.


def add_rank(command: argparse.ArgumentParser) -> None:
    """Add ``--rank``, which :func:`depyf.recorded_runs.folder_of` takes."""
    command.add_argument("--rank", type=int, metavar="N", help="of several ranks, this one")


def add_color(command: argparse.ArgumentParser) -> None:
    """Add ``--color``, whose value :func:`console_on` takes."""
    command.add_argument("--color", choices=("auto", "always", "never"), default="auto",
                         help="set words off by colours (default: on a terminal, unless NO_COLOR is set)")


def console_on(stream: TextIO, colours: str = "auto") -> Console:
    """Return the console on a stream: with colours on a terminal, unless ``NO_COLOR`` (no-color.org) says no.

    Args:
        colours: ``auto``, ``always`` or ``never``.

    Raises:
        ModuleNotFoundError: Rich is not installed.
    """
    from ..views.terminal import console_for

    on = colours == "always" or colours == "auto" and (
        stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR"))
    return console_for(below(stream), on, min(shutil.get_terminal_size((100, 24)).columns, WIDEST))


def bar_on(stream: TextIO, total: int, wanted: bool = True) -> Progress:
    """Return the bar on a stream (:class:`depyf.views.progress.Progress`, which escapes what it shows)."""
    from ..views.progress import Progress

    return Progress(total, below(stream), wanted)


# --- output of the commands --------------------------------------------------------------------------
class HarmlessStream:
    """A text stream that escapes what a terminal would obey (:func:`depyf.harmless.harmless`)."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text, escaped."""
        self.stream.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the lines, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def harmless_streams() -> Iterator[None]:
    """Have both output streams of the process escape their text."""
    before = sys.stdout, sys.stderr
    ours = tuple(cast(TextIO, HarmlessStream(stream)) if stream is not None else stream for stream in before)
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        if (sys.stdout, sys.stderr) == ours:
            sys.stdout, sys.stderr = before


def below(stream: TextIO) -> TextIO:
    """Return the stream itself, for text that is escaped already and has our colours."""
    return stream.stream if isinstance(stream, HarmlessStream) else stream


# --- Exit statuses that the commands share -----------------------------------------------------------
#: Done, and nothing to say against it.
DONE = 0
BAD_INPUT = 2  #: What was given cannot be read or used, or the result cannot be written.
INTERRUPTED = 130  #: Ended by Ctrl-C.


def refused(why: object) -> int:
    """Say on standard error why a command does nothing, and return its exit status."""
    if isinstance(why, OSError) and why.filename is not None:
        why = f"{why.filename!r} cannot be opened ({why.strerror}); give a path that can be"
    print("depyf: " + str(why).removeprefix("depyf "), file=sys.stderr)
    return BAD_INPUT


# --- A limit on the processor time of a command -------------------------------------------------------
# Hostile records may cost much more than their size.
class TooSlow(BaseException):
    """The command took too long; no ``except Exception`` that goes on after an error catches it."""


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Raise :class:`TooSlow` in the code inside when it takes longer than what was read accounts for.

    Without signals (on Windows, in another thread than the main one) there is no limit.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    begun = time.process_time()

    def look(number: int, frame: FrameType | None) -> None:
        budget = budgets.seconds_for(reading.opened_bytes())
        if why := budget.exceeded(int(time.process_time() - begun)):
            raise TooSlow(f"stopped: {why}")

    before = signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
