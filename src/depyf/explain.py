"""The account of one function's compilation, without a running session; and the page, as a notebook shows it."""

from __future__ import annotations

import os
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .old_names import find
from .source import code_in, code_of, unwrapped

if TYPE_CHECKING:
    from .notebook import View
    from .records.model import Capture


def __getattr__(name: str) -> Any:
    return find(__name__, name)


def dump_src(fn: Any, module: ModuleType | dict[str, Any] | None = None) -> str:
    """Return the full code of a compiled function, as text.

    Works on any function that ``torch.compile`` returned and that has run, also outside
    :class:`depyf.prepare_debug`. Graphs are shown where the backend stored them (``eager``).

    Args:
        fn: the function, as ``torch.compile`` returned it or the original; or its code object.
        module: where it was defined, or the globals of that, needed for a code object: resume functions and graphs are
            found among them.

    Raises:
        TypeError: ``fn`` is nothing that can be compiled.
        ValueError: it has not been compiled (call it first).
    """
    from .views.dump.full_code import full_code

    capture = _live(fn, module, "dump_src")
    return full_code(capture.functions[0], capture)


def interactive(what: Any, *args: Any, height: int | None = None, **kwargs: Any) -> View:
    """Show the page of a run (docs/page.md) in a notebook: Jupyter, VS Code, Colab. It needs no network.

    ``interactive(compiled, *args)`` calls the function and shows what that compiled; ``interactive(compiled)`` shows
    what torch still has of a function that has run; ``interactive("dump")`` shows a dump, that of several ranks too.

    Args:
        what: a function or module, as ``torch.compile`` returned it (one that is not compiled yet is, with the default
            backend, if there are arguments); or a directory that :class:`depyf.prepare_debug` wrote, its
            ``records.jsonl``, a log of ``TORCH_TRACE``; or the ``prepare_debug`` itself.
        *args, **kwargs: of the call.
        height: of the page, in pixels (the reader can change it); 640 if not given.

    Returns:
        A :class:`depyf.notebook.View`, which a notebook shows if it is the value of a cell. ``result`` is what the
        function returned.

    Raises:
        TypeError: ``what`` is nothing of the kind.
        ValueError: a function without arguments that has no compiled version; a height too low.
        RecordsError: no records are there.
    """
    from .notebook import HEIGHT, View
    from .prepare import prepare_debug
    from .recorded_runs import shown

    pixels = HEIGHT if height is None else height
    if isinstance(what, prepare_debug):
        what = what.path or what.wanted
    if isinstance(what, (str, os.PathLike)):
        if args or kwargs:
            raise TypeError("a directory takes no further arguments")
        path = os.fspath(what)
        return View.of(shown(path), path, height=pixels)
    if not callable(what):
        raise TypeError(
            f"interactive got a {type(what).__name__}; give a function or a directory that prepare_debug wrote")
    if args or kwargs:
        return _called(what, args, kwargs, pixels)
    return View.of(_live(what, None, "interactive"), height=pixels, notes=[
        "As torch has it now: without the story of its compilation, and graphs only where the backend kept them."])


def _called(what: Any, args: tuple[Any, ...], kwargs: dict[str, Any], height: int) -> View:
    import torch

    from .capture.torch_private import compiled_callables
    from .notebook import View
    from .notebook.view import temporary
    from .prepare import prepare_debug
    from .recorded_runs import shown

    if compiled_callables.innermost_function(what) is what and getattr(what, "_compiled_call_impl", None) is None:
        what = torch.compile(what)
    block = prepare_debug(temporary(), files="now")
    with block:
        result = what(*args, **kwargs)
    capture = shown(block.path)
    notes = []
    if not getattr(capture, "functions", ()) and not getattr(capture, "compilations", ()):
        notes.append("Nothing was compiled by this call.")
        try:
            capture = _live(what, None, "interactive")
            notes.append("What was compiled before is shown, as torch has it (graphs only where the backend kept "
                         "them). To see all of it compiled, run torch.compiler.reset() first.")
        except (TypeError, ValueError):
            pass
    return View.of(capture, block.path, notes=notes, height=height, result=result)


def _module_of(fn: Any, code: CodeType) -> Any:
    """Return the module of which the code is the ``forward``: ``fn``, or what ``torch.compile`` made it of."""
    modules = getattr(fn, "__dict__", {}).get("_modules")
    original = modules.get("_orig_mod") if isinstance(modules, dict) else None
    for each in (original, fn):
        if getattr(getattr(type(each), "forward", None), "__code__", None) is code:
            return each
    return None


def _live(fn: Any, module: ModuleType | dict[str, Any] | None, caller: str) -> Capture:
    """Return the records of a compiled function, as torch has them."""
    from .capture.live import capture_of
    from .capture.torch_private import cache_entries
    from .capture.user_function import meant_by_frame, meant_by_function, values_of

    code_of(fn)  # says what it is instead, if there is no code
    # Torch compiles the wrapper that it is given, not what that wraps; of modules of its own, a wrapper that it makes.
    compiled = (fn, getattr(fn, "__dict__", {}).get("forward"))
    codes: list[tuple[Any, CodeType]] = [
        (each, code) for wrapper in compiled for each in unwrapped(wrapper) if (code := code_in(each)) is not None]
    inner, code = next((each for each in codes if cache_entries.cache_entries(each[1])), codes[0])
    namespace = getattr(inner, "__globals__", {}) if module is None else \
        vars(module) if isinstance(module, ModuleType) else module
    function = getattr(inner, "__func__", inner)
    this = getattr(inner, "__self__", None)
    if this is None:
        this = _module_of(fn, code)
    if isinstance(function, FunctionType):
        capture = capture_of(code, namespace, meant_by_function(function, this), values_of(function, this))
    else:
        capture = capture_of(code, namespace, meant_by_frame(code, {}, namespace))
    if not capture.functions or not capture.functions[0].frames[0].entries:
        raise ValueError(
            f"{getattr(inner, '__qualname__', inner)!r} has no compiled version. Compile it with torch.compile, "
            f"call it, and then call {caller}.")
    return capture
