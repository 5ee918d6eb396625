"""Hooks into torch: a function for each that watching needs; several sessions share the changes that they make.

Where this torch lacks the name that a function needs, it raises
:class:`~depyf.capture.torch_private.private_api.MissingPrivateApi` (an ``AttributeError``) or does without.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Generic, TypeVar

from ..import_hook import when_imported
from . import current_compilation, private_api
from .current_compilation import frames

# --- changes that several sessions want at once ------------------------------------------------------
# Each change is made once, for the first session that wants it, and undone for the last. So torch is left as it was
# also where two sessions overlap (in two threads: one begins, the other begins, the first ends).
Undo = Callable[[], None]
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
Wanted = TypeVar("Wanted")


class SharedPatch(Generic[Wanted]):
    """A reference-counted patch of torch: made for the first who wants it, undone for the last."""

    def __init__(self) -> None:
        #: The wishes of the present users, in order. (Replaced, never changed: it is read without the lock.)
        self.wanted: tuple[Wanted, ...] = ()
        self._users: dict[object, Wanted] = {}
        self._undo: Undo | None = None
        self._lock = threading.Lock()

    def acquire(self, wish: Wanted, make: Callable[[SharedPatch[Wanted]], Undo]) -> Undo:
        """Add a wish; what is returned withdraws it.

        ``make`` makes the change, where it is not made, and returns what undoes it. The change reads :attr:`wanted`.
        """
        user = object()  # two users may want the same
        with self._lock:
            if self._undo is None:
                self._undo = make(self)
            self._users[user] = wish
            self.wanted = tuple(self._users.values())

        def release() -> None:
            with self._lock:
                if user not in self._users:
                    return
                del self._users[user]
                self.wanted = tuple(self._users.values())
                if not self._users and self._undo is not None:
                    undo, self._undo = self._undo, None
                    undo()

        return release


_known: dict[Any, SharedPatch[Any]] = {}
_knowing = threading.Lock()


def shared_patch(key: Any) -> SharedPatch[Any]:
    """Return the patch of a key, the same one each time."""
    with _knowing:
        return _known.setdefault(key, SharedPatch())


def leave_traceback(error: BaseException) -> None:
    """Drop the frames of this package at the beginning of the traceback of an error that passes through them.

    To be followed by a bare ``raise``, which does not add the frame again (with Python 3.11 and later; before, the
    frames remain).
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_HERE):
        traceback = traceback.tb_next
    if traceback is not None:  # (else the error is ours)
        error.__traceback__ = traceback


BYTECODE_LOGGER = private_api.BYTECODE_LOG.key


def missing() -> list[private_api.PrivateApi]:
    """Return the private API that a dump needs and this torch lacks, of the modules that the program has it import."""
    return [api for api in private_api.TABLE if api.loses and api.imported() and not api.present()]


@functools.cache
def never_compile() -> None:
    """Make Dynamo run our functions as they are.

    A backward graph may be compiled inside a compiled frame, and our hooks with it. Once for each process: torch adds
    to a list, and looks through all of it for each file.
    """
    private_api.NEVER_COMPILE.get()("depyf")


def on_bytecode(hook: Callable[[CodeType, CodeType], CodeType | None]) -> Undo:
    """Register ``hook(original, transformed)`` for each code object that Dynamo makes.

    What it returns runs in place of the transformed code, unless it is ``None`` (torch/_dynamo/convert_frame.py,
    ``register_bytecode_hook``).
    """
    handle = private_api.BYTECODE_HOOK.get()(hook)
    return lambda: handle.remove()


def on_bytecode_when_imported(hook: Callable[[CodeType, CodeType], CodeType | None]) -> Undo:
    """:func:`on_bytecode`, for those who must not be the ones to import torch."""
    undo = contextlib.ExitStack()

    def imported(_: ModuleType) -> None:
        with contextlib.suppress(private_api.MissingPrivateApi):
            undo.callback(on_bytecode(hook))

    undo.callback(when_imported(private_api.BYTECODE_HOOK.first_place[0], imported))
    return undo.close


def replaced(api: private_api.PrivateApi, around: Callable[..., Any]) -> Undo:
    """Have calls of a function of torch's run ``around(original, *args, **kwargs)``.

    Several may do so and end in any order. If other code replaced it later and calls ours, ours does nothing.
    """
    owner, name = api.owner(), api.attribute

    def install(users: SharedPatch[Callable[..., Any]]) -> Undo:
        original = owner.__dict__[name]
        kind = type(original) if isinstance(original, (classmethod, staticmethod)) else None
        plain = original.__func__ if kind is not None else original

        @functools.wraps(plain)
        def function(*args: Any, **kwargs: Any) -> Any:
            call = plain
            for wanted in users.wanted:
                call = functools.partial(wanted, call)
            try:
                return call(*args, **kwargs)
            except BaseException as error:
                with contextlib.suppress(Exception):
                    leave_traceback(error)
                raise

        wrapper: Any = function if kind is None else kind(function)
        setattr(owner, name, wrapper)

        def undo() -> None:
            if owner.__dict__.get(name) is wrapper:
                setattr(owner, name, original)

        return undo

    return shared_patch((owner, name)).acquire(around, install)


def _after(api: private_api.PrivateApi, hook: Callable[..., None]) -> Undo:
    """``hook(result, *args, **kwargs)`` after each call of a function of torch's."""

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        hook(result, *args, **kwargs)
        return result

    return replaced(api, around)


def on_captured_graph(before: Callable[[Any, Any], None], after: Callable[[Any, Any], None]) -> Undo:
    """``before(graph module, backend)`` and ``after(graph module, what the backend returned)``."""

    def call_user_compiler(original: Any, self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
        before(gm, getattr(self, "compiler_fn", None))
        result = original(self, gm, *args, **kwargs)
        after(gm, result)
        return result

    return replaced(private_api.CAPTURED_GRAPH, call_user_compiler)


def on_traced_line(hook: Callable[[str, int], None]) -> Undo:
    """``hook(file, line)`` for each line that Dynamo reaches while it traces: thousands for a model."""
    return _after(private_api.TRACED_LINE, lambda _, filename, lineno, *args, **kwargs: hook(filename, lineno))


def on_frame(hook: Callable[[CodeType, bool], None]) -> Undo:
    """``hook(code, found)`` for each frame that torch is to compile; where it finds no tensor, it does not."""
    return _after(private_api.HAS_TENSOR, lambda found, frame, *args, **kwargs: hook(frame.f_code, bool(found)))


def on_generator(hook: Callable[[CodeType], None]) -> Undo:
    """``hook(code)`` for each generator function that torch is to compile, and does not."""
    return _after(private_api.GENERATOR, lambda found, code, *args, **kwargs: hook(code) if found else None)


def on_stance(hook: Callable[[str], None]) -> Undo:
    """``hook("eager_on_recompile")`` when a stance is set or restored; the skipping of guards is one of that name."""
    def call(_: Any, stance: Any) -> None:
        hook(str(getattr(stance, "stance", "default")))
        if getattr(stance, private_api.SET_STANCE.key, False):
            hook(private_api.SET_STANCE.key)

    return _after(private_api.SET_STANCE, call)


def on_aot_graph(before: Callable[[frozenset[str]], None], after: Callable[[str, Any, Any], None]) -> Undo:
    """Report each graph of AOTAutograd that a plain function compiles.

    ``after(stage, graph module, what was made of it)`` once the function compiled a graph, or failed to (``None`` was
    made), and ``before(stages)`` when AOTAutograd begins, with those that are compiled so.

    Inductor's own compilers are not wrapped: they are keys of its caches, and its graphs are not run.
    """
    stages = {"fw_compiler": "Forward_graph", "inference_compiler": "Forward_graph", "bw_compiler": "Backward_graph"}

    def aot_module_simplified(original: Any, *args: Any, **kwargs: Any) -> Any:
        plain = {key: stage for key, stage in stages.items() if isinstance(kwargs.get(key), FunctionType)}
        kwargs |= {key: observed(kwargs[key], stage) for key, stage in plain.items()}
        before(frozenset(plain.values()))
        return original(*args, **kwargs)

    def observed(compiler: FunctionType, stage: str) -> Any:
        @functools.wraps(compiler)
        def compile_graph(gm: Any, *args: Any, **kwargs: Any) -> Any:
            result = None
            try:
                result = compiler(gm, *args, **kwargs)
            except BaseException as error:
                with contextlib.suppress(Exception):
                    leave_traceback(error)
                raise
            finally:
                after(stage, gm, result)
            return result

        return compile_graph

    return replaced(private_api.AOT_GRAPHS, aot_module_simplified)


def on_export(
    begin: Callable[[], current_compilation.CompilerCall | None],
    after: Callable[[current_compilation.CompilerCall, Any, Exception | None], None],
) -> Undo:
    """``after(call, program, error)`` for each call of ``torch.export``: what it returned, or what it raised.

    One of them is ``None``. ``begin`` is :func:`.current_compilation.begin_export`, or returns ``None`` where that
    fails; then ``after`` is not called.
    """

    def export(original: Any, *args: Any, **kwargs: Any) -> Any:
        program = failure = None
        call = begin()
        try:
            program = original(*args, **kwargs)
        except Exception as error:
            failure = error
            raise
        finally:
            if call is not None:
                current_compilation.end_export()
                after(call, program, failure)
        return program

    return replaced(private_api.EXPORT, export)


def on_shown_graph(hook: Callable[[FrameType], None]) -> Undo:
    """``hook(frame)`` for each graph passed to ``lazy_format_graph_code``; :func:`shown_graph` finds the graph.

    Backends may have imported that function by its name, so what it makes its result with is replaced, not itself.
    """

    def lazy_string(original: Any, *args: Any, **kwargs: Any) -> Any:
        hook(sys._getframe())
        return original(*args, **kwargs)

    return replaced(private_api.SHOWN_GRAPH, lazy_string)


def shown_graph(frame: FrameType) -> tuple[str, Any, str] | None:
    """Return ``(name, graph module, module of the caller)`` of the graph that is being shown on a stack."""
    shows = next((each for each in islice(frames(frame), 12)  # (our frames may be between)
                  if each.f_code.co_name == "lazy_format_graph_code"), None)
    known = shows.f_locals if shows is not None else {}
    if shows is None or "gm" not in known or not isinstance(name := known.get("name"), str):
        return None
    number = known.get("maybe_id")
    caller = str(shows.f_back.f_globals.get("__name__")) if shows.f_back is not None else ""
    return name if number is None else f"{name} {number}", known["gm"], caller


def on_operations(api: private_api.PrivateApi, hook: Callable[[Callable[[], str]], None]) -> Undo:
    """``hook(text)`` when Inductor logs its operations (by ``UNFUSED`` or ``FUSED``); ``text()`` is torch's print."""

    def log_ir(original: Any, nodes: Any) -> Any:
        hook(lambda: "\n\n".join(str(node.debug_str()) for node in nodes))
        return original(nodes)

    return replaced(api, log_ir)


def on_kernel_module(after: Callable[[Any, str], None]) -> Undo:
    """``after(module, path)`` for each module that Inductor generated (from its caches, too)."""

    def load_by_key_path(original: Any, cls: Any, key: str, path: str, *args: Any, **kwargs: Any) -> Any:
        loaded = original(cls, key, path, *args, **kwargs)
        if hasattr(loaded, "call"):  # a wrapper with its kernels, not a single Triton kernel
            after(loaded, path)
        return loaded

    return replaced(private_api.KERNEL_MODULE, load_by_key_path)


# --- compiled code runs, nothing is compiled ---------------------------------------------------------
# Before compiled code runs, a function of torch's decides what to do with a frame that has no fitting cache entry
# (``private_api.STANCE``); here its answer is "run the frame as it is". Without it torch's public stance
# ``eager_on_recompile`` does the same, but does not report which function ran uncompiled. Without that one, too, torch
# compiles what does not fit.
@contextlib.contextmanager
def no_compilation(on_miss: Callable[[CodeType], None]) -> Iterator[bool]:
    """Have frames that fit no cache entry run their original code; yield whether ``on_miss`` is called for each."""
    answer = _eager_answer()
    if answer is not None:
        release = shared_patch("the answer to a miss").acquire(on_miss, functools.partial(_answer_misses, answer))
    else:  # (torch's own goes wrong where the first of two to set it is the first to end)
        release = shared_patch("the public stance").acquire(None, lambda _: _public_stance())
    try:
        yield answer is not None
    finally:
        release()


def _public_stance() -> Undo:
    stance = private_api.PUBLIC_STANCE.get_or(contextlib.nullcontext)("eager_on_recompile")
    stance.__enter__()
    return lambda: stance.__exit__(None, None, None)


def _answer_misses(answer: Callable[[], Any], users: SharedPatch[Callable[[CodeType], None]]) -> Undo:
    # (Not by `replaced`: a debugger steps through it on the way into each graph.)
    is_skipped = private_api.IS_SKIPPED.get()
    owner, name = private_api.STANCE.owner(), private_api.STANCE.attribute
    previous = private_api.STANCE.get()

    def callback_without_compiling(callback: Any) -> Any:
        if previous(callback) in (None, False):  # disabled, or already "run only"
            return previous(callback)

        def run_original(frame: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_skipped(frame.f_code):
                for on_miss in users.wanted:
                    on_miss(frame.f_code)
            return answer()

        # Cache entries belong to a backend, which torch finds by following this attribute.
        setattr(run_original, private_api.BACKEND_CHAIN.key, callback)
        return run_original

    setattr(owner, name, callback_without_compiling)

    def undo() -> None:
        if getattr(owner, name, None) is callback_without_compiling:
            setattr(owner, name, previous)

    return undo


def _eager_answer() -> Callable[[], Any] | None:
    """Return a function that makes torch's answer to run a frame, and what it calls, as it is; ``None`` without one."""
    try:
        private_api.STANCE.get()
        private_api.IS_SKIPPED.get()
        make, action = private_api.STANCE_ANSWER.get(), private_api.FRAME_ACTION.get()
        strategy = private_api.EXECUTION_STRATEGY.get()(action.DEFAULT, action.RUN_ONLY)
        make(frame_exec_strategy=strategy, apply_to_code=False)
    except (AttributeError, TypeError):
        return None
    return lambda: make(frame_exec_strategy=strategy, apply_to_code=False)
