"""The facts of a run with what all sections say of them."""

from __future__ import annotations

from ...capture.records import Capture, Compilation, SourceLocation
from ...capture.resumes import resumed_function
from ..markdown import code, count
from ..story import Story

#: How many of a kind are told one by one.
ROWS = 40


class Told(Story):
    """The facts, with the words for them."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.named: dict[str, None] = {}  # files that the text names, in order

    def place(self, location: SourceLocation | None) -> str:
        """``model.py:12``; the list of files tells where that is."""
        if location is None:
            return ""
        self.named[location.filename] = None
        return code(f"{self.short.get(location.filename, location.filename)}:{location.line}")

    def subject(self, compilation: Compilation) -> str:
        """Which function; of a resume function the name that the files have, and where it goes on."""
        found = self.entries.get(compilation.compile_id.key)
        resume = resumed_function(compilation.function)
        unit = self.unit_of.get(compilation.compile_id.key)
        if resume:
            where = f"{code(unit.title if unit else resume[0])} from line {resume[1]} on"
            return f"{code(found[0].name)} ({where})" if found and found[0].name != compilation.function else where
        return code(unit.title if unit else compilation.function or "a function that torch does not name")


def left_out(number: int, what: str) -> list[str]:
    return ["", f"... and {count(number, what)} more (`records.jsonl` has all)."] if number > 0 else []
