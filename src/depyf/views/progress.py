"""A progress bar on the last line of a terminal."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any, TextIO

from ..harmless import harmless


class Progress:
    """A bar for ``total`` steps on the last line of a terminal, shown after ``delay`` seconds; nothing elsewhere."""

    def __init__(self, total: int, stream: TextIO | None, wanted: bool, delay: float = 0.0) -> None:
        self._begin = time.monotonic() + delay if delay else 0.0
        self.total = total
        self.done = 0
        self.stream: Any = stream
        self.on = wanted and total > 1 and _is_terminal(stream) and os.environ.get("TERM") != "dumb"
        self.colour = self.on and not os.environ.get("NO_COLOR")

    def show(self, name: str) -> None:
        """Draw the bar, with the name of what is done now (of any origin: the stream need not escape it)."""
        if not self.on or time.monotonic() < self._begin:
            return
        width = max(shutil.get_terminal_size().columns - 1, 1)
        count = f" {self.done}/{self.total} "
        room = min(30, width - len(count) - 2)
        full = room * self.done // self.total
        bar = f"[{'#' * full}{'.' * (room - full)}]" if room >= 5 else ""
        line = f"{bar}{count}{' '.join(harmless(name).split())}"[:width]
        self._write(f"\r\x1b[K\x1b[2m{line}\x1b[0m" if self.colour else f"\r\x1b[K{line}")

    def writing(self, what: str, done: int, total: int) -> None:
        """Draw the bar of a run whose files are written."""
        self.done, self.total = done, total
        self.show(f"depyf: writing {what}")

    def clear(self) -> None:
        """Take the bar away."""
        if self.on:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except Exception:  # (it is closed, or the program's own)
            self.on = False


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except Exception:  # (it is closed, or the program's own)
        return False
