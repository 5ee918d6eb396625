"""Trees of guards as text: what torch prints of them, into a buffer of ours.

A small model has a tree of a thousand lines. Torch's buffer takes more than half of the time that printing them takes:
it makes a context manager for each branch and an indentation for each line (torch/_dynamo/guards.py,
``IndentedBufferWithPrefix``). Torch itself goes through the tree and says what stands there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from . import private_api


def printed(make: Callable[[], Any]) -> Any:
    """Return what a function makes that prints a tree of guards.

    (Another thread that prints one meanwhile gets the same text.)
    """
    try:
        owner, name = private_api.GUARD_BUFFER.owner(), private_api.GUARD_BUFFER.attribute
    except private_api.MissingPrivateApi:
        return make()
    theirs = vars(owner)[name]
    if theirs is _Buffer or not _is_alike(theirs):
        return make()
    setattr(owner, name, _Buffer)
    try:
        return make()
    except Exception:
        pass  # (Torch asks for more than our buffer has, or fails by itself, as it does below.)
    finally:
        setattr(owner, name, theirs)
    return make()


class _Buffer:
    """A buffer of lines with the methods that torch uses to print a tree of guards."""

    def __init__(self) -> None:
        self.tabwidth = 4
        self._lines: list[str] = []
        self._indent = 0
        self._start = ""

    def __enter__(self) -> None:
        self._indent += self.tabwidth
        self._start = "| " * self._indent

    def __exit__(self, *error: object) -> None:
        self._indent -= self.tabwidth
        self._start = "| " * self._indent

    def indent(self) -> _Buffer:
        """Return a context in which lines are indented by one level more."""
        return self

    def writeline(self, line: str, skip_prefix: bool = False) -> None:
        """Add a line, behind the sign of a branch."""
        if not skip_prefix:
            self._lines.append(f"{self._start}+- {line}\n")
        else:
            self._lines.append(f"{self._start}{line}\n" if line.strip() else "\n")

    def writelines(self, lines: Iterable[str]) -> None:
        """Add lines."""
        for line in lines:
            self._lines.append(f"{self._start}+- {line}\n")

    def getvalue(self) -> str:
        """Return all lines."""
        return "".join(self._lines)


@functools.cache
def _is_alike(theirs: Any) -> bool:
    """Return whether torch's buffer makes of some lines what ours does."""
    try:
        return _sample(theirs()) == _sample(_Buffer())
    except Exception:
        return False


def _sample(buffer: Any) -> str:
    buffer.tabwidth = 1
    buffer.writeline("", skip_prefix=True)
    buffer.writeline("TREE", skip_prefix=True)
    buffer.writeline("root")
    with buffer.indent():
        buffer.writelines(["a: b", ""])
        with buffer.indent():
            buffer.writeline("c\nd")
        buffer.writeline(" ", skip_prefix=True)
    return str(buffer.getvalue())
