"""The texts that changes make of a program's files. A change names lines of the texts that it was proposed for."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .. import budgets, reading
from ..advice import Advice
from ..advice.model import Edit, edited
from ..advice.source import is_own


@dataclass(frozen=True)
class Patch:
    """Changes of a program.

    Attributes:
        program: its file; settings go there.
        taken: the changes, in the order in which they were made.
        texts: the files that they change, by real path, as they would be.
    """

    program: str
    taken: tuple[Advice, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str:
        """Return the text of a file as it would be."""
        return self.texts[path] if path in self.texts else _written(path)

    def with_advice(self, advices: Iterable[Advice]) -> Patch | None:
        """Return the patch with further changes; ``None`` where they cannot be made."""
        advices = tuple(dict.fromkeys(advices))
        by_file: dict[str, list[Edit]] = {}
        for edit in [edit for advice in advices for edit in advice.edits]:
            by_file.setdefault(os.path.realpath(edit.filename), []).append(edit)
        texts = dict(self.texts)
        for path, edits in by_file.items():
            new = edited(self.text(path), edits)
            if new is None or not is_own(path):
                return None
            texts[path] = new
        settings = [line for advice in advices for line in advice.settings]
        if settings:
            texts[self.program] = with_settings(texts.get(self.program) or _written(self.program), settings)
        return Patch(self.program, (*self.taken, *advices), texts) if all(map(_parses, texts.values())) else None


def with_settings(text: str, settings: Sequence[str]) -> str:
    """Return a program's text with lines put after its imports, with that of torch where it is missing."""
    fresh = [line for line in dict.fromkeys(settings) if line not in text.splitlines()]
    imports = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    known = {alias.asname or alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    line = 1 + max((node.end_lineno or node.lineno for node in imports), default=0)
    lines = (*(() if "torch" in known or not fresh else ("import torch",)), *fresh)
    return edited(text, [Edit("", line, line - 1, lines)]) or text


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
