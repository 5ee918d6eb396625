"""The writer that collects the statements which operations become."""

from __future__ import annotations

from typing import Any

from ...bytecode.code import Code
from ...bytecode.errors import shown
from ..errors import FALLBACK, CannotDecompile
from ..names import is_name, is_private, legal, of_the_compiler

# Known contents of a slot (the tag of its value).
PLAIN = ""
LASTI = "lasti"
MAYBE_UNBOUND = "maybe unbound"  # from LOAD_FAST_AND_CLEAR
CELL = "cell "  # + name: a cell, only good for building a closure
CELLS = "cells"  # a tuple of the cells that the nested function names anyway
BOUND = "bound"  # a type parameter with a bound
CONSTRAINED = "constrained"  # a type parameter with constraints
CODE = "code "  # + index into Writer.nested


class Writer:
    """Collects the statements of one segment.

    Attributes:
        prefix: the beginning of all names that the loop adds.
        lines: ``(indentation, text)`` so far.
        tags: one tag per stack slot; its length is the depth of the stack.
        constants: values that the text names ``<prefix>constant_<index>``.
        nested: code objects whose definition is ``<prefix>define_<index>`` in the text.
        namespace: names are those of a module or class body, and its text is run by a function.
        mangled: it is in a class, where private names are read as others.
        names: the dictionary of the names of a module or class body, or of those that no variable can have. (Apart from
            these only a class body that was given alone has any, which is written as a function.)
    """

    def __init__(self, prefix: str, code: Code, namespace: bool = False, mangled: bool = False) -> None:
        self.prefix = prefix
        self.py = f"{prefix}py."
        self.namespace = namespace
        self.mangled = mangled
        self.names = f"{prefix}names"
        self.code = code
        self.lines: list[tuple[int, str]] = []
        self.tags: list[str] = []
        self.constants: list[Any] = []
        self.nested: list[tuple[str, Code]] = []
        self.fast = {*code.varnames, *code.cellvars, *code.freevars}

    def write(self, text: str) -> None:
        """Append a statement of one or more lines."""
        self.lines += [(0, line) for line in text.split("\n")]

    def slot(self, place: int) -> str:
        """Return the variable of the ``place``-th value from the top (1 = top)."""
        if place > len(self.tags):
            raise CannotDecompile(FALLBACK, "the stack is too short")
        return f"{self.prefix}s{len(self.tags) - place}"

    def slots(self, count: int) -> list[str]:
        """Return the variables of the ``count`` values on top, the lowest first."""
        return [self.slot(place) for place in range(count, 0, -1)]

    def new(self, expression: str, tag: str = PLAIN) -> None:
        """Push a value."""
        self.tags.append(tag)
        self.write(f"{self.slot(1)} = {expression}")

    def drop(self, count: int) -> None:
        """Forget the ``count`` values on top."""
        if count:
            del self.tags[-count:]

    def result(self, count: int, expression: str, tag: str = PLAIN) -> None:
        """Replace the ``count`` top values by one."""
        self.drop(count)
        self.new(expression, tag)

    def constant(self, value: Any) -> str:
        """Return the text of a constant, with placeholders for the texts and numbers in it."""
        if type(value) is tuple:
            return f"({''.join(self.constant(item) + ', ' for item in value)})"
        if type(value) is frozenset:
            # In an order that does not differ from process to process; and the program may have its own ``frozenset``.
            return f"{self.py}frozenset({self.constant((*sorted(value, key=repr),))})"
        if type(value) is slice:
            return f"{self.py}slice(*{self.constant((value.start, value.stop, value.step))})"
        self.constants.append(value)
        return f"{self.prefix}constant_{len(self.constants) - 1}"

    def name(self, name: str) -> str:
        """Return a variable of the program, under its own name unless it is of the compiler (``.type_params``)."""
        if not is_name(name) and not of_the_compiler(name):
            raise CannotDecompile(FALLBACK, f"{shown(name)} is not the name of a variable")
        return legal(name)

    def can_say(self, name: str) -> bool:
        """Return whether a name can be written and means itself here: as a global, an attribute, a keyword."""
        return is_name(name) and not (self.mangled and is_private(name))

    def mapping(self) -> str:
        """Return the mapping that contains the program's names."""
        return self.names if self.namespace else f"{self.py}locals()"
