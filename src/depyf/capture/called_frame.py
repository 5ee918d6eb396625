"""The frame that a call of a compiled function begins with, and its local variables, found without a call.

    torch.compile(f)(x)          f                          {"x": x}
    torch.compile(model)(x)      Model.forward              {"self": model, "x": x}
    torch.compile(Linear)(x)     torch's wrapper `inner`    {"fn": linear, "args": (x,), "kwargs": {}}

Torch compiles the last where it takes no frame of the callable itself (torch/_dynamo/external_utils.py,
``wrap_inline``).
"""

from __future__ import annotations

import difflib
import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

from .static_lookup import class_entry, closure_values, is_module, own_attributes
from .torch_private import cache_entries, compiled_callables

#: Methods of ``nn.Module`` that only call ``forward``.
_CALLERS = ("_wrapped_call_impl", "_call_impl", "__call__")
_PRE_HOOKS = ("_forward_pre_hooks", "_global_forward_pre_hooks")


class NoFrame(TypeError):
    """An object that is called without a frame of Python; the message says what to give instead."""


@dataclass(frozen=True)
class CalledFrame:
    """The frame that a call begins with."""

    function: FunctionType
    this: Any  # the object that the function is a method of; `None` if there is none
    values: Mapping[str, Any]  # its local variables, captured ones included
    changed_by: str = ""  # what runs before it and may change the values, `""` if nothing does

    @property
    def code(self) -> CodeType:
        """Return the code object, which the cache entries are of."""
        return self.function.__code__

    @property
    def namespace(self) -> dict[str, Any]:
        """Return the globals."""
        return self.function.__globals__


def called_frame(compiled: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CalledFrame:
    """Return the frame that ``compiled(*args, **kwargs)`` begins with.

    Raises:
        NoFrame: ``compiled`` runs no Python function that is known beforehand.
        TypeError: the arguments do not fit its parameters.
    """
    target: Any
    this: Any = None
    target, changed_by = _target(compiled)
    if isinstance(target, MethodType):
        target, this = target.__func__, target.__self__
    if not isinstance(target, FunctionType):
        raise NoFrame(f"depyf.fits got a {type(compiled).__name__}; give what torch.compile returned, a function, a "
                      "method or a module")
    if this is not None:
        args = (this, *args)
    return CalledFrame(target, this, {**closure_values(target), **_bound(target, args, kwargs)}, changed_by)


def _target(compiled: Any) -> tuple[Any, str]:
    wrapper = cache_entries.wrapper_of(compiled)
    target = compiled if wrapper is None else compiled_callables.given_to_compile(wrapper)
    if isinstance(target, MethodType) and is_module(target.__self__) and target.__name__ in _CALLERS:
        target = target.__self__
    if is_module(target):
        return target.forward, _pre_hooks(target)
    if isinstance(target, FunctionType | MethodType):
        return target, ""
    call = class_entry(type(target), "__call__", None)
    return (MethodType(call, target) if isinstance(call, FunctionType) else target), ""


def _pre_hooks(module: Any) -> str:
    """Return what runs before ``forward`` and may change its arguments."""
    torchs = vars(inspect.getmodule(type(module).__mro__[-2]) or types.ModuleType(""))
    if own_attributes(module).get(_PRE_HOOKS[0]) or torchs.get(_PRE_HOOKS[1]):
        return "forward pre-hooks"
    return ""


def _bound(function: FunctionType, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters as the frame has them when it begins, whatever ``__signature__`` a program sets."""
    plain = FunctionType(function.__code__, {}, function.__name__, function.__defaults__, function.__closure__)
    plain.__kwdefaults__ = function.__kwdefaults__
    signature = inspect.signature(plain)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        unknown = [name for name in kwargs if name not in signature.parameters and f"{name!r}" in str(error)]
        close = [f"; did you mean {each}?" for name in unknown
                 for each in difflib.get_close_matches(name, signature.parameters, 1)]
        raise TypeError(f"{function.__name__}: {error}{''.join(close)}") from None
    bound.apply_defaults()
    return dict(bound.arguments)
