"""The options of a decompilation, and its result: text, and how far each code object in it was proven."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from ..bytecode.code import Code
from ..cfg.graph import Cfg
from ..values import frozen
from .proof.exact import Verdict, line_map
from .structure.search import Search
from .tiers import Tier, Tiers

if TYPE_CHECKING:
    from .passes import Trace
    from .scopes import CodeScope


class Fidelity(str, enum.Enum):
    """Relation of a decompilation to the code it came from, from the best to the worst."""

    EXACT = "exact"  # compiles to the same program
    EQUIVALENT = "equivalent"  # proven the same after the simplifications named in ``note``
    FALLBACK = "fallback"  # a dispatch loop, right by construction
    UNPROVEN = "unproven"  # only with verify=False, or for another version's code


@frozen
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


@frozen
class Decompiled:
    """Source of a code object.

    Attributes:
        text: Python source; one ``def`` (or module text for module code).
        fidelity: that of the part that is furthest from exact.
        note: simplifications made, or why it fell back. Empty when there is nothing to say.
        line_map: ``{byte offset of an original instruction: 1-based line of text}``; empty if it is not proven.
        written: the syntax tree of the text, if available.
        runs: the same with its forms expanded (:mod:`depyf.decompiler.dynamo`); ``None`` where the text has none.
        parts: the code object and all nested ones, each with its own fidelity, outermost first.
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


# --- options -----------------------------------------------------------------------------------------
class Options:
    """Options of one decompilation.

    Args:
        tiers: the output tier of each code object; one that fails is demoted here.
        fallback: writes the body of a scope as a dispatch loop; without it, failing to structure one is an error.
    """

    def __init__(
        self, tiers: Tiers, fallback: Callable[[Code, CodeScope], list[ast.stmt]] | None = None,
    ) -> None:
        self.tiers = tiers
        self.fallback = fallback
        self.future_annotations = False
        #: as what ``compile`` made the code (:func:`~depyf.decompiler.proof.recompile.form_of`)
        self.form = "exec"
        #: called after each pass
        self.trace: Trace | None = None
        #: graphs that replace those of their code in its readable tier, its simplified tiers (made when they are
        #: first needed), and all others
        self.readable: dict[Code, Callable[[], Cfg]] = {}
        self.simplified: dict[Code, Callable[[], Cfg]] = {}
        self.graphs: dict[Code, Cfg] = {}
        #: code objects (resume functions) of which most operations remain at their places in the readable tier
        self.resuming: set[Code] = set()
        #: The attempts to write each code object in each tier. (They are stored, as nested code is written once more
        #: with each attempt at its surroundings.)
        self._searches: dict[tuple[Code, Tier], Search] = {}
        #: code objects that are written without regard to their line table: with it they could not be written, or were
        #: not proven
        self.unarranged: set[Code] = set()
        #: whether expressions were marked for :func:`~depyf.decompiler.emit.text.emit`
        self.has_marks = False
        #: global names that are shown differently
        self.rename: dict[str, str] = {}

    def graph(self, code: Code) -> Cfg | None:
        """Return the graph that replaces the code's own, if one does."""
        tier = self.tiers.of(code)
        if tier > Tier.SIMPLIFIED_SPILLED:
            return self.graphs.get(code)
        make = (self.readable if tier is Tier.READABLE else self.simplified).get(code)
        return make() if make is not None else None

    def has_places(self, code: Code) -> bool:
        """Return whether the operations of a code object are at their places in it, not written anew."""
        return self.graph(code) is None or code in self.resuming and self.tiers.of(code) is Tier.READABLE

    def is_readable(self, code: Code) -> bool:
        """Return whether nothing in the text is for the compiler's sake: what runs is another text (``dynamo``)."""
        return code in self.readable and self.tiers.of(code) <= Tier.SIMPLIFIED_SPILLED

    def spills(self, code: Code) -> bool:
        """Return whether values that no Python expression would keep on the stack get names."""
        return self.tiers.of(code) in (Tier.SIMPLIFIED_SPILLED, Tier.SPILLED)

    def search(self, code: Code) -> Search:
        """Return the search for the form of a code object in its tier."""
        key = code, self.tiers.of(code)
        if key not in self._searches:
            self._searches[key] = Search(len(code.bytecode) // 2)
        return self._searches[key]

    def arrange_no_more(self, code: Code) -> bool:
        """Have a code object written without regard to its line table; return whether it was written with regard."""
        if code in self.unarranged:
            return False
        self.unarranged.add(code)
        self._searches.pop((code, self.tiers.of(code)), None)
        return True
