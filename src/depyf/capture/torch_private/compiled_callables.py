"""What ``torch.compile`` returns, the arguments that it got, and each call of a compiled function before it runs."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import BuiltinFunctionType, FrameType, FunctionType
from typing import Any, NamedTuple

from ...records.model import SourceLocation
from . import hooks, private_api
from .current_compilation import frames
from .hooks import Undo


def backend_name(compiler: Any) -> str:
    """Return the name of a backend, found inside torch's wrappers: its ``compiler_name``, else its own name."""
    for backend in wrapped_backends(compiler):
        name = getattr(backend, "compiler_name", None)
        if isinstance(name, str) and not name.startswith("<"):  # (as an object that has no name is printed)
            return name
    given = getattr(backend, "compiler_fn", backend)
    return str(getattr(given, "__name__", type(given).__name__))


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
        if (inner := given_to_compile(compiled)) is None:
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
    wrapper = next((each for each in islice(frames(frame), 8) if each.f_code.co_name == _WRAPPER
                    and each.f_globals.get("__name__") == module), None)
    values = wrapper.f_locals if wrapper is not None else {}
    if values.get("prior") not in (None, False) or not {"fn", "args", "kwargs", "self"} <= set(values):
        return None
    # The innermost line that is not torch's own.
    place = next((SourceLocation(each.f_code.co_filename, each.f_lineno or 0, each.f_code.co_name)
                  for each in frames(wrapper) if not f"{each.f_globals.get('__name__')}.".startswith("torch.")), None)
    return CompiledCall(values["fn"], values["args"], values["kwargs"], values["self"], place)


# --- arguments of ``torch.compile`` besides the backend ----------------------------------------------
#: Types of which a value is shown as it is.
_PLAIN = (bool, int, float, str, type(None))
#: Objects that are shown by their own name: reading it runs nothing of the program's.
_NAMED = (type, FunctionType, BuiltinFunctionType)
#: Characters of a text, items of a value, and values in one another that are shown; ``...`` for the rest.
_LONGEST, _MOST, _DEEPEST = 300, 30, 3
_WIDEST = 1000  #: Bits of a whole number that is shown. (Python refuses to write very long ones.)


def compile_arguments(backend: Any, fullgraph: Any, hooks: Any) -> dict[str, str] | None:
    """Return the arguments of ``torch.compile`` that are not at their default, as Python.

    What is no plain value is a bare name there. ``None`` where they are not known: it was not ``torch.compile`` that
    made the backend, or this torch has them elsewhere.

    Args:
        backend: what Dynamo passes graphs to, with ``mode``, ``options`` and ``dynamic`` of ``torch.compile``.
        fullgraph: whether a graph break is an error.
        hooks: what Dynamo calls while it compiles: ``torch.compile`` moves the filter of guards there.
    """
    given = next(filter(None, map(_given, wrapped_backends(backend))), None)
    if given is None:
        return None
    mode, options, dynamic = given
    guard_filter = getattr(hooks, private_api.GUARD_FILTER.key, None)
    if guard_filter is not None:
        options = {**options, private_api.GUARD_FILTER.key: guard_filter}
    elif hooks is not None and not hasattr(hooks, private_api.GUARD_FILTER.key) \
            and private_api.GUARD_FILTER_OPTION.as_expected():
        return None  # it is elsewhere (torch.compile of 2.6 takes no such option)
    plain = {"mode": mode, "dynamic": dynamic, "fullgraph": fullgraph or None}
    shown = {name: _shown(value) for name, value in plain.items() if value is not None}
    # (Each option by itself: what is long is cut.)
    pairs = ", ".join(f"{_shown(name)}: {_shown(value)}" for name, value in options.items())
    return shown | ({"options": "{" + pairs + "}"} if options else {})


def _given(backend: Any) -> tuple[Any, dict[str, Any], Any] | None:
    """Return mode, options and dynamic, where ``torch.compile`` made a backend; else ``None``."""
    if type(backend) is private_api.COMPILE_INDUCTOR.get_or(None):
        config = dict(backend.config)
        # (A mode is a set of options, and torch has only these.)
        modes = private_api.INDUCTOR_MODES.get_or(lambda *_: {})(None, backend.dynamic) if config else {}
        mode = next((name for name, options in modes.items() if options == config), None)
        return mode, {} if mode else config, backend.dynamic
    if type(backend) is private_api.COMPILE_BACKEND.get_or(None):
        options = backend.kwargs.get("options")
        # (By type, and without what a class of the program's does instead.)
        given = dict.copy(options) if issubclass(type(options), dict) else {}
        return backend.kwargs.get("mode"), given, backend.dynamic
    return None


def _shown(value: Any, depth: int = 0) -> str:
    """Return a value as Python; for what is no plain value a name, as its ``repr`` is the program's code."""
    kind = type(value)
    if kind is str and len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r} + ..."
    if kind is int and value.bit_length() > _WIDEST:
        return "int"
    if kind in _PLAIN:
        return repr(value)
    if kind not in (dict, list, tuple) or depth > _DEEPEST:
        return _name(value)
    cut = ["..."] * (len(value) > _MOST)
    if kind is dict:
        pairs = [f"{_shown(key, depth + 1)}: {_shown(each, depth + 1)}" for key, each in islice(value.items(), _MOST)]
        return "{" + ", ".join([*pairs, *(f"{each}: {each}" for each in cut)]) + "}"
    inner = ", ".join([*(_shown(each, depth + 1) for each in islice(value, _MOST)), *cut])
    return f"[{inner}]" if kind is list else f"({inner}{',' * (len(value) == 1)})"


def _name(value: Any) -> str:
    """Return the name of a function or class; of anything else that of its type, as a class of its own may run code."""
    name = value.__name__ if type(value) in _NAMED else type.__dict__["__name__"].__get__(type(value))
    if type(name) is str and name.isidentifier() and not keyword.iskeyword(name):
        return name
    return "function" if type(value) is FunctionType else "object"


# --- settings of torch -------------------------------------------------------------------------------


def draws_as_eager() -> bool:
    """Return whether Inductor's code draws the random numbers that eager Python draws."""
    return bool(getattr(private_api.INDUCTOR_SETTINGS.get_or(None), "fallback_random", False))


def options_of_inductor() -> list[str]:
    """Return the options of ``torch._inductor.config`` that are not at their default: ``["max_autotune = True"]``.

    (Torch lists each that was ever set, also those that it set back.)
    """
    known = private_api.INDUCTOR_OPTIONS.get_or({})
    lines = private_api.CHANGED_OPTIONS.get_or(str)().splitlines()
    options = [line.removeprefix(private_api.CHANGED_OPTIONS.module + ".") for line in lines]
    return [option for option in options if (parts := option.partition(" = ")) and (
        repr(getattr(known.get(parts[0]), "default", ...)) != parts[2])]
