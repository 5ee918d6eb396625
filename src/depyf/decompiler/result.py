"""The result of a decompilation: text, and how far each code object in it was proven."""

from __future__ import annotations

import ast
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..bytecode.code import Code
from .proof.exact import Verdict, line_map


class Fidelity(str, enum.Enum):
    """Relation of a decompilation to the code it came from, from the best to the worst."""

    EXACT = "exact"  # compiles to the same program
    EQUIVALENT = "equivalent"  # proven the same after the simplifications named in ``note``
    FALLBACK = "fallback"  # a dispatch loop, right by construction
    UNPROVEN = "unproven"  # only with verify=False, or for another version's code


@dataclass(frozen=True)
class Part:
    """One code object of a decompilation.

    Attributes:
        name: qualified name (``Class.method``, ``f.<locals>.<lambda>``).
        line: its first line.
        units: size of its bytecode, in code units of two bytes.
        fidelity: how its text relates to it.
        reason: why it is not exact; empty if it is.
        verdict: the proof, if there is one.
        recompiled: what the text compiles to.
        code: the code object; ``None`` for a part without a proof.
    """

    name: str
    line: int
    units: int
    fidelity: Fidelity
    reason: str
    verdict: Verdict | None = field(default=None, repr=False)
    recompiled: Code | None = field(default=None, repr=False)
    code: Code | None = field(default=None, repr=False)

    @property
    def line_map(self) -> dict[int, int]:
        """``{byte offset of an original instruction: 1-based line of the text}``; empty if it is not proven."""
        if self.verdict is None or self.recompiled is None or self.recompiled.origin is None:
            return {}
        return line_map(self.verdict, self.recompiled.origin)


@dataclass(frozen=True)
class Decompiled:
    """Source of a code object.

    Attributes:
        text: Python source; one ``def`` (or module text for module code).
        fidelity: that of the part that is furthest from exact.
        note: simplifications made, or why it fell back. Empty when there is nothing to say.
        line_map: ``{byte offset of an original instruction: 1-based line of text}``; empty if it is not proven.
        written: the syntax tree of the text, where it is at hand.
        runs: the same with its forms written out (:mod:`depyf.decompiler.dynamo`); ``None`` where the text has none.
        parts: the code object and all that it holds, each with its own fidelity, outermost first.
    """

    text: str
    fidelity: Fidelity
    note: str
    written: ast.Module | None = None
    parts: tuple[Part, ...] = ()
    runs: ast.Module | None = None

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the text."""
        return ast.parse(self.text) if self.written is None else self.written

    @property
    def line_map(self) -> Mapping[int, int]:
        """``{offset of an instruction: line of the text}`` for the outermost code object."""
        return self.parts[0].line_map if self.parts else {}
