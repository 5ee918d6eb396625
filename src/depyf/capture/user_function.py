"""The function that the user means by a frame, inside decorators, wrappers and torch's callers; the frame of a call.

Torch compiles the code that runs first, and that is often a wrapper::

    @merge_with_config_defaults              def wrapper(self, *args, **kwargs):
    def forward(self, input_ids): ...            ... func(self, *args, **kwargs)       # func: LlamaModel.forward

The frame of ``wrapper`` means ``LlamaModel.forward``, called through ``merge_with_config_defaults.wrapper``. A function
is taken for a wrapper of another one in its closure if one of these is true:

* it is the ``__wrapped__`` of the outer one, or its name leads, in its class or module, to what wraps it so;
* the outer one takes ``*args, **kwargs``, and got the inner one as an argument of the function that made it (of
  several, it is the one called with ``*args``).

None of the user's code runs: only dictionaries of classes, modules and instances, cells, and attributes of Python's own
types are read. Torch is not needed.
"""

from __future__ import annotations

import difflib
import dis
import functools
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..records.model import SourceLocation, UserFunction
from ..torch_text.global_names import plain_name, resumed_function
from ..values import frozen
from .object_facts import class_entry, closure_values, is_module, own_attributes
from .torch_private import cache_entries, compiled_callables, private_api
from .torch_private.current_compilation import backward_line

#: More wrappers than this are not followed.
_MOST = 20
_ANY_ARGUMENTS = 0x4 | 0x8  # in co_flags: *args and **kwargs
#: Methods of ``nn.Module`` that only call ``forward``.
_CALLERS = ("_wrapped_call_impl", "_call_impl")
_CALLING_METHODS = (*_CALLERS, "__call__")
#: Packages of torch's classes whose ``forward`` calls that of ``self.module``.
_AROUND = ("torch.nn.parallel.", "torch.distributed.")


@frozen
class Meant:
    """The function that the user means by a frame."""

    # as a person says it: `LlamaModel.forward`, `main.step`, `lambda at line 12`; of a resume function the
    # function that it continues
    name: str
    code: CodeType  # of that function
    # `(name, code)` of those it is called through, outermost first. The first is what torch compiled.
    wrappers: tuple[tuple[str, CodeType], ...] = ()


def meant_by_frame(
    code: CodeType, values: Mapping[str, Any], namespace: Mapping[str, Any], function: FunctionType | None = None
) -> Meant:
    """Return the function that the user means by a frame; ``values``: captured ones, too; ``function``: if known."""
    this = values.get(code.co_varnames[0]) if code.co_argcount else None
    if resumed_function(code.co_name) is not None:
        return Meant(_name(code, values.get("self")), code)
    if line := backward_line(code):
        return Meant(f"backward at line {line}", code)
    wrappers: list[tuple[str, CodeType]] = []
    current = code
    while len(wrappers) < _MOST:
        inner, owner = _inner(current, values, namespace, this, function)
        if inner is None or inner.__code__ is code or any(inner.__code__ is known for _, known in wrappers):
            break
        # (`capture_outputs.wrapped_fn.wrapper`: a wrapper is known by the decorator that made it.)
        name = str(getattr(current, "co_qualname", current.co_name))
        wrappers.append((name.replace(".<locals>", "").replace("<lambda>", "lambda"), current))
        this = owner if owner is not None else this
        current, function = inner.__code__, inner
        values, namespace = closure_values(inner), inner.__globals__
    return Meant(_name(current, this, function), current, tuple(wrappers))


def record_of(meant: Meant) -> UserFunction:
    """Return the function that a frame means, as it is recorded."""
    function, *wrappers = (SourceLocation(code.co_filename, code.co_firstlineno, name)
                           for name, code in ((meant.code.co_name, meant.code), *meant.wrappers))
    return UserFunction(meant.name, function, tuple(wrappers))


def meant_by_function(function: Any, this: Any = None) -> Meant:
    """Return the function that the user means by a function, a method of ``this`` where that is given."""
    return meant_by_frame(function.__code__, values_of(function, this), function.__globals__, function)


def values_of(function: FunctionType, this: Any = None) -> dict[str, Any]:
    """Return the local variables of a function's frames that are known before a call: captured ones, and ``self``."""
    values = closure_values(function)
    if this is not None and function.__code__.co_argcount:
        values = {function.__code__.co_varnames[0]: this, **values}
    return values


# --- names ----------------------------------------------------------------------------------------
def _name(code: CodeType, this: Any, function: FunctionType | None = None) -> str:
    name = getattr(code, "co_qualname", "")  # since 3.11
    if not name and function is not None and "__wrapped__" not in function.__dict__:
        name = function.__qualname__
    if not name:
        name = next((f"{cls.__qualname__}.{code.co_name}" for cls in type(this).__mro__ if code.co_argcount and getattr(
            _function(vars(cls).get(code.co_name)), "__code__", None) is code), code.co_name)
    return readable_name(name, code.co_firstlineno, this, code)


def readable_name(qualified: str, line: int, this: Any = None, code: CodeType | None = None) -> str:
    """``outer.inner`` for ``outer.<locals>.inner``, ``Net.forward`` for ``main.<locals>.Net.forward``.

    Args:
        qualified: as Python names it; a resume function goes by what it continues.
        line: where it begins, by which lambdas are distinguished.
        this: the first argument; the class of ``self`` is named where the qualified name names none.
    """
    # (dataclasses make methods in a function of this name)
    *owners, last = qualified.removeprefix("__create_fn__.<locals>.").split(".<locals>.")
    owner, dot, plain = last.rpartition(".")
    last = owner + dot + plain_name(plain)
    if plain.startswith("<"):  # (up to 3.11 a comprehension is its owner)
        return f"{plain.strip('<>')} at line {line}"
    if "." in last:
        return last
    if owners:
        return f"{owners[-1].replace('<lambda>', 'lambda')}.{last}"
    if this is not None and code is not None and code.co_varnames[:1] == ("self",):
        return f"{type(this).__qualname__.rpartition('<locals>.')[2]}.{last}"
    return last


# --- one wrapper ----------------------------------------------------------------------------------
def _inner(
    code: CodeType, values: Mapping[str, Any], namespace: Mapping[str, Any], this: Any, outer: FunctionType | None
) -> tuple[FunctionType | None, Any]:
    """Return ``(the function that this one wraps, the object it is a method of)``.

    The first is ``None`` where it wraps none, the second where the object is unchanged.
    """
    if this is not None:
        attributes = own_attributes(this)
        if is_module(this) and code.co_name in _CALLERS:
            return _function(this), this
        if is_module(this) and code.co_name == "forward" and type(this).__module__.startswith(_AROUND):
            module = _modules(attributes).get("module")
            if module is not None:
                return _function(module), module
        if code.co_name == "__call__" and "__wrapped__" in attributes:
            return _function(attributes["__wrapped__"]), None
    candidates = {}
    for name in code.co_freevars:
        function = _function(values.get(name))
        if function is not None and function.__code__ is not code:
            candidates[name] = function
    if not candidates:
        return None, None
    direct = _function(outer.__dict__.get("__wrapped__")) if outer is not None else None
    known = [name for name, function in candidates.items() if function is direct or _leads_to(function, code, this)]
    wrapped = known[0] if known else _forwarded_to(code, candidates, namespace)
    if wrapped is None:
        return None, None
    value = values.get(wrapped)
    if isinstance(value, MethodType):
        return candidates[wrapped], value.__self__
    return candidates[wrapped], value if value is not None and is_module(value) else None


def _leads_to(function: FunctionType, code: CodeType, this: Any) -> bool:
    """Return whether the name of a function is bound, in its class or module, to what wraps it by a code object."""
    bound = [vars(cls).get(function.__name__) for cls in type(this).__mro__] if this is not None else []
    value: Any = sys.modules.get(function.__module__ or "")
    for number, step in enumerate(function.__qualname__.split(".")):
        holder = own_attributes(value) if not number else vars(value) if isinstance(value, type) else {}
        value = holder.get(step)
    return any(each.__code__ is code for outer in (*bound, value) for each in _wrapped_functions(outer))


def _forwarded_to(code: CodeType, candidates: Mapping[str, FunctionType], namespace: Mapping[str, Any]) -> str | None:
    """Return the captured function that gets the arguments of this one, by name; ``None`` if none does."""
    if code.co_flags & _ANY_ARGUMENTS != _ANY_ARGUMENTS:
        return None
    # The function that this one is defined in, if a global name leads to it.
    first, *names = getattr(code, "co_qualname", "").partition(".<locals>.")[0].split(".")
    values = [namespace.get(first)] if first else list(namespace.values())  # before 3.11: any function there
    makers = (_enclosing(function.__code__, code) for value in values for function in _functions_in(value, names))
    given = list(candidates)
    if maker := next(filter(None, makers), None):
        given = [name for name in given if name in maker.co_varnames[: maker.co_argcount + maker.co_kwonlyargcount]]
        if len(given) == 1:
            return given[0]
    loaded = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_DEREF" and step.argval in given:
            loaded = step.argval
        elif step.opname == "CALL_FUNCTION_EX" and loaded is not None:
            return str(loaded)
    return None


def _functions_in(value: Any, names: list[str]) -> Iterator[FunctionType]:
    """Yield the function that a global is, with those it wraps; of a class those of its members (``names``: of one)."""
    if isinstance(value, type):
        for member in [vars(value).get(names[0])] if names else list(vars(value).values()):
            yield from _functions_in(member, names[1:])
    else:
        yield from _wrapped_functions(value)


def _wrapped_functions(value: Any) -> Iterator[FunctionType]:
    """Yield a function and those that it wraps, by ``__wrapped__``."""
    for _ in range(_MOST):
        value = _plain(value)
        if not isinstance(value, FunctionType):
            return
        yield value
        value = value.__dict__.get("__wrapped__")


def _enclosing(outer: CodeType, code: CodeType) -> CodeType | None:
    """Return the code object, this one or one in it, that has another one among its constants."""
    if any(const is code for const in outer.co_consts):
        return outer
    inner = (_enclosing(const, code) for const in outer.co_consts if isinstance(const, CodeType))
    return next(filter(None, inner), None)


# --- what values are ------------------------------------------------------------------------------
def _function(value: Any) -> FunctionType | None:
    """Return the Python function that a callable object runs; ``None`` for a class, and where none is found."""
    for _ in range(_MOST):
        value = _plain(value)
        if isinstance(value, FunctionType):
            return value
        if value is None or isinstance(value, type):
            return None
        attributes = own_attributes(value)
        if "__wrapped__" in attributes:  # functools.lru_cache and its like
            value = attributes["__wrapped__"]
        elif is_module(value):
            compiled = _modules(attributes).get("_orig_mod")  # what torch.compile makes of a module
            value = next((each for each in (compiled, attributes.get("forward")) if each is not None),
                         class_entry(type(value), "forward", None))
        else:
            value = class_entry(type(value), "__call__", None)
    return None


def _plain(value: Any) -> Any:
    """Return a function without what Python and torch.compile put around it."""
    for _ in range(_MOST):
        inner = None
        if isinstance(value, FunctionType):
            inner = value.__dict__.get(private_api.ORIGINAL_CALLABLE.key)
        elif isinstance(value, (MethodType, classmethod, staticmethod)):
            inner = value.__func__
        elif type(value) is functools.partial:
            inner = value.func
        if inner is None:
            return value
        value = inner
    return value


def _modules(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return modules if isinstance(modules := attributes.get("_modules"), dict) else {}


# --- the frame of a call, and its local variables ----------------------------------------------------
#     torch.compile(f)(x)          f                          {"x": x}
#     torch.compile(model)(x)      Model.forward              {"self": model, "x": x}
#     torch.compile(Linear)(x)     torch's wrapper `inner`    {"fn": linear, "args": (x,), "kwargs": {}}
#
# Torch compiles the last where it takes no frame of the callable itself (torch/_dynamo/external_utils.py,
# ``wrap_inline``).
_PRE_HOOKS = ("_forward_pre_hooks", "_global_forward_pre_hooks")


class NoFrame(TypeError):
    """An object that is called without a frame of Python; the message says what to give instead."""


@dataclass(eq=False)
class CalledFrame:
    """The frame that a call begins with."""

    function: FunctionType
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
    target, changed_by = _target(compiled)
    if isinstance(target, MethodType):
        target, args = target.__func__, (target.__self__, *args)
    if not isinstance(target, FunctionType):
        raise NoFrame(f"depyf.fits got a {type(compiled).__name__}; give what torch.compile returned, a function, a "
                      "method or a module")
    return CalledFrame(target, {**closure_values(target), **_bound(target, args, kwargs)}, changed_by)


def _target(compiled: Any) -> tuple[Any, str]:
    """Return the function or method that a call runs, and what runs before it and may change its arguments."""
    wrapper = cache_entries.wrapper_of(compiled)
    target = compiled if wrapper is None else compiled_callables.given_to_compile(wrapper)
    if isinstance(target, MethodType) and is_module(target.__self__) and target.__name__ in _CALLING_METHODS:
        target = target.__self__
    if is_module(target):
        torchs = vars(inspect.getmodule(type(target).__mro__[-2]) or types.ModuleType(""))
        hooked = own_attributes(target).get(_PRE_HOOKS[0]) or torchs.get(_PRE_HOOKS[1])
        return target.forward, "forward pre-hooks" if hooked else ""
    if isinstance(target, FunctionType | MethodType):
        return target, ""
    call = class_entry(type(target), "__call__", None)
    return (MethodType(call, target) if isinstance(call, FunctionType) else target), ""


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
