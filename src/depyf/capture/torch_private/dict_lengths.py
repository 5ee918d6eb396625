"""How many entries of a dictionary a version is for: torch tests it and does not print it.

Where the order of keys counts, as in a loop over ``items()``, a ``DictGuardManager`` guards the dictionary. It compares
the number of entries before it looks at any of them (torch/csrc/dynamo/guards.cpp, ``DictGuardManager``), but the
printed tree has only the entries that the function came to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .recompiled_frame import held_value

#: Such a manager in the printed tree, and the line of one.
_MANAGER = "+- DictGuardManager: source="
#: In the first line of any manager. (What is guarded of an object itself stands before the managers of its parts.)
_ANY_MANAGER = "Manager: source="
_LINE = re.compile(r"(?P<depth>(?:\| )*)\+- DictGuardManager: source=(?P<source>.+?), (?:accessed_by|type)=.*")


def with_lengths(text: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return a printed tree of guards with the lengths that torch tests and does not print, as guards of their own.

    Args:
        text: the tree.
        values: local variables of the frame that is being compiled.
        namespace: its globals.
    """
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
