"""The facts of a run with what all sections say of them."""

from __future__ import annotations

from collections.abc import Sequence

from ....records.model import Capture, Compilation, SourceLocation
from ....torch_text.global_names import resumed_function
from ...advice import Adviser
from ...function_summary import FunctionSummary
from ...markdown import code, count
from ...run_index import RunIndex

#: How many of a kind are listed one by one.
ROWS = 40


class SectionContext(RunIndex):
    """The facts, with the words for them."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.advice = Adviser(self)
        self.named: dict[str, None] = {}  # files that the text names, in order

    def place(self, location: SourceLocation | None) -> str:
        """Return ``model.py:12``; the list of files has its path."""
        if location is None:
            return ""
        self.named[location.filename] = None
        return code(self.short_place(location))

    def called_through(self, wrappers: Sequence[SourceLocation]) -> str:
        """Return ``called through 2 wrappers: `generic.py:1019` `merge_with_config_defaults.wrapper`, ...``."""
        return f"called through {count(len(wrappers), 'wrapper')}: " + ", ".join(
            f"{self.place(wrapper)} {code(wrapper.function)}" for wrapper in wrappers)

    def subject(self, compilation: Compilation) -> str:
        """Return the function of a compilation; of a resume function its name in the files, and where it goes on."""
        frame, _ = self.entries.get(compilation.compile_id.key, (None, None))
        if frame and resumed_function(compilation.function) and frame.name != compilation.function:
            return f"{code(frame.name)} ({self.name_of(compilation)})"
        return self.name_of(compilation)

    def name_in_text(self, summary: FunctionSummary) -> str:
        """Return the function in the user's words."""
        first = next((c for c in summary.compilations if not resumed_function(c.function)), None)
        return self.name_of(first) if first is not None else code(summary.title)


def left_out(number: int, what: str) -> list[str]:
    """Return the lines that say how many of a kind are not listed."""
    return ["", f"... and {count(number, what)} more (`records.jsonl` has all)."] if number > 0 else []
