"""Names of a code object, which can be any string: replaced by names that source can have."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_NEWLOCALS, CO_OPTIMIZED, Code
from ..bytecode.errors import shown


@lru_cache(maxsize=1024)
def is_name(name: str, dotted: bool = False) -> bool:
    """Return whether a name can be written, and is read as itself."""
    if name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
        return name != "__debug__"
    if dotted:
        return name in ("", "*") or "." in name and all(is_name(part) for part in name.split("."))
    return name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name


def is_private(name: str) -> bool:
    """Return whether a class would mangle a name."""
    return name.startswith("__") and not name.endswith("__")


def legal(name: str) -> str:
    """Return a name that can be written for any: ``_lambda_`` for ``<lambda>``, ``__dot_x__`` for ``.x``."""
    if is_name(name):
        return name
    if name[:1] == "." and is_name(name[1:]):
        return f"__dot_{name[1:]}__"
    result = unicodedata.normalize("NFKC", "__" + name[1:] if name[:1] == "." else name)
    result = "".join(c if f"_{c}".isidentifier() else "_" for c in result)
    return result if is_name(result) else f"_{result}"


# --- names that source cannot say --------------------------------------------------------------------
# Names in a code object can be any string: pytest's rewritten asserts keep values in ``@py_assert2``, and read
# ``@pytest_ar``. Locals and cells are visible to the code and what is nested in it only, so another name does as well,
# if it is the same wherever the variable is shared. Globals and attributes are seen from outside: they have another
# name while they are decompiled and proven, and :mod:`.emit.escapes` writes them as ``globals()['@pytest_ar']``. What
# cannot be written so (the names of a class) is reached by a dispatch loop.
#
# A private name (``__x``) inside a class is one that cannot be written there: the compiler would mangle it.
#: Operations that look a name up in a class first, then the variable.
_IN_A_CLASS_FIRST = frozenset({o.LOAD_CLASSDEREF, o.LOAD_FROM_DICT_OR_DEREF})
#: How many changed names a note gives before it only counts.
_NAMES_SHOWN = 8


#: Operations on names that an expression can stand for; the last ones only in a module, whose names are globals.
_ESCAPED = frozenset({o.LOAD_GLOBAL, o.STORE_GLOBAL, o.DELETE_GLOBAL, o.LOAD_ATTR})
_ESCAPED_IN_MODULES = _ESCAPED | {o.LOAD_NAME, o.STORE_NAME, o.DELETE_NAME}
_STORES = frozenset({o.STORE_GLOBAL, o.STORE_NAME})


@dataclass
class Renamed:
    """A tree of code objects whose names can be written: old -> new names of variables, and those escaped."""

    code: Code
    names: dict[str, str] = field(default_factory=dict)
    escaped: dict[str, str] = field(default_factory=dict)

    def of(self, code: Code) -> dict[str, str]:
        """Return the changed names of one code object of the new tree."""
        if not self.names:
            return {}
        variables = {*code.varnames, *code.cellvars, *code.freevars}
        return {old: new for old, new in self.names.items() if new in variables}

    def note(self, code: Code) -> str:
        """Return the note on the changed names of one code object; empty if none is changed."""
        notes = []
        if changed := self.of(code):
            pairs = [f"{shown(old)} is {new}" for old, new in changed.items()]
            if len(pairs) > _NAMES_SHOWN:
                pairs[_NAMES_SHOWN:] = [f"and {len(pairs) - _NAMES_SHOWN} others"]
            notes.append(f"variables whose names cannot be written have others: {', '.join(pairs)}")
        if visible := self.visible(code):
            notes.append(f"what passes or binds {', '.join(map(shown, visible))} by that name does not reach it")
        if not set(self.escaped.values()).isdisjoint(code.names):
            notes.append("globals and attributes whose names cannot be written are in globals()[...], which raises "
                         "KeyError where there is none, and getattr(...)")
        return "; ".join(notes)

    def visible(self, code: Code) -> list[str]:
        """Return changed names that others see: of keyword parameters, and those that a class has first."""
        changed = self.of(code)
        if not changed:
            return []
        asked_for = {*code.varnames[code.posonlyargcount: code.argcount + code.kwonlyargcount],
                     *(op.arg for op in canonicalise(code).ops if op.kind in _IN_A_CLASS_FIRST)}
        return [old for old, new in changed.items() if new in asked_for]


def renamed(code: Code, escapes: bool = True) -> Renamed:
    """Return the tree of a code object with other names for those that source cannot say.

    ``escapes``: also of globals and attributes, where an expression can stand for each use.
    """
    tree = _tree(code) if code.holds_code else [(code, False)]
    wrong: dict[str, None] = {}
    outside: set[str] = set()
    for each, mangles in tree:
        for name in (*each.varnames, *each.cellvars, *each.freevars):
            if (mangles or not is_name(name)) and name not in wrong and not _can_be_a_variable(name, mangles):
                wrong[name] = None
        outside.update(name for name in each.names if not is_name(name) and name not in ("", "*", "__debug__"))
    if outside:
        outside = _can_be_escaped(outside, [each for each, _ in tree]) if escapes else set()
    if not wrong and not outside:
        return Renamed(code)
    taken = {name for each, _ in tree for name in (*each.names, *each.varnames, *each.cellvars, *each.freevars)}
    result = Renamed(code, _new_names(wrong, taken), _new_names(sorted(outside), taken))
    views: dict[Code, Code] = {}
    for each, _ in tree:
        new: dict[str, Any] = {field: tuple(result.names.get(name, name) for name in getattr(each, field))
                               for field in ("varnames", "cellvars", "freevars")}
        new["names"] = tuple(result.escaped.get(name, name) for name in each.names)
        new["consts"] = tuple(views[c] if isinstance(c, Code) else c for c in each.consts)
        same = all(a is b for a, b in zip(new["consts"], each.consts)) and all(
            values == getattr(each, field) for field, values in new.items() if field != "consts")
        views[each] = each if same else replace(each, **new)
    result.code = views[code]
    return result


def _new_names(wrong: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Return a name for each of these, and take it."""
    names: dict[str, str] = {}
    for name in wrong:
        new = "_" + legal(name).strip("_")
        while new in taken or not is_name(new):
            new += "_"
        names[name] = new
        taken.add(new)
    return names


def _can_be_escaped(names: set[str], tree: Sequence[Code]) -> set[str]:
    """Return those names that an expression can stand for wherever they are used."""
    result = names - {code.name for code in tree}
    for code in reversed(tree):  # (Most such names are of modules that the outermost code, the last, imports.)
        if not result:
            break
        allowed = _ESCAPED_IN_MODULES if code.name == "<module>" else _ESCAPED
        if not {"globals", "getattr"}.isdisjoint((*code.varnames, *code.cellvars, *code.freevars)):
            return set()
        for op in canonicalise(code).ops:
            if op.kind in _STORES and op.arg in ("globals", "getattr"):
                return set()
            if op.kind not in allowed and op.kind is not o.CONST:
                result.difference_update(op.arg if isinstance(op.arg, tuple) else (op.arg,))
    return result


def _can_be_a_variable(name: str, mangles: bool) -> bool:
    """Return whether a variable, in a class if ``mangles``, can be written, or is one of the compiler's."""
    return not (mangles and is_private(name)) and (
        is_name(name) or name[:1] == "." and (name[1:].isdecimal() or is_name(name[1:])))


def _tree(code: Code) -> list[tuple[Code, bool]]:
    """Return every code object, nested ones before the outer ones, and whether it is in a class."""
    done: dict[tuple[Code, bool], None] = {}
    pending = [(code, False)]
    while pending:
        current, mangles = pending[-1]
        inside = mangles
        if not current.flags & (CO_OPTIMIZED | CO_NEWLOCALS) and current.name != "<module>":
            inside = bool(current.name.strip("_"))
        inner = [(c, inside) for c in current.consts if type(c) is Code and (c, inside) not in done]
        if inner:
            pending += inner
        else:
            done[pending.pop()] = None
    return list(done)
