"""Printed trees of guards, with what torch tests and does not print."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from .recompiled_frame import code_in_words, held_value

# --- objects that are compared by their ids ----------------------------------------------------------
# An id says nothing to a reader. The name of a function or a code object is added; a member of an enumeration has its
# name in place of the id::
#
#     ___check_obj_id(L['f'].__code__, 140084081999072), type=<class 'code'>                        torch
#     ___check_obj_id(L['f'].__code__, 140084081999072), type=<class 'code'>, of rhs at app.py:5    in records
#
#     ___check_obj_id(L['mode'], 140194463542736), type=<class 'app.Mode'>                          torch
#     L['mode'] is <Mode.FAST: ...>                                                                 in records
_GUARD = re.compile(r"___check_obj_id\((?P<source>.*?), (?P<id>\d+)\), type=<class '(?P<type>[\w.]+)'>")
_FUNCTIONS = frozenset({"code", "function", "builtin_function_or_method"})
#: The sources of functions that are named: what is passed, and the program's globals. (Functions of torch, which
#: each graph has dozens of guards on, are reached by globals of Dynamo's, and seldom others.)
_NAMED = ("L['", "G['")
_OF_DYNAMO = "__"


def with_objects(text: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return a printed tree of guards with the names of objects that are compared by their ids.

    ``values`` and ``namespace`` are local variables and globals of the frame that is being compiled.
    """
    members: dict[str, dict[int, str]] = {}

    def named(match: re.Match[str]) -> str:
        source, number, kind = match["source"], int(match["id"]), match["type"]
        if kind in _FUNCTIONS:
            if not source.startswith(_NAMED) or source.startswith(_OF_DYNAMO, len(_NAMED[0])):
                return match[0]
            value = held_value(source, values, namespace)
            name = _name(value) if id(value) == number else ""
            return f"{match[0]}, of {name}" if name and name.isprintable() and "#" not in name else match[0]
        if kind not in members:
            members[kind] = _members(kind)
        name = members[kind].get(number, "")
        return f"{source} is <{kind.rpartition('.')[2]}.{name}: ...>" if name else match[0]

    return _GUARD.sub(named, text)


def _name(value: Any) -> str:
    if type(value) is FunctionType:
        value = value.__code__
    if type(value) is CodeType:
        return code_in_words(value)
    if type(value) is not BuiltinFunctionType:
        return ""
    # (Where it is a method, its module has no such name.)
    home = sys.modules.get(value.__module__) if type(value.__module__) is str else None
    of_module = type(home) is ModuleType and vars(home).get(value.__name__) is value
    return f"{value.__module__}.{value.__name__}" if of_module else value.__qualname__


def _members(name: str) -> dict[int, str]:
    """Return the members of an enumeration, a class of that name with its module, by their ids; else none."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:end]))
        if found is None:
            continue
        for part in parts[end:]:
            if not isinstance(found, type | ModuleType):
                return {}
            found = _own(found).get(part)
        members = _own(found).get("_member_map_") if isinstance(found, type) else None
        return {id(member): key for key, member in members.items()} if type(members) is dict else {}
    return {}


def _own(owner: Any) -> Mapping[str, Any]:
    """Return the attributes of a class or module itself, looked up without running the user's code."""
    return type.__getattribute__(owner, "__dict__") if isinstance(owner, type) else ModuleType.__getattribute__(
        owner, "__dict__")


# --- lengths of dictionaries -------------------------------------------------------------------------
# Torch tests the number of entries of a dictionary and does not print it.
#
# Where the order of keys counts, as in a loop over ``items()``, a ``DictGuardManager`` guards the dictionary. It
# compares the number of entries before it looks at any of them (torch/csrc/dynamo/guards.cpp, ``DictGuardManager``),
# but the printed tree has only the entries that the function came to.
#: Such a manager in the printed tree, and the line of one.
_MANAGER = "+- DictGuardManager: source="
#: In the first line of any manager. (Guards on an object itself come before the managers of its parts.)
_ANY_MANAGER = "Manager: source="
_LINE = re.compile(r"(?P<depth>(?:\| )*)\+- DictGuardManager: source=(?P<source>.+?), (?:accessed_by|type)=.*")


def with_lengths(text: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return a printed tree of guards with the lengths of dictionaries as further guards."""
    if _MANAGER not in text:
        return text
    lines = text.split("\n")
    managers = [number for number, line in enumerate(lines) if _ANY_MANAGER in line]
    for number, end in reversed(list(zip(managers, [*managers[1:], len(lines)]))):
        manager = _LINE.fullmatch(lines[number])
        guard = _length(manager["source"], values, namespace) if manager else ""
        if manager and guard and not any(f": {guard} " in line for line in lines[number + 1 : end]):
            lines.insert(number + 1, f"{manager['depth']}| +- DICT_LENGTH: {guard} ")
    return "\n".join(lines)


def _length(source: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return the guard on the length of a dictionary; ``""`` where that is not known."""
    value = held_value(source, values, namespace)
    if not issubclass(type(value), dict):
        return ""
    number = dict.__len__(value)
    return f"len({source}) == {number}" if number else f"not {source}"
