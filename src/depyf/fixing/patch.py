"""The texts that changes make of a program's files. A change names lines of the texts that it was proposed for."""

from __future__ import annotations

import ast
import difflib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from .. import budgets, reading
from ..advice import Advice, candidates
from ..advice.model import Edit, edited
from ..advice.recompiles import DYNAMIC
from ..advice.source import is_own
from ..model.folding import fold
from ..records.model import Capture
from ..torch_text.parsed import parsed_file
from ..values import frozen
from ..views.advice import Adviser
from ..views.causes import breaks_by_place, cause, statement
from ..views.changes import row
from ..views.markdown import plain, prose, unmarked
from ..views.run_index import RunIndex
from ..views.verdict import lost_functions, why_plain


@frozen
class Patch:
    """Changes of a program."""

    program: str  # its file; settings go there
    taken: tuple[Advice, ...] = ()  # the changes, in order
    texts: Mapping[str, str] = field(default_factory=dict)  # the new texts of files, by real path
    before: Patch | None = None  # the patch without the last change; `None` where there is none

    def text(self, path: str) -> str:
        """Return the text of a file with the patch."""
        return self.texts[path] if path in self.texts else _written(path)

    def with_advice(self, advice: Advice) -> Patch | None:
        """Return the patch with a further change; ``None`` where it cannot be made."""
        texts = dict(self.texts)
        for path, edits in fold(advice.edits, lambda edit: os.path.realpath(edit.filename)).items():
            new = edited(self.text(path), edits)
            if new is None or not is_own(path):
                return None
            texts[path] = new
        if advice.settings:
            texts[self.program] = with_settings(texts.get(self.program) or _written(self.program), advice.settings)
        is_python = all(map(parsed_file, texts.values()))
        return Patch(self.program, (*self.taken, advice), texts, self) if is_python else None

    def without(self, number: int) -> Patch | None:
        """Return the patch without one of its changes; ``None`` where a later one is of lines that it made."""
        if self.before is None or number == len(self.taken) - 1:
            return self.before
        rest, last = self.before.without(number), self.taken[-1]
        edits = tuple(filter(None, (_moved(edit, self.before, rest or self) for edit in last.edits)))
        return rest and rest.with_advice(replace(last, edits=edits)) if len(edits) == len(last.edits) else None


def _moved(edit: Edit, of: Patch, to: Patch) -> Edit | None:
    """Return an edit of the text of one patch as one of that of another; ``None`` where its lines are not there."""
    old, new = (each.text(os.path.realpath(edit.filename)).splitlines() for each in (of, to))
    return next((replace(edit, first=edit.first + b - a, last=edit.last + b - a)
                 for a, b, size in difflib.SequenceMatcher(None, old, new, False).get_matching_blocks()
                 if a < edit.first and edit.last <= a + size), None)


def with_settings(text: str, settings: Sequence[str]) -> str:
    """Return a program's text with lines after its imports, and ``import torch`` where it is missing."""
    fresh = [line for line in dict.fromkeys(settings) if line not in text.splitlines()]
    imports = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    known = {alias.asname or alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    line = 1 + max((node.end_lineno or node.lineno for node in imports), default=0)
    lines = (*(() if "torch" in known or not fresh else ("import torch",)), *fresh)
    return edited(text, [Edit("", line, line - 1, lines)]) or text


def _written(path: str) -> str:
    return reading.text(path, budgets.CODE)


def unified_diff(texts: Mapping[str, str], folder: str) -> str:
    """Return the patch as a unified diff, with paths relative to a folder."""
    parts: list[str] = []
    for path, new in sorted(texts.items()):
        old, name = _written(path).splitlines(True), os.path.relpath(path, folder)
        parts += difflib.unified_diff(old, new.splitlines(True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in parts)


# --- what remains after a patch ----------------------------------------------------------------------
def remaining_problems(capture: Capture, rejected: Mapping[Advice, str] | None = None) -> list[str]:
    """Return lines on the breaks, skipped functions and recompiles of the last run; advice is indented.

    What was tried and rejected, with the reason, is no advice.
    """
    run, refused = RunIndex(capture), rejected or {}
    # (What was tried at a line says nothing of other lines.)
    others = Adviser(run, {each.rule for each in refused if each.rule == DYNAMIC or not each.edits})
    lines = list(_breaks(run, Adviser(run), {each.change: why for each, why in refused.items()}))
    for each in lost_functions(run.capture.compilations):
        lines.append(unmarked(why_plain(run, each)))
        if not any(broken.skips_function for broken in each.breaks):  # (what to do about these is there)
            lines += [f"  advice: {unmarked(text)}" for text in others.on_lost(each)]
    for summary in run.summaries:
        again = summary.recompiles
        lines += [f"recompile of {plain(run.name_of(each))}: {unmarked(row(run.changes(each)))}" for each in again[:3]]
        lines += [f"and {len(again) - 3} more of {summary.title}"] if len(again) > 3 else []
        lines += [f"  {unmarked(text)}" for text in others.on(again)[:2]]
    return lines


def _breaks(run: RunIndex, adviser: Adviser, rejected: Mapping[str, str]) -> Iterator[str]:
    """Yield lines on the breaks; each of the user's lines once, though it may break several functions."""
    pairs = [(broken, each) for each in run.capture.compilations for broken in each.breaks]
    times: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    for members in breaks_by_place(pairs):
        broken, compilation = members[0]
        where = broken.location
        at = f"{os.path.basename(where.filename)}:{where.line} `{statement(where.text)}`" if where else "somewhere"
        tried = [each.change for each in candidates(run.source.site(broken))]
        advice = adviser.on_break(broken)
        if advice is not None:
            tried.append(advice.change)
        said = tuple(unmarked(f"tried, and not taken: {each}: {rejected[each]}")
                     for each in dict.fromkeys(tried) if each in rejected)
        said = said or tuple(map(unmarked, adviser.lines_on(broken)[:1]))
        times[at, unmarked(prose(cause(broken))), said] += len(members)
    for (at, why, said), count in times.items():
        yield f"graph break at {at}{f', {count} times' if count > 1 else ''}: {why}"
        yield from (f"  {line}" for line in said)
