"""Events of torch's structured trace, as they are made, with whole paths of files; an action before the first one."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Literal

from ..import_hook import when_imported
from . import hooks, private_api
from .current_compilation import compile_id
from .hooks import SharedPatch, Undo, shared_patch

#: Whether an event of the trace is wanted; ``"metadata"``: without its payload; ``"payload"``: without its metadata;
#: ``"object"``: the numbers of the compilation, and its payload before torch makes JSON of it.
Wanted = bool | Literal["metadata", "payload", "object"]
TRACE_LOGGER = private_api.TRACE_LOG.key
#: Arguments of an event that do not change what we receive of it inside of a compilation (but for the numbers of that,
#: where they are suppressed).
_KNOWN_ARGUMENTS = frozenset(
    {"payload_fn", "suppress_context", "expect_trace_id", "record_logging_overhead", "compile_id"})


class TraceHandler(logging.Handler):
    """Passes events of torch's structured trace on; arguments as of :func:`on_trace`."""

    def __init__(self, receive: Callable[[dict[str, Any], Any], None], wanted: Callable[[str, str], Wanted]) -> None:
        super().__init__(logging.DEBUG)
        self.receive = receive
        self.wanted = wanted

    def handle(self, record: logging.LogRecord) -> bool:
        """Pass the event to the receiver without the handler's lock, which could deadlock with the receiver's own."""
        metadata = getattr(record, "metadata", None)
        if metadata:
            self.receive(metadata, getattr(record, "payload", None))
        return True


def on_trace(receive: Callable[[dict[str, Any], Any], None], wanted: Callable[[str, str], Wanted]) -> Undo:
    """Call ``receive(metadata, payload)`` for events of torch's structured trace.

    Args:
        wanted: returns whether an event is needed, by its kind and, for an ``artifact``, its name. Others may come,
            too; while there are no other handlers they are mostly not made (torch prints a graph before and after each
            of its passes, which costs more than all that we do).
    """
    private_api.TRACE_LOG.get()
    logger = logging.getLogger(TRACE_LOGGER)
    handler = TraceHandler(receive, wanted)
    undo = contextlib.ExitStack()
    undo.callback(_choose_trace())
    logger.addHandler(handler)
    undo.callback(logger.removeHandler, handler)
    return undo.close


def _choose_trace() -> Undo:
    """Skip events that none of depyf's handlers reads, while there are no other handlers."""
    original = private_api.TRACE_STRUCTURED.get_or(None)
    if original is None:
        return lambda: None
    logger = logging.getLogger(TRACE_LOGGER)

    @functools.wraps(original)
    def trace_structured(name: str, metadata_fn: Callable[[], Any] = dict, *args: Any, **kwargs: Any) -> None:
        handlers = [handler for handler in logger.handlers if type(handler) is TraceHandler]
        if not handlers or len(handlers) < len(logger.handlers):
            original(name, metadata_fn, *args, **kwargs)
            return
        try:
            metadata = metadata_fn() if name == "artifact" else None
            artifact = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
            wanting = [(handler, answer) for handler in handlers if (answer := handler.wanted(name, artifact))]
            kinds = {answer for _, answer in wanting}
            if not kinds:
                return
            if kinds == {"metadata"}:
                kwargs = {**kwargs, "payload_fn": str}
            elif kinds <= {"payload", "object"}:
                metadata_fn = dict
            current = compile_id()
            if current is None or args or kwargs.get("suppress_context") or not kwargs.keys() <= _KNOWN_ARGUMENTS:
                original(name, metadata_fn, *args, **kwargs)
                return
            # (Torch hashes the payload and makes a record of logging, which nothing here reads.)
            made = metadata_fn()
            payload = kwargs["payload_fn"]() if "payload_fn" in kwargs else None
            if not (payload is None or isinstance(payload, str) or kinds == {"object"}):  # (torch makes JSON of it)
                original(name, lambda: made, **{**kwargs, "payload_fn": lambda: payload})
                return
            event = {name: made, **dict(zip(("frame_id", "frame_compile_id", "attempt"), current))}
            for handler, _ in wanting:
                handler.receive(event, payload)
        except Exception:
            return  # without us the event would not be made: the program must not see that this raises

    # (Torch looks for frames of the program by their files, while it makes the metadata: this one is none of them.)
    function: Any = trace_structured
    function.__code__ = function.__code__.replace(co_filename=str(private_api.TRACE_STRUCTURED.owner().__file__))

    def make(_: SharedPatch[None]) -> Undo:
        return _rebound(private_api.TRACE_STRUCTURED.attribute, original, trace_structured)

    return shared_patch("the choice of events").acquire(None, make)


def interned_string(number: int) -> str:
    """Return the file name of a number in torch's trace (torch/_logging/structured.py, ``intern_string``)."""
    table = private_api.INTERN_TABLE.get_or({})
    return next((str(text) for text, known in table.items() if known == number), f"<file {number}>")


def _rebound(name: str, old: Any, new: Any) -> Undo:
    """Replace a function in all modules of torch that imported it by its name; return what undoes that.

    (There are thousands of modules. In others that have it, too, only more events are made.)
    """
    before = sys.modules.copy()
    holders = [names for path, module in before.items() if path.startswith("torch")
               and type(names := getattr(module, "__dict__", None)) is dict and names.get(name) is old]
    for names in holders:
        names[name] = new

    def undo() -> None:
        now = sys.modules.copy()
        later = [now[path].__dict__ for path in now.keys() - before.keys()
                 if path.startswith("torch") and type(now[path]) is ModuleType]
        for names in (*holders, *later):
            if names.get(name) is new:
                names[name] = old

    return undo


# --- before the first compilation --------------------------------------------------------------------
#: A frame is about to be compiled.
FRAME = private_api.COMPILED_FRAME
CALL = private_api.STANCE  #: What ``torch.compile`` returned is about to run.


def before_first(action: Callable[[], None], moment: private_api.PrivateApi = FRAME) -> Undo:
    """Have the action called once, before torch compiles a frame, a graph without one, or continues an earlier one.

    (A backward graph may be compiled long after its forward graph. Torch's trace reports that, and direct calls of
    its compilers.) The action must not raise. Torch is as it was before when it is called, in whatever thread, and what
    it replaces there counts for this call. Torch is not imported for this. Returns what cancels it.

    Args:
        moment: a function of torch's that is called then, :data:`FRAME` or :data:`CALL`.
    """
    undo: list[Callable[[], None]] = []
    waiting = [action]

    def end() -> None:
        waiting.clear()
        while undo:
            with contextlib.suppress(Exception):  # an error in depyf is not the program's
                undo.pop()()

    def begin() -> None:
        try:
            wanted = waiting.pop()  # (by one thread)
        except IndexError:
            return
        end()
        wanted()

    def wait(api: private_api.PrivateApi, _: object) -> None:
        def first(original: Any, *args: Any, **kwargs: Any) -> Any:
            # (Other code that wrapped our function would call it again.)
            ours = getattr(getattr(api.get(), "__code__", None), "co_filename", "") == hooks.__file__
            release()
            begin()
            if isinstance(kwargs.get("skip"), int):
                kwargs["skip"] += 2  # how many frames above are torch's: these are two more
            return (api.get() if ours else original)(*args, **kwargs)

        try:
            release = hooks.replaced(api, first)
            undo.append(release)
        except Exception:  # another torch: at once, unless it only shows no graphs or exports otherwise
            if api is moment:
                begin()

    logger = logging.getLogger(TRACE_LOGGER)
    waiter = TraceHandler(lambda *event: begin(), lambda *name: True)
    undo.append(lambda: logger.removeHandler(waiter))
    logger.addHandler(waiter)
    try:
        for api, imported in ((moment, moment), (private_api.SHOWN_GRAPH, FRAME), (private_api.EXPORT,) * 2):
            undo.append(when_imported(imported.first_place[0], functools.partial(wait, api)))
    except Exception:  # ours
        end()
        raise
    return end


# --- paths that torch prints shortened ---------------------------------------------------------------
def full_paths(files: Callable[[], Iterable[Any]]) -> Callable[[str], str]:
    """Return a function from a path as torch prints it to the path, where torch cut it in the middle of a name.

    torch/utils/_traceback.py, ``shorten_filename``, cuts what a path has in common with torch's own and one
    character more; where only the root is common, that removes the first letter of a name. Any other path, and one
    that no file fits, remains as it is.

    Args:
        files: returns the paths that may be meant.
    """
    @functools.cache
    def full_path(shown: str) -> str:
        torchs = os.path.dirname(str(sys.modules["torch"].__file__))
        # (A file of torch or of a package beside it is cut at a whole name.)
        if os.path.isabs(shown) or any(
                os.path.exists(os.path.join(folder, shown)) for folder in (torchs, os.path.dirname(torchs))):
            return shown
        return next((file for file in files() if isinstance(file, str) and _is_cut(file, shown)), shown)

    return full_path


def _is_cut(file: str, shown: str) -> bool:
    """Return whether torch prints the path of a file as ``shown``, cut in the middle of a name."""
    shorten = private_api.SHORT_PATHS.get_or(str)
    return file.endswith(shown) and not file.endswith((os.sep + shown, "/" + shown)) and os.path.isabs(file) \
        and shorten(file) == shown != file


def cut_paths(files: Iterable[str]) -> dict[str, str]:
    """Return ``{path as torch prints it: path}`` of files that torch cuts in the middle of a name."""
    shorten = private_api.SHORT_PATHS.get_or(str)
    packages = os.path.dirname(os.path.dirname(str(sys.modules["torch"].__file__))) + os.sep
    return {shown: file for file in reversed([*files]) if not file.startswith(packages) and os.path.isabs(file)
            and _is_cut(file, shown := shorten(file))}
