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

#: Such a manager in the printed tree, up to what the dictionary is called.
_MANAGER = re.compile(
    r"^(?P<depth>(?:\| )*)\+- DictGuardManager: source=(?P<source>[^\n]+?), (?:accessed_by|type)=[^\n]*$", re.M)


def with_lengths(text: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return a printed tree of guards with the lengths that torch tests and does not print, as guards of their own.

    Args:
        text: the tree.
        values: local variables of the frame that is being compiled.
        namespace: its globals.
    """

    def counted(match: re.Match[str]) -> str:
        source = match["source"]
        value = held_value(source, values, namespace)
        if not issubclass(type(value), dict):
            return match[0]
        number = dict.__len__(value)
        guard = f"len({source}) == {number}" if number else f"not {source}"
        if f": {guard} " in text:
            return match[0]
        return f"{match[0]}\n{match['depth']}| +- DICT_LENGTH: {guard} "

    return _MANAGER.sub(counted, text)
