"""A progress bar for commands that wait for the files of another process."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..records import making

#: Seconds. A wait that is shorter is not worth a word.
_SHORTEST = 0.3


@contextlib.contextmanager
def waiting_shown() -> Iterator[None]:
    """Show a progress bar while the code inside waits for another process."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from ..records import making
    from .terminal import bar_on

    bar = bar_on(sys.stderr, 2)
    begun = 0.0

    def show(status: making.Status | None) -> None:
        nonlocal begun
        if status is None:
            if begun:
                bar.clear()
            begun = 0.0
            return
        begun = begun or time.monotonic()
        if time.monotonic() - begun > _SHORTEST:
            what, bar.done, total = status
            bar.total = max(total, 1)
            bar.show(f"waiting for the files{f': {what}' if what else ''}")

    with making.shown(show):
        yield
