"""Who calls a function that was compiled: a compiled function, a library, or the program itself."""

from __future__ import annotations

import re
from itertools import takewhile

from ...records.model import Compilation
from ...torch_text.libraries import is_library
from ...torch_text.resumes import resumed_function
from ..run_index import RunIndex
from ..verdict import is_outermost, wrapper_in
from .program_files import is_installed

#: Files through which torch calls a function of the user's; the last for one under ``@torch.no_grad()``.
_OF_TORCH = re.compile(r"torch[\\/](?:_dynamo[\\/]|nn[\\/]modules[\\/]module\.py$|utils[\\/]_contextlib\.py$)")


def compiled_caller(run: RunIndex, compilation: Compilation) -> tuple[str, Compilation | None]:
    """Return the function that the program has compiled, in which the values may be made that this one gets.

    With it comes its compilation. ``""`` where the program itself makes the call.
    """
    summary = run.summary_of[compilation.compile_id.key]
    resumed = resumed_function(compilation.function) is not None
    if is_outermost(summary) and not resumed:
        return "", None
    before = list(takewhile(lambda each: each is not compilation, run.capture.compilations))
    for place in compilation.stack:
        # (Of functions of one name in a file it is the last that begins before; of those behind one wrapper, one that
        # is on the stack, too, or else the last that was compiled.)
        begun = [(each.location.line, _is_called_through(each, compilation), order, each)
                 for order, each in enumerate(before) if each.location is not None
                 and (each.location.filename, each.function) == (place.filename, place.function)
                 and each.location.line <= place.line]
        if begun and not any(_is_wrapped(each, compilation) for *_, each in begun):
            caller = max(begun, key=lambda each: each[:3])[-1]
            return _title(run, caller), caller
    return (summary.title, summary.compilations[0]) if resumed else ("", None)


def is_called_by_library(compilation: Compilation) -> bool:
    """Return whether a function is called from a file that is not the user's."""
    caller = next((place for place in reversed(compilation.stack)
                   if not _OF_TORCH.search(place.filename) and not wrapper_in(place)), None)
    return caller is not None and (is_library(caller.filename) or is_installed(caller.filename))


def _title(run: RunIndex, compilation: Compilation) -> str:
    """Return the user's name of a function, wrapped or not."""
    meant = compilation.user_function
    return meant.name if meant is not None and meant.wrappers else run.summary_of[compilation.compile_id.key].title


def _is_wrapped(wrapper: Compilation, compilation: Compilation) -> bool:
    """Return whether a compilation is of the function that another one wraps, and no part of that one's own."""
    meant = wrapper.user_function
    return meant is not None and bool(meant.wrappers) and meant.location is not None and meant.location.is_at(
        compilation.location)


def _is_called_through(wrapper: Compilation, called: Compilation) -> bool:
    """Return whether the function that a compilation wraps is on the stack of another one."""
    meant = wrapper.user_function
    return meant is not None and meant.location is not None and any(
        (place.filename, place.function) == (meant.location.filename, meant.location.function)
        and place.line >= meant.location.line for place in called.stack)
