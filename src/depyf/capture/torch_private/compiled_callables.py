"""What ``torch.compile`` returns, what it got, and each call of it before it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple

from ...records.model import SourceLocation
from . import hooks, private_api
from .shared import Undo
from .stack import frames


def backend_name(compiler: Any) -> str:
    """Return the name of a backend, found inside torch's wrappers: its ``compiler_name``, else its own name."""
    for backend in wrapped_backends(compiler):
        name = getattr(backend, "compiler_name", None)
        if isinstance(name, str):
            return name
    return str(getattr(backend, "__name__", type(backend).__name__))


def wrapped_backends(compiler: Any) -> Iterator[Any]:
    """Yield a backend, then what torch wrapped in it, to the innermost."""
    for _ in range(10):
        yield compiler
        inner = inner_backend(compiler) or getattr(
            getattr(compiler, "__self__", None), private_api.DDP_BACKEND.key, None)
        if inner is None:
            break
        compiler = inner


def inner_backend(compiler: Any) -> Any:
    """Return the backend that torch wrapped in another callable; ``None`` if it is no such wrapper."""
    return getattr(compiler, private_api.BACKEND_CHAIN.key, None) or getattr(
        compiler, private_api.ORIGINAL_CALLABLE.key, None)  # (up to 2.6)


def innermost_function(compiled: Any) -> Any:
    """Return the user's function inside what ``torch.compile`` returned."""
    for _ in range(20):
        inner = given_to_compile(compiled)
        if inner is None:
            break
        compiled = inner
    return compiled


def given_to_compile(compiled: Any) -> Any:
    """Return the object for which ``torch.compile`` returned ``compiled``; ``None`` if it did not return that."""
    own = getattr(compiled, "__dict__", None)
    if not isinstance(own, Mapping):
        return None
    given = own.get(private_api.ORIGINAL_CALLABLE.key)
    return own.get("_modules", {}).get("_orig_mod") if given is None else given


# --- calls of compiled functions ---------------------------------------------------------------------
#: The function inside that ``torch.compile`` returns, and its variables.
_WRAPPER = "compile_wrapper"


class CompiledCall(NamedTuple):
    """A call that is about to run."""

    function: Any  # what was given to `torch.compile`: a function, or a method of a module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    compile: Callable[[Any], Any]  # makes of the function what `torch.compile` returned, again
    place: SourceLocation | None = None  # the program's line that makes the call, where one is above


def on_compiled_call(before: Callable[[FrameType], None]) -> Undo:
    """Call ``before`` for each call of a compiled function, with the frame that :func:`outermost_call` reads.

    What it raises reaches the program.

    Raises:
        MissingPrivateApi: this torch cannot be asked.
    """
    def callback_from_stance(original: Any, callback: Any) -> Any:
        result = original(callback)
        if callback not in (None, False):
            before(sys._getframe(1))
        return result

    return hooks.replaced(private_api.STANCE, callback_from_stance)


def outermost_call(frame: FrameType) -> CompiledCall | None:
    """Return the call that is about to run; ``None`` if it is made inside of compiled code."""
    module = private_api.STANCE.module
    wrapper = next((each for each in islice(frames(frame), 4) if each.f_code.co_name == _WRAPPER
                    and each.f_globals.get("__name__") == module), None)
    values = wrapper.f_locals if wrapper is not None else {}
    if values.get("prior") not in (None, False) or not {"fn", "args", "kwargs", "self"} <= set(values):
        return None
    # The innermost line that is not torch's own.
    place = next((SourceLocation(each.f_code.co_filename, each.f_lineno or 0, each.f_code.co_name)
                  for each in frames(wrapper) if not f"{each.f_globals.get('__name__')}.".startswith("torch.")), None)
    return CompiledCall(values["fn"], values["args"], values["kwargs"], values["self"], place)
