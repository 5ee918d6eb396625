"""Names for what torch's texts name by the id of an object.

``install_global_by_id`` (``torch/_dynamo/output_graph.py``) puts an object that a frame needs into the frame's globals
as ``<prefix>_<id>_c<compilation>``. The id differs in each run and says nothing to a reader::

    G['_140084081999072_c3'].Tensor             torch
    G['torch'].Tensor                           as it is kept: `torch` is what that global holds

A guard on a member of an enumeration compares its id, too::

    ___check_obj_id(L['mode'], 140194463542736), type=<class 'app.Mode'>        torch
    L['mode'] is <Mode.FAST: ...>                                               as it is kept
"""

from __future__ import annotations

import re
import sys
import types
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from ..patterns import pattern, replaced_from

#: The end of such a name. (What stands before it in the same word is looked for from there: a pattern that begins with
#: any word is slow on the text of a large model's guards.)
_BY_ID = pattern(r"_\d{9,}_c\d+\b")
#: What a guard begins with that compares the id of an object.
OBJECT_ID = "___check_obj_id("
#: Beginnings of the names of globals that Dynamo adds.
_OF_DYNAMO = ("__", "_")


def without_ids(text: str, namespace: Mapping[str, Any], local_variables: Mapping[str, Any]) -> str:
    """Return a text of torch's with the names of what these globals hold.

    Args:
        text: of torch, ``"... source=G['_140084081999072_c3'].Tensor, ..."``.
        namespace: the globals of the frame.
        local_variables: those of the frame.
    """
    known: dict[str, str] = {}
    parts: list[str] = []
    at = 0
    for match in _BY_ID.finditer(text):
        begin = match.start()
        while begin > at and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
            begin -= 1
        name = text[begin : match.end()]
        if name not in known:
            prefix = text[begin : match.start()].strip("_")
            wanted = _name_of(namespace.get(name), namespace, local_variables) or prefix or "value"
            known[name] = _distinct(wanted, known.values())
        parts += [text[at:begin], known[name]]
        at = match.end()
    return "".join([*parts, text[at:]])


def with_members(text: str) -> str:
    """Return a text of torch's with the names of the members of enumerations that guards compare by their ids."""
    members: dict[str, dict[int, str]] = {}

    def named(match: re.Match[str]) -> str:
        kind = match["type"]
        if kind not in members:
            members[kind] = _members(kind)
        name = members[kind].get(int(match["id"]))
        return f"{match['source']} is <{kind.rpartition('.')[2]}.{name}: ...>" if name else match[0]

    return replaced_from(OBJECT_ID, _OF_CLASS, named, text)


#: A guard that compares ids, with the class of the object, which is no built-in one.
_OF_CLASS = pattern(
    re.escape(OBJECT_ID) + r"(?P<source>[^\n]*), (?P<id>\d+)\), type=<class '(?P<type>[A-Za-z_][\w.]*\.[A-Za-z_]\w*)'>")


def _members(name: str) -> dict[int, str]:
    """Return the members of an enumeration, by their ids; none of another class."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:end]))
        if found is None:
            continue
        for part in parts[end:]:
            if not isinstance(found, type | types.ModuleType):
                return {}
            found = _own(found).get(part)
        members = _own(found).get("_member_map_") if isinstance(found, type) else None
        return {id(member): key for key, member in members.items()} if type(members) is dict else {}
    return {}


def _own(owner: Any) -> Mapping[str, Any]:
    """Return the attributes of a class or module itself, looked up without running code of the user's."""
    return type.__getattribute__(owner, "__dict__") if isinstance(owner, type) else types.ModuleType.__getattribute__(
        owner, "__dict__")


def _distinct(wanted: str, taken: Any) -> str:
    names = set(taken)
    name, number = wanted, 0
    while name in names:
        number += 1
        name = f"{wanted[:-1]}_{number})" if wanted.endswith(")") else f"{wanted}_{number}"
    return name


def _name_of(value: Any, namespace: Mapping[str, Any], local_variables: Mapping[str, Any]) -> str:
    """Return the name that the user would give an object; ``""`` where nothing tells."""
    if type(value) is weakref.ReferenceType:
        inner = _name_of(value(), namespace, local_variables)
        return f"weakref.ref({inner})" if inner else ""
    if value is None:
        return ""
    if type(value) is types.ModuleType:
        return value.__name__
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        module, name = getattr(value, "__module__", None), value.__qualname__
        if isinstance(module, str) and "<" not in name:
            return name if module in ("builtins", "__main__") else f"{module}.{name}"
    for name, held in _variables(namespace, local_variables):
        if held is value:
            return name
    kind = type(value).__name__
    return f"some_{kind}" if kind.isidentifier() else ""


def _variables(namespace: Mapping[str, Any], local_variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for scope in (local_variables, namespace):
        for name, value in list(scope.items()):
            if not name.startswith(_OF_DYNAMO) and not _BY_ID.search(name):
                yield name, value
