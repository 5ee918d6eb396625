"""How many entries of a dictionary a version is for: torch tests it and does not print it.

Where the order of keys counts, as in a loop over ``items()``, a ``DictGuardManager`` guards the dictionary. It compares
the number of entries before it looks at any of them (torch/csrc/dynamo/guards.cpp, ``DictGuardManager``), but the
printed tree has only the entries that the function came to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...patterns import pattern, place_of
from .recompiled_frame import held_value

#: Such a manager in the printed tree, and the line of one.
_MANAGER = "+- DictGuardManager: source="
#: In the first line of any manager. (What is guarded of an object itself stands before the managers of its parts.)
_ANY_MANAGER = "Manager: source="
_LINE = pattern(r"(?P<depth>(?:\| )*)\+- DictGuardManager: source=(?P<source>.+?), (?:accessed_by|type)=.*")


def with_lengths(text: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return a printed tree of guards with the lengths that torch tests and does not print, as guards of their own.

    Args:
        text: the tree.
        values: local variables of the frame that is being compiled.
        namespace: its globals.
    """
    pieces: list[str] = []
    done = 0
    place = text.find(_MANAGER)
    while place >= 0:  # (The tree of a model has a thousand lines and few of these.)
        begin, end = text.rfind("\n", 0, place) + 1, place_of("\n", text, place)
        line = _LINE.fullmatch(text, begin, end)
        guard = _length(line["source"], values, namespace) if line else ""
        if line and guard and text.find(f": {guard} ", end, place_of(_ANY_MANAGER, text, end)) < 0:
            pieces += (text[done:end], f"\n{line['depth']}| +- DICT_LENGTH: {guard} ")
            done = end
        place = text.find(_MANAGER, end)
    return "".join((*pieces, text[done:]))


def _length(source: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return the guard on the length of a dictionary; ``""`` where that is not known."""
    value = held_value(source, values, namespace)
    if not issubclass(type(value), dict):
        return ""
    number = dict.__len__(value)
    return f"len({source}) == {number}" if number else f"not {source}"
