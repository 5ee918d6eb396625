"""``depyf.decompile``: source for a function or a code object; and the Python function that a callable runs."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Iterator
from types import CodeType
from typing import Any

from .decompiler import Decompiled, decompile_code
from .decompiler.dynamo.global_names import is_transformed
from .decompiler.emit.layout import with_blank_lines


def code_of(obj: Any, follow_wrapped: bool = True) -> CodeType:
    """Return the code object that runs when ``obj`` is called.

    Raises:
        TypeError: there is none; the message names ``obj`` and says what to give instead.
    """
    *_, last = unwrapped(obj, follow_wrapped)
    code = code_in(last)
    if code is None:
        raise TypeError(f"depyf: {why_no_code(obj)}")
    return code


def decompile(
    code: Any, *, verify: bool = True, simplify: bool | None = None, blank_lines: bool = False,
    follow_wrapped: bool = True,
) -> str:
    """Return source of a function or code object.

    Args:
        code: a function, method, generator, coroutine or code object; or what leads to one, to any depth: a
            ``functools.partial``, an ``lru_cache``, a decorator that uses ``functools.wraps``, a property, an object
            with ``__call__``, an ``nn.Module`` (its ``forward``), what ``torch.compile`` returned.
        verify: prove that the source is the same program (else fall back to a form that is right by
            construction).
        simplify: write what torch.compile generated without its detours (proven equivalent); the default is to do so
            for code that uses globals of Dynamo's, such as ``__compiled_fn_1``.
        blank_lines: put blank lines between statements where the source had lines that left nothing in the code:
            empty ones, or comments.
        follow_wrapped: go through the functions of decorators to what they wrap (``__wrapped__``), as
            ``inspect.signature`` does; a comment names them. Else the first function is shown.

    Raises:
        TypeError: there is no Python code in it: a class, a function written in C, a string.
    """
    result = decompile_full(code, verify=verify, simplify=simplify, follow_wrapped=follow_wrapped)
    text = with_blank_lines(result) if blank_lines else result.text
    return "".join(f"# {name} wraps it and runs first: decompile(..., follow_wrapped=False) shows that\n"
                   for name in _wrappers(code, follow_wrapped)) + text


def decompile_full(
    obj: Any, *, verify: bool = True, simplify: bool | None = None, follow_wrapped: bool = True,
) -> Decompiled:
    """As :func:`decompile`, with the fidelity, the notes and the line map, and without a comment on what wraps it."""
    code = code_of(obj, follow_wrapped)
    return decompile_code(code, verify=verify, simplify=is_transformed(code) if simplify is None else simplify)


def _wrappers(obj: Any, follow_wrapped: bool) -> list[str]:
    """Return the names of the functions of decorators that a call of ``obj`` runs first, in the program's words."""
    chain = [*unwrapped(obj, follow_wrapped)]
    codes = [each.__code__ for each, inner in zip(chain, chain[1:]) if isinstance(each, types.FunctionType)
             and _given_to_compile(each) is None and inner is _own(each, "__wrapped__")]
    return [getattr(code, "co_qualname", code.co_name).replace(".<locals>", "") for code in codes]


# --- from a callable to its Python function ----------------------------------------------------------
# functools.partial(lru_cache(f), 1) -> lru_cache(f) -> f
# torch.compile(model)               -> model        -> model.forward -> Model.forward
#: Attributes of functions, generators, coroutines, asynchronous generators and frames for their code objects.
_CODE = ("__code__", "gi_code", "cr_code", "ag_code", "f_code")
#: Attributes of methods, functions of partial methods (3.11 and 3.13) and decorated functions for what they call.
_INSIDE = ("__func__", "_partialmethod", "__partialmethod__", "__wrapped__")
_MOST_STEPS = 100  #: Longer chains are a cycle, or objects that make another one whenever they are asked.


def code_in(obj: Any) -> CodeType | None:
    """Return the code object of ``obj`` itself, ``None`` where it has none."""
    if isinstance(obj, CodeType):
        return obj
    codes = (_own(obj, name) for name in _CODE)
    return next((code for code in codes if isinstance(code, CodeType)), None)


def unwrapped(obj: Any, follow_wrapped: bool = True) -> Iterator[Any]:
    """Yield ``obj``, what it wraps, what that wraps, and so on; the last one is what runs in the end.

    Without ``follow_wrapped`` it is the first Python function.
    """
    for _ in range(_MOST_STEPS):
        yield obj
        if not follow_wrapped and isinstance(obj, types.FunctionType) and _given_to_compile(obj) is None:
            return
        inner = _inside(obj)
        if inner is None:
            return
        obj = inner


def _given_to_compile(obj: Any) -> Any:
    """Return what ``torch.compile`` made ``obj`` of; ``None`` if it did not."""
    if sys.modules.get("torch") is None:
        return None
    from .capture.torch_private import compiled_callables

    return compiled_callables.given_to_compile(obj)


def _inside(obj: Any) -> Any:
    """Return the object that ``obj`` calls when it is called: one step, ``None`` at the end."""
    if isinstance(obj, (type, types.ModuleType, CodeType)):
        return None
    given = _given_to_compile(obj)
    if given is not None:
        return given
    if sys.modules.get("torch") is not None and isinstance(obj, sys.modules["torch"].nn.Module):
        return obj.forward
    if isinstance(obj, (functools.partial, functools.partialmethod, functools.cached_property,
                        functools.singledispatchmethod)):
        return obj.func
    if isinstance(obj, property):
        return obj.fget
    inner = next((inner for name in _INSIDE if (inner := _own(obj, name)) is not None), None)
    if inner is not None or code_in(obj) is not None:
        return inner
    call = inspect.getattr_static(type(obj), "__call__", None)  # (of its class, if that is written in Python)
    return call if isinstance(call, types.FunctionType) or hasattr(call, "__wrapped__") else None


def _own(obj: Any, name: str) -> Any:
    """Return an attribute that ``obj`` really has, without a ``__getattr__`` that answers to every name."""
    try:
        inspect.getattr_static(obj, name)
        return getattr(obj, name)
    except Exception:  # noqa: BLE001  (properties of foreign objects raise what they like)
        return None


def why_no_code(obj: Any) -> str:
    """Return one sentence: what ``obj`` is, why it has no source, and what to give instead."""
    last = list(unwrapped(obj))[-1]
    name = getattr(last, "__qualname__", None) or getattr(last, "__name__", None) or type(last).__name__
    through = "" if last is obj else f" (reached through a {type(obj).__name__})"
    if isinstance(last, type):
        methods = [key for key, value in vars(last).items() if code_in(getattr(value, "__func__", value))]
        example = next((key for key in ("forward", "__call__", "__init__") if key in methods), (methods or [""])[0])
        remedy = f"give one of its methods, for example {name}.{example}" if example else "it defines no Python method"
        return f"{name}{through} is a class: {remedy}"
    if isinstance(last, types.ModuleType):
        return f"{name}{through} is a module: give one of its functions"
    if callable(last):
        return f"{name}{through} is not written in Python ({type(last).__name__}), so it has no bytecode: " \
               "give a Python function or a code object"
    for_files = "; for a file, use the command `depyf decompile FILE`" if isinstance(last, str) else ""
    return f"a value of type {type(last).__qualname__}{through} has no code: give a function, a method or a code " \
           f"object{for_files}"
