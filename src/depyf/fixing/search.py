"""The search for a patch: try what advice proposes, keep what helps and leaves the results as they are."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..advice import Advice, Sources, on_break
from ..advice.model import Edit, edited
from ..advice.recompile_edits import proposals
from ..advice.recompiles import ValueChange
from ..advice.source import is_own
from ..records.model import Capture, SourceFile
from ..views.run_index import RunIndex
from .outcome import Outcome

#: Changes behind which the next break is looked for, and what may show there for a while (:attr:`Outcome.weight`).
MOST_AHEAD = 2
MOST_SHOWN = 8

#: Runs a program with texts in the place of files.
Trial = Callable[[Mapping[str, str]], Outcome]


@dataclasses.dataclass
class Found:
    """What the search came to.

    Attributes:
        before, after: the runs without and with the patch.
        taken: what the patch does.
        texts: the files that it changes, by path, as they would be.
        runs: how often the program ran.
        refused: why nothing was tried, or ``""``.
    """

    before: Outcome
    after: Outcome
    taken: list[Advice] = dataclasses.field(default_factory=list)
    texts: dict[str, str] = dataclasses.field(default_factory=dict)
    runs: int = 1
    refused: str = ""


class Search:
    """A search over one program.

    Args:
        program: its file.
        trial: runs it.
        most_runs: after so many the search ends with what it has.
    """

    def __init__(self, program: str, trial: Trial, most_runs: int = 12) -> None:
        self.program = os.path.realpath(program)
        self.trial = trial
        self.left = most_runs
        self.tried: set[Advice] = set()
        self.runs = 0

    def _run(self, texts: Mapping[str, str]) -> Outcome:
        self.runs += 1
        self.left -= 1
        return self.trial(texts)

    def patch(self) -> Found:
        """Return the patch that was found."""
        before = self._run({})
        found = Found(before, before)
        if before.status != 0 or before.capture is None:
            found.refused = "the program fails as it is" if before.status else "the program takes too long"
            return found
        while self.left > 0 and found.after.problems and (self._step(found) or self._through(found)):
            pass
        if len(found.taken) > 1:
            self._without_idle(found)
        if before.problems and not found.taken and self.left > 0 and not self._run({}).same_results(before):
            found.refused = "two runs of the program as it is do not give the same, so no change can be judged"
        found.runs = self.runs
        return found

    def _step(self, found: Found) -> bool:
        """Take one round of proposals, all at once, or those that help by themselves; return whether any did."""
        # Breaks first: many a recompile is of a resume function, and goes with the break.
        fresh = [each for each in self._on_breaks(found) if each not in self.tried] or [
            each for each in self._on_recompiles(found) if each not in self.tried]
        first = list(_one_each(fresh))
        if not first:
            return False
        if len(first) > 1 and self._taken(found, first):
            self.tried.update(first)
            return True
        helped = False
        for each in first:
            if self.left <= 0:
                break
            self.tried.add(each)
            if self._taken(found, [each]):
                helped = True
                break  # (lines have moved: what is left is proposed again)
        return helped or len(fresh) > len(first)

    def _through(self, found: Found) -> bool:
        """Take a change behind which the next break shows, together with changes for that; return whether it helps.

        A function that is given up at its first break has its others still to come.
        """
        for first in [each for each in _one_each(self._on_breaks(found)) if each not in found.taken][:MOST_AHEAD]:
            ahead = dataclasses.replace(found, taken=list(found.taken), texts=dict(found.texts))
            if self.left <= 1 or not self._taken(ahead, [first], ahead.after.weight + MOST_SHOWN):
                continue
            if ahead.after.broken_at == found.after.broken_at:
                continue
            while self.left > 0 and ahead.after.problems and self._step(ahead):
                pass
            if ahead.after.weight < found.after.weight:
                found.after, found.texts, found.taken = ahead.after, ahead.texts, ahead.taken
                return True
        return False

    def _taken(self, found: Found, advices: Sequence[Advice], below: int | None = None) -> bool:
        """Try changes, and take them where what is left weighs less than it did, or than ``below``."""
        texts = self.with_advice(found.texts, advices)
        if texts is None:
            return False
        after = self._run(texts)
        if after.weight >= (found.after.weight if below is None else below) or not after.same_results(
                found.before) or found.before.operations and not after.operations:
            return False  # (what is not compiled has no breaks)
        found.after, found.texts = after, texts
        found.taken += advices
        return True

    def _without_idle(self, found: Found) -> None:
        """Take back settings without which the run is as good."""
        for advice in [each for each in found.taken if each.settings and not each.edits]:
            if self.left <= 0 or len(found.taken) < 2:
                return
            text = found.texts[self.program]
            for line in advice.settings:
                text = text.replace(f"{line}\n", "", 1)
            texts = {**found.texts, self.program: text}
            after = self._run(texts)
            if after.weight <= found.after.weight and after.same_results(found.before):
                found.after, found.texts = after, texts
                found.taken.remove(advice)

    # --- proposals ----------------------------------------------------------------------------------
    def _on_breaks(self, found: Found) -> Iterator[Advice]:
        capture = found.after.capture
        if capture is None:
            return
        sources = self._sources(capture, found.texts)
        for compilation in capture.compilations:
            for broken in compilation.breaks:
                advice = on_break(sources.site(broken))
                if advice is not None and advice.is_mechanical:
                    yield advice

    def _on_recompiles(self, found: Found) -> Iterator[Advice]:
        capture = found.after.capture
        if capture is None:
            return
        sources, run = self._sources(capture, found.texts), RunIndex(capture)
        for compilation in capture.compilations:
            meant = compilation.user_function
            location = meant.location if meant is not None and meant.location is not None else compilation.location
            for change in run.changes(compilation):
                value = ValueChange(change.subject, change.was, change.now, change.lasts)
                first = next((each for each in proposals(value, location, sources, self.program)
                              if each not in self.tried), None)
                if first is not None:
                    yield first

    def _sources(self, capture: Capture, texts: Mapping[str, str]) -> Sources:
        files = {self.program: self._text(self.program, texts), **{file.path: file.text for file in capture.sources}}
        return Sources(SourceFile(path, texts.get(os.path.realpath(path), text)) for path, text in files.items())

    def with_advice(self, texts: Mapping[str, str], advices: Iterable[Advice]) -> dict[str, str] | None:
        """Return the texts of changed files with advice carried out; ``None`` where that cannot be."""
        result = dict(texts)
        by_file: dict[str, list[Edit]] = {}
        settings: dict[str, None] = {}
        for advice in advices:
            settings.update(dict.fromkeys(advice.settings))
            for edit in advice.edits:
                by_file.setdefault(os.path.realpath(edit.filename), []).append(edit)
        for path, edits in by_file.items():
            if not is_own(path):
                return None
            new = edited(self._text(path, result), edits)
            if new is None or not _parses(new):
                return None
            result[path] = new
        if settings:
            result[self.program] = with_settings(self._text(self.program, result), list(settings))
        return result

    def _text(self, path: str, texts: Mapping[str, str]) -> str:
        if path in texts:
            return texts[path]
        with open(path, encoding="utf-8") as file:
            return file.read()


def _one_each(advices: Iterable[Advice]) -> Iterator[Advice]:
    """Yield the first proposal for each place, so that all can be made at once."""
    lines: set[tuple[str, int]] = set()
    seen: set[Advice] = set()
    for advice in advices:
        touched = {(edit.filename, line) for edit in advice.edits for line in range(edit.first, edit.last + 1)}
        if advice in seen or touched & lines:
            continue
        seen.add(advice)
        lines |= touched
        yield advice


def with_settings(text: str, settings: Sequence[str]) -> str:
    """Return a program's text with lines put behind its imports."""
    lines = text.splitlines()
    tree = ast.parse(text)
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    last = max((node.end_lineno or node.lineno for node in imports), default=0)
    known = {alias.asname or alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    fresh = [line for line in settings if line not in lines]
    if fresh and "torch" not in known:
        fresh.insert(0, "import torch")
    return "\n".join([*lines[:last], *fresh, *lines[last:]]) + "\n"


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def unified_diff(texts: Mapping[str, str], folder: str) -> str:
    """Return the patch as a unified diff, with paths as they are from a folder."""
    parts: list[str] = []
    for path, new in sorted(texts.items()):
        with open(path, encoding="utf-8") as file:
            old = file.read()
        name = os.path.relpath(path, folder)
        parts += difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in parts)
