"""Output tiers: the forms in which a code object can be written, from the most readable to the one that never fails."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from .annotations import deferred
from .generics import HIDDEN, lazy


class Tier(enum.IntEnum):
    """Output tiers, tried in this order; each is given up when it cannot be written, compiled or proven."""

    READABLE = 0  # torch.compile's code in the user's words (``dynamo``); only the outermost, only with facts
    SIMPLIFIED = 1  # torch.compile's list juggling removed; only the outermost, only on request
    SIMPLIFIED_SPILLED = 2  # the same, with names for values that no expression would keep on the stack
    STRUCTURED = 3  # as a person would have written it
    SPILLED = 4  # with such names
    DISPATCH = 5  # a loop over block numbers


#: The usual tier. (The attribute of an enumeration is found by a call, up to 3.11, and this is read often.)
_STRUCTURED: Tier = Tier.STRUCTURED
#: Tiers that move values about: they are not tried without a proof.
_WITH_NAMES = (Tier.SIMPLIFIED_SPILLED, Tier.SPILLED)
#: Names of code that is part of an expression: it has no tier of its own.
_EXPRESSIONS = frozenset({"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def codes_in(code: Code) -> list[Code]:
    """Return the code objects that the code loads, in its order.

    Not ``consts``: before 3.11 the qualified name of a function is known where it is made only.
    """
    if not code.holds_code:
        return []
    return list(dict.fromkeys(op.arg for op in canonicalise(code).ops
                              if op.kind is o.CONST and isinstance(op.arg, Code)))


def inside(code: Code) -> Iterator[Code]:
    """Yield the code objects nested in a code object, at any depth, each before those nested in it."""
    for held in codes_in(code):
        yield held
        yield from inside(held)


class Tiers:
    """The tier that each code object of a tree is written in, with the reasons against the earlier ones.

    Args:
        root: the outermost code object.
        first: its first tier.
        proven: the result will be proven. Without a proof no tiers with named values are tried: they move
            values about, and a loop over block numbers is right without one.
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
        self._families: dict[Code, list[Code]] = {}
        pending = [root]
        while pending:
            current = pending.pop()
            self.names[current] = current.qualname
            called_later = lazy(current)
            for held in reversed(codes_in(current)):
                self.parents[held] = current
                if (held.name in _EXPRESSIONS or held.name.startswith(HIDDEN) or held in called_later
                        or deferred(held) is not None):
                    self.parts.add(held)
                pending.append(held)

    def of(self, code: Code) -> Tier:
        """Return the tier of a code object."""
        return self._tier.get(code, _STRUCTURED)

    def demote(self, code: Code, reason: str) -> bool:
        """Give the code object its next tier; ``False`` if there is none."""
        tier = self.of(code)
        self.reasons.setdefault(code, []).append(reason)
        if tier is Tier.DISPATCH:
            return False
        tier = Tier(tier + 1)
        if not self.proven and tier in _WITH_NAMES:
            tier = Tier(tier + 1)
        self._tier[code] = tier
        return True

    @contextlib.contextmanager
    def as_loop(self, code: Code) -> Iterator[None]:
        """Give a code object its last tier while the context lasts."""
        before = self._tier.copy(), {code: list(reasons) for code, reasons in self.reasons.items()}
        self._tier[code] = Tier.DISPATCH
        try:
            yield
        finally:
            self._tier, self.reasons = before

    def around_and_inside(self, code: Code) -> tuple[Tier, ...]:
        """Return the tiers that decide how a code object is written."""
        if not self._families:
            self._families = {each: [each] for each in self.names}
            for each in self.names:
                current = each
                while current is not self.root:
                    current = self.parents[current]
                    self._families[each].append(current)
                    self._families[current].append(each)
        return tuple(map(self.of, self._families[code]))

    def owner(self, code: Code) -> Code:
        """Return the code object whose tier decides how this one is written.

        That is the one around a lambda, comprehension, annotation or type parameter.
        """
        while code in self.parts and code is not self.root:
            parent = self.parents.get(code, self.root)
            if self.of(parent) is Tier.DISPATCH:
                break  # there it is a function of its own
            code = parent
        return code

    def why(self, code: Code) -> str:
        """Return the reasons against the earlier tiers of a code object, in one line."""
        return "; ".join(dict.fromkeys(self.reasons.get(code, ())))
