"""Regular expressions that are compiled when they are used, and texts searched for what such an expression begins with.

A program that is watched imports expressions that it has no use for, and compiling one takes as long as importing a
small module. Its guards are texts of a megabyte, in which a literal is found many times faster than an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast


def pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled when it is used for the first time."""
    return cast("re.Pattern[str]", _Uncompiled(expression, flags))


class _Uncompiled:
    """A regular expression whose methods, once they were asked for, are those of the compiled one."""

    def __init__(self, expression: str, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, value)
        return value


def replaced_from(start: str, matches: re.Pattern[str], new: Callable[[re.Match[str]], str], text: str) -> str:
    """Return what ``matches.sub(new, text)`` returns, where each match begins with a literal.

    Args:
        start: the literal.
        matches: the expression.
        new: makes the text that replaces a match.
        text: in which matches are replaced.
    """
    pieces: list[str] = []
    done = 0
    place = text.find(start)
    while place >= 0:
        match = matches.match(text, place)
        if match is not None:
            pieces += (text[done:place], new(match))
            done = match.end()
        place = text.find(start, max(done, place + 1))
    return "".join((*pieces, text[done:])) if pieces else text


def place_of(literal: str, text: str, start: int = 0) -> int:
    """Return where a literal stands in a text from a place on; the end of the text where it does not."""
    place = text.find(literal, start)
    return place if place >= 0 else len(text)
