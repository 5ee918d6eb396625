"""Which function a version is for.

Torch compares the id of its code, which says nothing to a reader::

    ___check_obj_id(L['f'].__code__, 140084081999072), type=<class 'code'>                        torch
    ___check_obj_id(L['f'].__code__, 140084081999072), type=<class 'code'>, of rhs at app.py:5    as it is kept
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from ...patterns import pattern, replaced_from
from ...torch_text.global_names import OBJECT_ID
from .recompiled_frame import code_in_words, held_value

#: (Of what is passed, and of the program's globals. Functions of torch, which each graph has dozens of guards on, are
#: reached by globals of Dynamo's, and seldom others.)
_GUARD = pattern(
    re.escape(OBJECT_ID) + r"(?P<source>[LG]\['(?!__)[^\n]*), (?P<id>\d+)\), "
    r"type=<class '(?:code|function|builtin_function_or_method)'>")


def with_functions(text: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return a printed tree of guards with the names of the functions that are compared by their ids.

    Args:
        text: the tree.
        values: local variables of the frame that is being compiled.
        namespace: its globals.
    """

    def named(match: re.Match[str]) -> str:
        value = held_value(match["source"], values, namespace)
        name = _name(value) if id(value) == int(match["id"]) else ""
        return f"{match[0]}, of {name}" if name and name.isprintable() and "#" not in name else match[0]

    return replaced_from(OBJECT_ID, _GUARD, named, text)


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
