"""Values of guarded expressions in the frame that torch is about to compile again."""

from __future__ import annotations

import ast
import collections
import functools
import os
import sys
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from ...torch_text.parsed import parsed_expression
from ..static_lookup import MISSING
from . import private_api


class _NotKnown(LookupError):
    """A value that cannot be looked up without running code of the user's."""


def seen_in_recompiled_frame(expression: str) -> str:
    """Return the value of a guarded expression in the frame that torch is about to compile again, as text.

    ``""`` where that cannot be known without running code of the user's.

    Args:
        expression: ``L['k']``, ``k``, ``L['self'].depth``, ``type(k)``: names, constant keys and plain attributes.
    """
    where = private_api.RECOMPILE_REASONS
    try:
        function = where.attribute
    except private_api.MissingPrivateApi:
        return ""
    frame: Any = sys._getframe(1)
    for _ in range(40):
        if frame is None:
            return ""
        if frame.f_code.co_name == function:
            seen = frame.f_locals.get(where.key)
            return _shown(expression, getattr(seen, "f_locals", {}), getattr(seen, "f_globals", {}))
        frame = frame.f_back
    return ""


def held_value(expression: str, local: Any, namespace: Any) -> Any:
    """Return the value of a guarded expression, by look-ups that run no code of the user's; else :data:`MISSING`.

    Args:
        expression: as of :func:`seen_in_recompiled_frame`.
        local: local variables, by name.
        namespace: globals, by name.
    """
    tree = _parsed(expression.strip())
    try:
        return MISSING if tree is None else _static_value(tree, local, namespace)
    except (KeyError, IndexError, AttributeError, TypeError, ValueError, _NotKnown):
        return MISSING


#: (The guards of each version of a function have the same expressions.)
_parsed = functools.lru_cache(1024)(parsed_expression)


def _shown(expression: str, local: Any, namespace: Any) -> str:
    value = held_value(expression, local, namespace)
    if value is MISSING:
        return ""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}".removeprefix("builtins.")
    if isinstance(value, FunctionType):
        return f"the function {value.__qualname__.rpartition('<locals>.')[2]}"
    if isinstance(value, CodeType):
        return code_in_words(value)
    if type(value) in (list, tuple, set, frozenset) and all(type(item) in (bool, int, float, str) for item in value) \
            or value is None or type(value) in (bool, int, float, complex, str, bytes):
        text = repr(value)
        return text if len(text) <= 80 else text[:77] + "..."
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return repr(value)
    return f"an object of type {type(value).__qualname__}"


def code_in_words(code: CodeType) -> str:
    """Return the name of a function and where it stands: ``"rhs at app.py:5"``."""
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    if code.co_filename.startswith("<"):  # (of no file)
        return name
    return f"{name} at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"


#: Dictionaries whose length and values are read without code of the user's.
_DICTIONARIES = (dict, collections.OrderedDict, collections.defaultdict)
#: Questions about torch's state that have an answer without any code of the user's.
_STATE_QUESTIONS = frozenset({
    "is_grad_enabled", "get_default_dtype", "get_num_threads", "are_deterministic_algorithms_enabled",
    "is_deterministic_algorithms_warn_only_enabled"})


def _of_plain_tensor(value: Any, method: str) -> Any:
    """Return ``value.size()`` or ``value.stride()`` of a tensor that is not of a class of the user's."""
    torch = sys.modules["torch"]
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise _NotKnown("not a plain tensor")
    return tuple(getattr(torch.Tensor, method)(value))


def _static_value(node: ast.expr, local: Any, namespace: Any) -> Any:
    """Return the value of an expression, by look-ups that run no code of the user's."""
    match node:
        case ast.Name("L"):
            return local
        case ast.Name("G"):
            return namespace
        case ast.Name(name):
            return local[name] if name in local else namespace[name]
        case ast.Call(ast.Name("type"), [inner], []):
            return type(_static_value(inner, local, namespace))
        case ast.Call(ast.Name("len"), [inner], []):
            value = _static_value(inner, local, namespace)
            if type(value) in (*_DICTIONARIES, list, tuple, set, str, collections.deque):
                return len(value)
        case ast.Call(ast.Name("list"), [inner], []):
            value = _static_value(inner, local, namespace)
            if type(value) in (*_DICTIONARIES, list, tuple):
                return list(value)
        case ast.Call(ast.Attribute(ast.Name("dict"), "keys"), [inner], []):
            value = _static_value(inner, local, namespace)
            if type(value) in _DICTIONARIES:
                return list(value)
        case ast.Subscript(inner, ast.Subscript(ast.Call(ast.Name("list"), [
                ast.Call(ast.Attribute(ast.Name("dict"), "keys"), [same], [])], []), ast.Constant(int(index)))) \
                if ast.dump(inner) == ast.dump(same):  # (by its place: a key may be anything)
            value = _static_value(inner, local, namespace)
            if type(value) in _DICTIONARIES:
                return list(value.values())[index]
        case ast.Call(ast.Attribute(ast.Name("torch"), name), [], []) if name in _STATE_QUESTIONS:
            return getattr(sys.modules["torch"], name)()
        case ast.Call(ast.Attribute(ast.Name("torch"), "is_autocast_enabled"), [ast.Constant(str(device))], []):
            return sys.modules["torch"].is_autocast_enabled(device)
        case ast.Subscript(ast.Call(ast.Attribute(inner, "size" | "stride" as method), [], []), ast.Constant(key)):
            return _of_plain_tensor(_static_value(inner, local, namespace), method)[key]
        case ast.Subscript(inner, ast.Constant(key)):
            value = _static_value(inner, local, namespace)
            if type(value) in (list, tuple, dict, collections.OrderedDict) or value is local or value is namespace:
                return value[key]
            if type(value) is collections.defaultdict and key in value:  # (else it would make an item)
                return value[key]
        case ast.Attribute(inner, "__code__"):
            value = _static_value(inner, local, namespace)
            value = value.__func__ if type(value) is MethodType else value
            if type(value) is FunctionType:
                return value.__code__
        case ast.Attribute(inner, "__closure__"):
            value = _static_value(inner, local, namespace)
            if type(value) is FunctionType:
                return value.__closure__
        case ast.Attribute(inner, "cell_contents"):
            value = _static_value(inner, local, namespace)
            if type(value) is CellType:
                return value.cell_contents
        case ast.Attribute(inner, name):
            held = object.__getattribute__(_static_value(inner, local, namespace), "__dict__")
            if isinstance(held, dict):
                return held[name]
    raise _NotKnown(ast.dump(node))
