"""The texts that changes make of a program's files, and how to take one of the changes out again.

    lines of the file        with A, then B       without A
    1  import torch          import torch         import torch
    2  if x.any():           x = where(...)       if x.any():
    3      x = x + 1                                  x = x + 1
    4  print(x)              log(x)               log(x)

A change names lines of the text that it was proposed for. So for each one that was made is kept where its lines stand
now, and what stood there before.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence

from .. import budgets, reading
from ..advice import Advice
from ..advice.model import Edit, edited
from ..advice.source import is_own
from ..frozen import frozen


@frozen
class Made:
    """Lines that a change wrote.

    Attributes:
        advice: the change.
        path: the file.
        first: where the lines begin, in the text as it is now.
        lines: what the change wrote.
        before: the lines that it replaced.
        whole: no later change wrote over the lines.
    """

    advice: Advice
    path: str
    first: int
    lines: tuple[str, ...]
    before: tuple[str, ...]
    whole: bool = True

    @property
    def last(self) -> int:
        """The last of the lines; ``first - 1`` where there are none."""
        return self.first + len(self.lines) - 1

    def behind(self, edit: Edit) -> Made:
        """Return where the lines are after an edit of the file."""
        first = self.first + len(edit.lines) - (edit.last - edit.first + 1) if self.first > edit.last else self.first
        whole = self.whole and not (edit.first <= self.last and self.first <= edit.last)
        return Made(self.advice, self.path, first, self.lines, self.before, whole)

    def undoing(self) -> Edit:
        """Return the edit that brings back what stood there."""
        return Edit(self.path, self.first, self.last, self.before)


@frozen
class Patch:
    """Changes of a program.

    Attributes:
        program: its file; settings go there.
        taken: the changes, in the order in which they were made.
        texts: the files that they change, by real path, as they would be.
        made: what the changes wrote.
    """

    program: str
    taken: tuple[Advice, ...] = ()
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    made: tuple[Made, ...] = ()

    def text(self, path: str) -> str:
        """Return the text of a file as it would be."""
        return self.texts[path] if path in self.texts else _written(path)

    def with_advice(self, advices: Iterable[Advice]) -> Patch | None:
        """Return the patch with further changes; ``None`` where they cannot be made."""
        advices = tuple(dict.fromkeys(advices))
        by_file: dict[str, dict[Edit, Advice]] = {}
        for advice in advices:
            for edit in advice.edits:
                by_file.setdefault(os.path.realpath(edit.filename), {}).setdefault(edit, advice)
        result: Patch | None = Patch(self.program, (*self.taken, *advices), self.texts, self.made)
        for path, edits in by_file.items():
            result = result._edited(path, edits) if result is not None and is_own(path) else None
        return result._with_settings(advices) if result is not None else None

    def without(self, advice: Advice) -> Patch | None:
        """Return the patch without one of its changes; ``None`` where a later one builds on it."""
        made = [each for each in self.made if each.advice == advice]
        if not all(each.whole for each in made):
            return None
        result: Patch | None = Patch(self.program, tuple(each for each in self.taken if each != advice), self.texts,
                                     tuple(each for each in self.made if each.advice != advice))
        for path in dict.fromkeys(each.path for each in made):
            back = [each.undoing() for each in made if each.path == path]
            result = result._edited(path, dict.fromkeys(back)) if result is not None else None
        return result

    def _edited(self, path: str, edits: Mapping[Edit, Advice | None]) -> Patch | None:
        """Return the patch with edits of a file, each with the change that it is of."""
        old = self.text(path)
        new = edited(old, edits)
        if new is None or not _parses(new):
            return None
        lines = old.splitlines()
        made = list(self.made)
        # From below, as they were made: what stands above has its old lines yet.
        for edit in sorted(edits, key=lambda each: (each.first, each.last), reverse=True):
            made = [each.behind(edit) if each.path == path else each for each in made]
            advice = edits[edit]
            if advice is not None:
                made.append(Made(advice, path, edit.first, edit.lines, tuple(lines[edit.first - 1 : edit.last])))
        texts = {**self.texts, path: new}
        if new == _written(path):
            del texts[path]
        return Patch(self.program, self.taken, texts, tuple(made))

    def _with_settings(self, advices: Sequence[Advice]) -> Patch | None:
        result: Patch | None = self
        for advice in reversed(advices):  # (each stands before what is there already)
            if result is not None and advice.settings:
                result = result._edited(self.program, _settings(result.text(self.program), advice))
        return result


def _settings(text: str, advice: Advice) -> dict[Edit, Advice | None]:
    """Return the edit that sets what a change asks for; none where all is set."""
    fresh = [line for line in advice.settings if line not in text.splitlines()]
    if not fresh:
        return {}
    return {_behind_imports(text, fresh): advice}


def _behind_imports(text: str, settings: Sequence[str]) -> Edit:
    """Return the edit that puts settings behind a program's imports, with that of torch where it is missing."""
    imports = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    known = {alias.asname or alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    line = 1 + max((node.end_lineno or node.lineno for node in imports), default=0)
    return Edit("", line, line - 1, (*(() if "torch" in known else ("import torch",)), *settings))


def with_settings(text: str, settings: Sequence[str]) -> str:
    """Return a program's text with lines put behind its imports."""
    return edited(text, [_behind_imports(text, settings)]) or text


def _written(path: str) -> str:
    return reading.text(path, budgets.CODE)


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
        old, name = _written(path), os.path.relpath(path, folder)
        parts += difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in parts)
