"""Frames and values that torch knows at a graph break, and before it compiles a frame again."""

from __future__ import annotations

import ast
import collections
import contextlib
import functools
import os
from collections import Counter
from collections.abc import Mapping
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import torch

from ...decompiler.dynamo.global_names import MODULE_DICTIONARIES
from ...records.model import NamedValue, SourceLocation
from ...torch_text.libraries import is_library
from ...torch_text.parsed import parsed_expression
from ..object_facts import MISSING, attribute, is_module, own_attributes
from . import private_api
from .current_compilation import variables_of
from .operations import without_side_effects

# --- at a graph break --------------------------------------------------------------------------------
#: The number of variables that are described at most; functions with more are generated ones.
_MOST = 200


def stack() -> list[SourceLocation]:
    """Return the frames that led to the break that torch is about to log.

    These are the compiled frame and each function that was inlined on the way to the break. Empty where that cannot be
    known.
    """
    error = variables_of(private_api.GRAPH_BREAK_LOG).get(private_api.GRAPH_BREAK_LOG.key)
    places = getattr(error, "real_stack", None) or ()
    return [SourceLocation(each.filename, each.lineno or 0, each.name, (each.line or "").strip()) for each in places]


def values() -> tuple[NamedValue, ...]:
    """Return the local variables at the break that torch is about to log; empty where they cannot be known."""
    frame = variables_of(private_api.GRAPH_BREAK_LOG)
    # What traced the user's innermost function when the error was raised: inlined ones have one each.
    translator = frame.get("self")
    step = getattr(frame.get(private_api.GRAPH_BREAK_LOG.key), "__traceback__", None)
    while step is not None:
        inner = step.tb_frame.f_locals.get("self")
        if isinstance(_stored(inner).get(private_api.SYMBOLIC_LOCALS.key), dict) and not is_library(
                inner.f_code.co_filename):
            translator = inner
        step = step.tb_next
    found: list[tuple[str, Any, Any, int]] = []
    for name, variable in list(_stored(translator).get(private_api.SYMBOLIC_LOCALS.key, {}).items())[:_MOST]:
        if name.isidentifier():
            # What it will be made of when torch looks at it; nothing is looked at for us.
            if (cache := _stored(variable).get(private_api.LAZY_CACHE.key)) is not None:
                made = _stored(cache).get("vt")
                variable = cache if made is None else made
            known = _stored(variable)
            node = getattr(known.get("proxy"), "node", None)
            value = node.meta.get("example_value") if node is not None else known.get("value", variable)
            found.append((name, variable, value, id(node) if node is not None else id(value)))
    # (A tensor of a user's class may run the user's code when it is looked at.)
    with without_side_effects():
        memory = Counter(map(_memory, {one: value for *_, value, one in found}.values()))
        names: dict[int, str] = {}
        return tuple(_one(name, variable, value, names.setdefault(one, name), memory)
                     for name, variable, value, one in found)


def _stored(variable: Any) -> Mapping[str, Any]:
    """Return what an object of torch's has stored. Its properties and methods may trace something, with guards."""
    return getattr(variable, "__dict__", {})


def _memory(value: Any) -> int | None:
    """Return a number for the memory of a tensor; ``None`` for another value, and where it is not known."""
    if isinstance(value, torch.Tensor):
        with contextlib.suppress(RuntimeError, NotImplementedError):  # (sparse)
            number: int | None = getattr(value.untyped_storage(), private_api.STORAGE_ID.key, None)
            return number
    return None


def _one(name: str, variable: Any, value: Any, first: str, memory: Mapping[int | None, int]) -> NamedValue:
    path = ""
    with contextlib.suppress(NotImplementedError):  # (of what torch made itself)
        path = getattr(_stored(variable).get("source"), "name", "")
        path = path() if callable(path) else path
    same = first if first != name else ""
    if type(variable).__name__ == private_api.TRACED_ARRAY.key:  # (torch traces an array as a tensor)
        return NamedValue(name, "ndarray", source=str(path), same_as=same)
    if isinstance(value, torch.Tensor):
        kind = "Parameter" if isinstance(value, torch.nn.Parameter) else "Tensor"
        own = _memory(value)
        # (Where that cannot be known, it may.)
        shares = own is None or memory[own] > 1 or getattr(value, private_api.TENSOR_BASE.key, value) is not None
        return NamedValue(
            name, kind, tuple(map(str, value.shape)), str(value.dtype).removeprefix("torch."), str(value.device),
            bool(value.requires_grad), str(path), same, shares)
    number = _stored(variable).get("sym_num")
    kind = type(value).__name__ if value is not variable else {"SymInt": "int", "SymFloat": "float"}.get(
        type(number).__name__, "")
    return NamedValue(name, kind, source=str(path), same_as=same)


# --- before a recompile: values of guarded expressions -----------------------------------------------


def seen_in_recompiled_frame(expression: str) -> str:
    """Return the value of a guarded expression in the frame that torch is about to compile again, as text.

    ``""`` where that cannot be known without running the user's code.

    Args:
        expression: ``L['k']``, ``k``, ``L['self'].depth``, ``type(k)``: names, constant keys and plain attributes.
    """
    frame = variables_of(private_api.RECOMPILE_REASONS).get(private_api.RECOMPILE_REASONS.key)
    value = guarded_value(expression, getattr(frame, "f_locals", {}), getattr(frame, "f_globals", {}))
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
    return repr(value) if type(value) is torch.dtype else f"an object of type {type(value).__qualname__}"


def guarded_value(expression: str | ast.expr, local: Any, namespace: Any) -> Any:
    """Return the value of a guarded expression, by look-ups that do not run the user's code; else :data:`MISSING`."""
    tree = _parsed(expression.strip()) if isinstance(expression, str) else expression
    try:
        return MISSING if tree is None else _static_value(tree, local, namespace)
    except (KeyError, IndexError, AttributeError, TypeError, ValueError):
        return MISSING


#: (The guards of each version of a function have the same expressions.)
_parsed = functools.lru_cache(1024)(parsed_expression)


def code_in_words(code: CodeType) -> str:
    """Return the name of a function and where it is: ``"rhs at app.py:5"``."""
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    if code.co_filename.startswith("<"):  # (of no file)
        return name
    return f"{name} at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"


#: Dictionaries whose length and values are read without the user's code.
_DICTIONARIES = (dict, collections.OrderedDict, collections.defaultdict)
#: Questions about torch's state that are answered without the user's code.
_STATE_QUESTIONS = frozenset({
    "is_grad_enabled", "get_default_dtype", "get_num_threads", "are_deterministic_algorithms_enabled",
    "is_deterministic_algorithms_warn_only_enabled"})


def _static_value(node: ast.expr, local: Any, namespace: Any) -> Any:
    """Return the value of an expression, by look-ups that do not run the user's code; raise ``KeyError`` if none."""
    value = MISSING
    match node:
        case ast.Name("L"):
            return local
        case ast.Name("G"):
            return namespace
        case ast.Name(name):
            return local[name] if name in local else namespace[name]
        case ast.Call():
            value = _call_value(node, local, namespace)
        case ast.Subscript():
            value = _subscript_value(node, local, namespace)
        case ast.Attribute():
            value = _attribute_value(node, local, namespace)
    if value is MISSING:
        raise KeyError
    return value


def _call_value(node: ast.Call, local: Any, namespace: Any) -> Any:
    match node:
        case ast.Call(ast.Attribute(ast.Name("torch"), name), [], []) if name in _STATE_QUESTIONS:
            return getattr(torch, name)()
        case ast.Call(ast.Attribute(ast.Name("torch"), "is_autocast_enabled"), [ast.Constant(str(device))], []):
            return torch.is_autocast_enabled(device)
        case ast.Call(function, [inner, *others], []):
            value = _static_value(inner, local, namespace)
            of = type(value)
            match function, others:
                case ast.Name("type"), []:
                    return of
                case ast.Name("len"), [] if of in (*_DICTIONARIES, list, tuple, set, str, collections.deque):
                    return len(value)
                case ast.Name("list"), [] if of in (*_DICTIONARIES, list, tuple):
                    return list(value)
                case ast.Attribute(ast.Name("dict"), "keys"), [] if of in _DICTIONARIES:
                    return list(value)
                case ast.Attribute(ast.Name("list"), "__getitem__"), [ast.Constant(int(index))] \
                        if issubclass(of, list):
                    return list.__getitem__(value, index)
    return MISSING


def _subscript_value(node: ast.Subscript, local: Any, namespace: Any) -> Any:
    match node:
        case ast.Subscript(inner, ast.Subscript(ast.Call(ast.Name("list"), [
                ast.Call(ast.Attribute(ast.Name("dict"), "keys"), [same], [])], []), ast.Constant(int(index)))) \
                if ast.dump(inner) == ast.dump(same):  # (by its place: a key may be anything)
            value = _static_value(inner, local, namespace)
            if type(value) in _DICTIONARIES:
                return list(value.values())[index]
        case ast.Subscript(ast.Call(ast.Attribute(inner, "size" | "stride" as method), [], []), ast.Constant(key)):
            value = _static_value(inner, local, namespace)
            if type(value) in (torch.Tensor, torch.nn.Parameter):  # (not of a class of the user's)
                layout: Any = getattr(torch.Tensor, method)(value)
                return layout[key]
        case ast.Subscript(inner, ast.Constant(key)):
            value = _static_value(inner, local, namespace)
            if type(value) in (list, tuple, dict, collections.OrderedDict) or value is local or value is namespace \
                    or type(value) is collections.defaultdict and key in value:  # (else it would make an item)
                return value[key]
    return MISSING


def _attribute_value(node: ast.Attribute, local: Any, namespace: Any) -> Any:
    owner = _static_value(node.value, local, namespace)
    match node.attr:
        case "__code__":
            function = owner.__func__ if type(owner) is MethodType else owner
            if type(function) is FunctionType:
                return function.__code__
        case "__closure__" if type(owner) is FunctionType:
            return owner.__closure__
        case "cell_contents" if type(owner) is CellType:
            return owner.cell_contents
        case name if name not in ("__code__", "__closure__", "cell_contents"):
            value, own = attribute(owner, name), own_attributes(owner)
            members = MODULE_DICTIONARIES if value is MISSING and is_module(owner) else ()
            return next((own[each][name] for each in members if name in own[each]), value)
    return MISSING
