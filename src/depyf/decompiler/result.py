"""The output tiers of code objects, the options of a decompilation, and its result.

The tiers are the forms in which a code object can be written, from the most readable to the one that never fails. The
result is a text, and how far each code object in it was proven.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..cfg.graph import Cfg
from ..values import frozen
from .annotations import HIDDEN, deferred
from .proof.exact import Verdict, line_map
from .structure.search import Search

if TYPE_CHECKING:
    from .passes import Trace
    from .scopes import CodeScope


class Tier(enum.IntEnum):
    """Output tiers, tried in this order; each is given up when it cannot be written, compiled or proven."""

    READABLE = 0  # torch.compile's code in the user's words (``dynamo``); only the outermost, only with facts
    SIMPLIFIED = 1  # torch.compile's list juggling removed; only the outermost, only on request
    STRUCTURED = 2  # as a person would have written it
    SPILLED = 3  # with names for values that no expression would keep on the stack
    DISPATCH = 4  # a loop over block numbers


#: Intrinsics of two values, the second of which is a function that is called later.
_LAZY = frozenset({"typevar_with_bound", "typevar_with_constraints", "set_typeparam_default"})
#: Names of code that is part of an expression: it has no tier of its own.
_EXPRESSIONS = frozenset({"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def lazy(code: Code) -> list[Code]:
    """Return the functions in a code object that are a bound, a default or the value of a ``type`` statement."""
    if code.version < (3, 12) or not code.holds_code:
        return []
    ops = canonicalise(code).ops
    result = []
    for at, op in enumerate(ops):
        if op.kind is not o.MAKE_FUNCTION or ops[at - 1].kind is not o.CONST:
            continue
        after = ops[at + 1 : at + 3]
        used = after and after[0].kind is o.INTRINSIC_2 and after[0].arg in _LAZY
        alias = len(after) == 2 and after[0].kind is o.BUILD_TUPLE and (
            after[1].kind is o.INTRINSIC_1 and after[1].arg == "typealias")
        if used or alias:
            result.append(ops[at - 1].arg)
    return result


def codes_in(code: Code) -> list[Code]:
    """Return the code objects that the code loads (up to 3.10, with their qualified names), in its order."""
    if not code.holds_code:
        return []
    return list(dict.fromkeys(op.arg for op in canonicalise(code).ops
                              if op.kind is o.CONST and isinstance(op.arg, Code)))


def inside(code: Code) -> Iterator[Code]:
    """Yield the code objects nested in a code object, at any depth, each before those nested in it."""
    for inner in codes_in(code):
        yield inner
        yield from inside(inner)


class Tiers:
    """The tier that each code object of a tree is written in, with the reasons against the earlier ones.

    Without a proof no values are named: that moves them about, and a loop over block numbers is right without one.
    """

    def __init__(self, root: Code, first: Tier = Tier.STRUCTURED, proven: bool = True) -> None:
        self.root = root
        self.proven = proven
        self.names: dict[Code, str] = {}
        self.parents: dict[Code, Code] = {}
        self.reasons: dict[Code, list[str]] = {}
        #: code that is part of the surrounding text: expressions, annotations, type parameters
        self.parts: set[Code] = set()
        self._tier = {root: first}
        pending = [root]
        while pending:
            current = pending.pop()
            self.names[current] = current.qualname
            called_later = lazy(current)
            for inner in reversed(codes_in(current)):
                self.parents[inner] = current
                if (inner.name in _EXPRESSIONS or inner.name.startswith(HIDDEN) or inner in called_later
                        or deferred(inner) is not None):
                    self.parts.add(inner)
                pending.append(inner)

    def of(self, code: Code) -> Tier:
        """Return the tier of a code object."""
        return self._tier.get(code, Tier.STRUCTURED)

    def demote(self, code: Code, reason: str) -> bool:
        """Give the code object its next tier; ``False`` if there is none."""
        tier = self.of(code)
        self.reasons.setdefault(code, []).append(reason)
        if tier is Tier.DISPATCH:
            return False
        tier = Tier(tier + 1)
        if not self.proven and tier is Tier.SPILLED:
            tier = Tier.DISPATCH
        self._tier[code] = tier
        return True

    def around(self, code: Code) -> Iterator[Code]:
        """Yield the code objects that one is nested in."""
        while code is not self.root:
            code = self.parents[code]
            yield code

    def owner(self, code: Code) -> Code:
        """Return the code object whose tier decides how this one is written: itself, or one around."""
        while code in self.parts and code is not self.root:
            parent = self.parents.get(code, self.root)
            if self.of(parent) is Tier.DISPATCH:
                break  # there it is a function of its own
            code = parent
        return code

    def why(self, code: Code) -> str:
        """Return the reasons against the earlier tiers of a code object, in one line."""
        return "; ".join(dict.fromkeys(self.reasons.get(code, ())))


# --- the result -------------------------------------------------------------------------------------
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
    """Options of one decompilation; ``fallback`` writes the body of a scope as a dispatch loop."""

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
        #: global names that are shown differently
        self.rename: dict[str, str] = {}

    def graph(self, code: Code) -> Cfg | None:
        """Return the graph that replaces the code's own, if one does."""
        tier = self.tiers.of(code)
        if tier > Tier.SIMPLIFIED:
            return self.graphs.get(code)
        make = (self.readable if tier is Tier.READABLE else self.simplified).get(code)
        return make() if make is not None else None

    def has_places(self, code: Code) -> bool:
        """Return whether the operations of a code object are at their places in it, not written anew."""
        return self.graph(code) is None or code in self.resuming and self.tiers.of(code) is Tier.READABLE

    def is_readable(self, code: Code) -> bool:
        """Return whether nothing in the text is for the compiler's sake: what runs is another text (``dynamo``)."""
        return code in self.readable and self.tiers.of(code) <= Tier.SIMPLIFIED

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
