"""Variables that source cannot name, under names that it can.

Names in a code object can be any string: pytest's rewritten asserts keep values in ``@py_assert2``. Locals and cells
are seen by the code and what it holds alone, so another name does as well, if it is the same wherever the variable is
shared. What is seen from outside keeps its name: globals, attributes and names of modules and classes are reached by
``globals()``, ``getattr`` and the like where source cannot say them (a dispatch loop does).

A private name (``__x``) inside a class is one that cannot be written there: the compiler would mangle it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_NEWLOCALS, CO_OPTIMIZED, Code
from ..bytecode.errors import shown
from .names import is_name, is_private, legal, of_the_compiler

#: Operations that look a name up in a class first, then the variable.
_IN_A_CLASS_FIRST = frozenset({o.LOAD_CLASSDEREF, o.LOAD_FROM_DICT_OR_DEREF})
#: How many changed names a note gives before it only counts.
_NAMES_SHOWN = 8


@dataclass
class Renamed:
    """A tree of code objects, of which every variable can be written, and ``{old name: new name}``."""

    code: Code
    names: dict[str, str] = field(default_factory=dict)

    def of(self, code: Code) -> dict[str, str]:
        """Return the changed names of one code object of the new tree."""
        if not self.names:
            return {}
        variables = {*code.varnames, *code.cellvars, *code.freevars}
        return {old: new for old, new in self.names.items() if new in variables}

    def note(self, code: Code) -> str:
        """Return the note on the changed names of one code object; empty if none is changed."""
        changed = self.of(code)
        if not changed:
            return ""
        pairs = [f"{shown(old)} is {new}" for old, new in changed.items()]
        if len(pairs) > _NAMES_SHOWN:
            pairs[_NAMES_SHOWN:] = [f"and {len(pairs) - _NAMES_SHOWN} others"]
        note = f"variables whose names cannot be written have others: {', '.join(pairs)}"
        if visible := self.visible(code):
            note += f"; what passes or binds {', '.join(map(shown, visible))} by that name does not reach it"
        return note

    def visible(self, code: Code) -> list[str]:
        """Return changed names that are asked for from outside.

        These are of parameters that may be passed by keyword, and of variables that a class looks for among its own
        names first.
        """
        changed = self.of(code)
        if not changed:
            return []
        asked_for = _asked_for(code)
        return [old for old, new in changed.items() if new in asked_for]


def renamed(code: Code) -> Renamed:
    """Return the tree of a code object with other names for variables that source cannot name."""
    tree = _tree(code) if code.holds_code else [(code, False)]
    wrong: dict[str, None] = {}
    for each, mangles in tree:
        for name in (*each.varnames, *each.cellvars, *each.freevars):
            if (mangles or not is_name(name)) and name not in wrong and not can_be_a_variable(name, mangles):
                wrong[name] = None
    if not wrong:
        return Renamed(code)
    taken = {name for each, _ in tree for name in (*each.names, *each.varnames, *each.cellvars, *each.freevars)}
    names: dict[str, str] = {}
    for name in wrong:
        new = "_" + legal(name).strip("_")
        while new in taken or not is_name(new):
            new += "_"
        names[name] = new
        taken.add(new)
    views: dict[Code, Code] = {}
    for each, _ in tree:
        _rename(each, names, views)
    return Renamed(views[code], names)


def can_be_a_variable(name: str, mangles: bool = False) -> bool:
    """Return whether a variable can be written under its name, or is one of the compiler's (``.0``).

    ``mangles``: it is in a class. (The compiler's get names from :func:`legal`.)
    """
    return not (mangles and is_private(name)) and (is_name(name) or of_the_compiler(name))


def _tree(code: Code) -> list[tuple[Code, bool]]:
    """Return every code object, what is held before what holds it, and whether it stands in a class."""
    done: dict[tuple[Code, bool], None] = {}
    pending = [(code, False)]
    while pending:
        current, mangles = pending[-1]
        inside = mangles
        if not current.flags & (CO_OPTIMIZED | CO_NEWLOCALS) and current.name != "<module>":
            inside = bool(current.name.strip("_"))
        held = [(c, inside) for c in current.consts if type(c) is Code and (c, inside) not in done]
        if held:
            pending += held
        else:
            done[pending.pop()] = None
    return list(done)


def _rename(code: Code, names: dict[str, str], views: dict[Code, Code]) -> None:
    def changed(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in given)

    consts: tuple[Any, ...] = tuple(views[c] if isinstance(c, Code) else c for c in code.consts)
    new = replace(code, varnames=changed(code.varnames), cellvars=changed(code.cellvars),
                  freevars=changed(code.freevars), consts=consts)
    same = all(getattr(new, field) == getattr(code, field) for field in ("varnames", "cellvars", "freevars")) \
        and all(a is b for a, b in zip(consts, code.consts))
    views[code] = code if same else new


def _asked_for(code: Code) -> set[str]:
    by_keyword = code.varnames[code.posonlyargcount: code.argcount + code.kwonlyargcount]
    return {*by_keyword, *(op.arg for op in canonicalise(code).ops if op.kind in _IN_A_CLASS_FIRST)}
