"""The writer that collects the statements which operations become, and the tables of rules that write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...bytecode.code import Code
from ...bytecode.errors import shown
from ...bytecode.operations import Op
from ..errors import FALLBACK, CannotDecompile
from ..names import is_name, is_private, legal, of_the_compiler
from .helpers import NEEDS

# What a slot is known to hold (the tag of its value).
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
        prefix: what all names of our own start with.
        lines: ``(indentation, text)`` so far.
        tags: one tag per stack slot; its length is the depth of the stack.
        used: names of the helpers the text calls.
        constants: values that stand in the text as ``<prefix>constant_<index>``.
        nested: code objects whose definition stands in the text as ``<prefix>define_<index>``.
        namespace: names are those of a module or class body, and its text is run by a function.
        mangled: it stands in a class, where private names are read as others.
        has_names: the text keeps names in a dictionary (:meth:`names_aside`).
    """

    def __init__(self, prefix: str, code: Code, namespace: bool = False, mangled: bool = False) -> None:
        self.prefix = prefix
        self.namespace = namespace
        self.mangled = mangled
        self.has_names = namespace
        self.code = code
        self.lines: list[tuple[int, str]] = []
        self.tags: list[str] = []
        self.used: set[str] = set()
        self.constants: list[Any] = []
        self.nested: list[tuple[str, Code]] = []
        self.indent = 0
        self.fast = set(code.varnames) | set(code.cellvars) | set(code.freevars)

    # --- writing ---
    def write(self, text: str) -> None:
        """Append a line."""
        self.lines.append((self.indent, text))

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
        self.write(f"{self.prefix}s{len(self.tags) - 1} = {expression}")

    def drop(self, count: int) -> None:
        """Forget the ``count`` values on top."""
        if count:
            del self.tags[-count:]

    def result(self, count: int, expression: str, tag: str = PLAIN) -> None:
        """Replace the ``count`` top values by one."""
        self.drop(count)
        self.new(expression, tag)

    def py(self, name: str) -> str:
        """Return a builtin, whatever the program calls its own names."""
        return f"{self.prefix}py.{name}"

    def helper(self, name: str) -> str:
        """Return a function of :mod:`.helpers`, which the text brings along."""
        self.used.update((name, *NEEDS.get(name, ())))
        return self.prefix + name

    def constant(self, value: Any) -> str:
        """Return the text of a constant, or a placeholder for one that text cannot say."""
        if type(value) is int and value.bit_length() > 2000:
            return hex(value)  # base 10 takes quadratic time, and Python refuses it above 4300 digits
        if type(value) in (int, str, bytes, bool, type(None)) and value != float("inf"):
            return repr(value)
        if type(value) is float and math.isfinite(value):
            return repr(value)
        if type(value) is frozenset:
            # In an order that does not differ from process to process; and the program may have its own ``frozenset``.
            items = ", ".join(self.constant(item) for item in sorted(value, key=repr))
            return f"{self.py('frozenset')}({f'{{{items}}}' if items else ''})"
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
        """Return the mapping that holds the program's names."""
        return f"{self.prefix}names" if self.namespace else f"{self.py('locals')}()"


#: What writes one operation.
Rule = Callable[[Writer, Op], None]
