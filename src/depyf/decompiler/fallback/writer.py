"""The writer that collects the statements which operations become."""

from __future__ import annotations

import math
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
        has_names: the text has a dictionary of names that no variable can have.
    """

    def __init__(self, prefix: str, code: Code, namespace: bool = False, mangled: bool = False) -> None:
        self.prefix = prefix
        self.py = f"{prefix}py."
        self.namespace = namespace
        self.mangled = mangled
        self.has_names = namespace
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
        """Return the text of a constant, or a placeholder for one that text cannot say."""
        if type(value) is int and value.bit_length() > 2000:
            return hex(value)  # base 10 takes quadratic time, and Python refuses it above 4300 digits
        if type(value) in (int, str, bytes, bool, type(None)) or type(value) is float and math.isfinite(value):
            return repr(value)
        if type(value) is frozenset:
            # In an order that does not differ from process to process; and the program may have its own ``frozenset``.
            items = ", ".join(self.constant(item) for item in sorted(value, key=repr))
            return f"{self.py}frozenset({f'{{{items}}}' if items else ''})"
        if type(value) is tuple and any(type(item) in (tuple, frozenset) for item in value):
            return f"({', '.join(map(self.constant, value))},)"
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

    def names_aside(self) -> str:
        """Return the dictionary of names that no variable can have.

        (Outside of modules and classes only a class body that was given alone has any, which is written as a function.)
        """
        self.has_names = True
        return f"{self.prefix}names"

    def mapping(self) -> str:
        """Return the mapping that contains the program's names."""
        return f"{self.prefix}names" if self.namespace else f"{self.py}locals()"
