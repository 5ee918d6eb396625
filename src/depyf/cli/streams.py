"""The output of the commands: nothing that goes through these streams is obeyed by a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

from ..harmless import harmless


class HarmlessStream:
    """A text stream that escapes what a terminal would obey (:func:`depyf.harmless.harmless`).

    Attributes:
        stream: where the text goes.
    """

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
    """Return the stream itself, for text that is escaped already and has colours of ours."""
    return stream.stream if isinstance(stream, HarmlessStream) else stream
