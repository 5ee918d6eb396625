"""What torch knows at the graph break that it is about to log: the frames that led to it, and the local variables."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from ...records.model import NamedValue
from ...torch_text.libraries import is_library
from . import private_api
from .quiet import without_side_effects
from .stack import variables_of

#: The number of variables that are described at most; functions with more are generated ones.
_MOST = 200


def stack() -> list[tuple[str, int, str, str]]:
    """Return ``(file, line, function, text)`` of the frames that led to the break that torch is about to log.

    These are the compiled frame and each function that was inlined on the way to the break. Empty where that cannot be
    known.
    """
    error = variables_of(private_api.GRAPH_BREAK_LOG).get(private_api.GRAPH_BREAK_LOG.key)
    places = getattr(error, "real_stack", None) or ()
    return [(each.filename, each.lineno or 0, each.name, (each.line or "").strip()) for each in places]


def values() -> tuple[NamedValue, ...]:
    """Return the local variables at the break that torch is about to log; empty where they cannot be known."""
    known = variables_of(private_api.GRAPH_BREAK_LOG)
    return tuple(_described(_innermost(known.get("self"), known.get(private_api.GRAPH_BREAK_LOG.key))))


def _innermost(translator: Any, error: BaseException | None) -> Any:
    """Return what traced the user's innermost function when the error was raised: inlined ones have one each."""
    step = getattr(error, "__traceback__", None)
    while step is not None:
        inner = step.tb_frame.f_locals.get("self")
        if isinstance(_stored(inner).get(private_api.SYMBOLIC_LOCALS.key), dict) and not is_library(
                inner.f_code.co_filename):
            translator = inner
        step = step.tb_next
    return translator


def _described(translator: Any) -> list[NamedValue]:
    found: list[tuple[str, Any, Any, int]] = []
    for name, variable in list(_stored(translator).get(private_api.SYMBOLIC_LOCALS.key, {}).items())[:_MOST]:
        if name.isidentifier():
            variable = _without_laziness(variable)
            known = _stored(variable)
            node = getattr(known.get("proxy"), "node", None)
            value = node.meta.get("example_value") if node is not None else known.get("value", variable)
            found.append((name, variable, value, id(node) if node is not None else id(value)))
    # (A tensor of a user's class may run the user's code when it is looked at.)
    with without_side_effects():
        memory = Counter(map(_memory, {one: value for *_, value, one in found}.values()))
        names: dict[int, str] = {}
        return [_one(name, variable, value, names.setdefault(one, name), memory)
                for name, variable, value, one in found]


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


def _without_laziness(variable: Any) -> Any:
    """Return a variable, or what it will be made of when torch looks at it; nothing is looked at for us."""
    cache = _stored(variable).get(private_api.LAZY_CACHE.key)
    if cache is None:
        return variable
    made = _stored(cache).get("vt")
    return made if made is not None else cache


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
