"""``index.md``: a run in order, with links into its files.

A pure function of a :class:`~depyf.records.model.Capture`, so that it can be made again from ``records.jsonl``. What
repeats is said once with a count: the same break at the same line, the same reason for a recompile.
"""

from __future__ import annotations

from ...records.model import Capture
from ..collectives import collectives
from ..dump.folder import INDEX
from ..markdown import code, count, link, prose, some
from .breaks import breaks, not_compiled
from .compiled import by_calls, functions, pieces, timeline
from .overview import SectionContext, context_of, cost, first, glossary, head, start
from .recompiles import recompiles, shapes
from .written import NOTES

FILE = INDEX
#: How many notes are shown.
NOTES_SHOWN = 6


def index(capture: Capture, notes_file: str = "", page: str = "", later: bool = False) -> str:
    """Return the text of ``index.md``, with links to its files; ``later``: the page is made on request."""
    run = context_of(capture)
    sections = [
        [*head(run), *start(run, page, later)], first(run), functions(run), timeline(run), pieces(run),
        by_calls(run), collectives(capture), breaks(run), recompiles(run), not_compiled(run), shapes(run), cost(run),
        _notes(run, notes_file), glossary(run)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _notes(run: SectionContext, notes_file: str) -> list[str]:
    notes = run.capture.notes
    lines: list[str] = []
    if notes:
        lines += [f"## {NOTES}", "", *(f"* {prose(note, 300)}" for note in notes[:NOTES_SHOWN])]
        if len(notes) > NOTES_SHOWN:
            rest = count(len(notes) - NOTES_SHOWN, "note")
            lines.append(f"* ... and {rest} more in {link(code(notes_file), notes_file)}" if notes_file else
                         f"* ... and {rest} more")
    files: dict[str, str] = {}
    for path in run.named:
        short = run.short.get(path, path)
        if short != path:
            files[short] = max(path, files.get(short, ""), key=len)  # (torch cuts some)
    if files:
        lines += [""] * bool(lines) + ["Places: " + some(
            [f"{code(short)} is {code(path)}" for short, path in files.items()], 12) + "."]
    return lines
