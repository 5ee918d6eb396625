"""The forms in which a code object can be written, from the most readable to the one that never fails."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Iterator

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from .annotations import deferred
from .generics import HIDDEN, lazy


class Form(enum.IntEnum):
    """Tried in this order; each is given up when it cannot be written, compiled or proven."""

    READABLE = 0  # torch.compile's code in the user's words (``dynamo``); only the outermost, only with facts
    SIMPLIFIED = 1  # torch.compile's list juggling removed; only the outermost, only when asked for
    SIMPLIFIED_SPILLED = 2  # the same, with names for values that no expression would keep on the stack
    STRUCTURED = 3  # as a person would have written it
    SPILLED = 4  # with such names
    DISPATCH = 5  # a loop over block numbers


#: Forms that move values about: they are not tried without a proof.
_WITH_NAMES = (Form.SIMPLIFIED_SPILLED, Form.SPILLED)
#: Names of code that is part of an expression: it has no form of its own.
_EXPRESSIONS = frozenset({"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def held_by(code: Code) -> list[Code]:
    """Return the code objects that the code loads, in its order.

    Not ``consts``: before 3.11 the qualified name of a function is known where it is made only.
    """
    return list(dict.fromkeys(op.arg for op in canonicalise(code).ops
                              if op.kind is o.CONST and isinstance(op.arg, Code)))


def inside(code: Code) -> Iterator[Code]:
    """Code objects that a code object holds, at any depth, each before what it holds itself."""
    for held in held_by(code):
        yield held
        yield from inside(held)


class Forms:
    """The form that each code object of a tree is written in, with the reasons against the earlier ones.

    Args:
        root: the outermost code object.
        first: its first form.
        proven: the result will be proven. Without a proof no forms with named values are tried: they move
            values about, and a loop over block numbers is right without one.
    """

    def __init__(self, root: Code, first: Form = Form.STRUCTURED, proven: bool = True) -> None:
        self.root = root
        self.proven = proven
        self.names: dict[Code, str] = {}
        self.parents: dict[Code, Code] = {}
        self.reasons: dict[Code, list[str]] = {}
        #: code that is part of what is written around it: expressions, annotations, type parameters
        self.parts: set[Code] = set()
        self._form = {root: first}
        self._families: dict[Code, list[Code]] = {}
        pending = [root]
        while pending:
            here = pending.pop()
            self.names[here] = here.qualname
            called_later = lazy(here)
            for held in reversed(held_by(here)):
                self.parents[held] = here
                if (held.name in _EXPRESSIONS or held.name.startswith(HIDDEN) or held in called_later
                        or deferred(held) is not None):
                    self.parts.add(held)
                pending.append(held)

    def of(self, code: Code) -> Form:
        """Return the form of a code object."""
        return self._form.get(code, Form.STRUCTURED)

    def give_up(self, code: Code, reason: str) -> bool:
        """Give the code object its next form; ``False`` if there is none."""
        form = self.of(code)
        self.reasons.setdefault(code, []).append(reason)
        if form is Form.DISPATCH:
            return False
        form = Form(form + 1)
        if not self.proven and form in _WITH_NAMES:
            form = Form(form + 1)
        self._form[code] = form
        return True

    def steps(self) -> list[Code]:
        """Return the code objects that can still be given up, outermost first: each once for each form left to it.

        (Where all before it are given up, each is its own holder.)
        """
        return [code for code in self.names for form in Form
                if form > self.of(code) and (self.proven or form not in _WITH_NAMES)]

    @contextlib.contextmanager
    def tried(self, steps: Iterable[Code]) -> Iterator[None]:
        """Inside of it these are given up; afterwards all is as it was."""
        before = self._form.copy(), {code: list(reasons) for code, reasons in self.reasons.items()}
        try:
            for code in steps:
                self.give_up(code, "")
            yield
        finally:
            self._form, self.reasons = before

    def around_and_inside(self, code: Code) -> tuple[Form, ...]:
        """Return the forms that decide how a code object is written."""
        if not self._families:
            for each in self.names:
                here = each
                self._families[each] = [each]
                while here is not self.root:
                    here = self.parents[here]
                    self._families[each].append(here)
                    self._families[here].append(each)
        return tuple(map(self.of, self._families[code]))

    def holder(self, code: Code) -> Code:
        """Return the code object whose form decides how this one is written.

        That is the one around a lambda, comprehension, annotation or type parameter.
        """
        while code in self.parts and code is not self.root:
            parent = self.parents.get(code, self.root)
            if self.of(parent) is Form.DISPATCH:
                break  # there it is a function of its own
            code = parent
        return code

    def why(self, code: Code) -> str:
        """Return the reasons against the earlier forms of a code object, in one line."""
        return "; ".join(dict.fromkeys(self.reasons.get(code, ())))
