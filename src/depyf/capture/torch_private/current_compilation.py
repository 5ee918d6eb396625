"""The compilation, or the call of one of torch's compilers, that this thread is in; found on its stack."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from itertools import dropwhile, takewhile
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from ...torch_text.libraries import enters_compiled_code, is_generated, is_public
from ...values import frozen
from . import private_api

if TYPE_CHECKING:
    from ...records.model import SourceLocation


# --- frames of torch's functions on the stack of this thread -----------------------------------------
def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def frame_of(api: private_api.PrivateApi) -> FrameType | None:
    """Return the innermost frame of a function of torch's; ``None`` where it is not on the stack."""
    try:
        module, function = api.module, api.attribute
    except private_api.MissingPrivateApi:
        return None
    return next((frame for frame in frames(sys._getframe()) if frame.f_code.co_name == function
                 and frame.f_globals.get("__name__") == module), None)


def variables_of(api: private_api.PrivateApi) -> Mapping[str, Any]:
    """Return the arguments and variables of a function of torch's on the stack; nothing where it is not there."""
    frame = frame_of(api)
    return frame.f_locals if frame is not None else {}


def is_exporting() -> bool:
    """Return whether this thread is in a call of ``torch.export`` that compiles no frame, or AOTInductor is at work.

    (That has the numbers under which a program was exported with ``strict=True``.)
    """
    aot = private_api.AOT_INDUCTOR.get_or(None) if private_api.AOT_INDUCTOR.imported() else None
    return bool(getattr(_exporting, "calls", ()) and is_without_frame() or getattr(aot, "aot_compilation", False))


def compile_id() -> tuple[int, int, int] | None:
    """Return ``(frame, recompile, attempt)`` of the compilation of a frame that this thread is in.

    (Since torch 2.15 ``torch.export`` has such numbers, too.)
    """
    if is_exporting():
        return None
    try:
        trace_id = private_api.COMPILE_ID.get()()
        current = trace_id.compile_id
        return int(current.frame_id), int(current.frame_compile_id), int(trace_id.attempt)
    except (AttributeError, TypeError):
        return None


@frozen
class CompiledFrame:
    """The frame that torch compiles: its code, its local variables (with captured ones) and its globals."""

    code: CodeType
    values: dict[str, Any]
    namespace: dict[str, Any]


def compiled_frame() -> CompiledFrame | None:
    """Return the frame being compiled, from inside a hook: torch's ``_compile`` is on the stack meanwhile."""
    known = variables_of(private_api.COMPILED_FRAME)
    code, values, namespace = (known.get(each) for each in ("code", "locals", "globals"))
    if not isinstance(code, CodeType):
        return None
    return CompiledFrame(
        code, values if isinstance(values, dict) else {},
        namespace if type(namespace) is dict and "__builtins__" in namespace else {})


def is_without_frame() -> bool:
    """Return whether Dynamo traces for a call, not for a frame: ``torch.export.export(strict=True)`` does.

    (No frame is replaced then, and torch reports neither the begin nor the end of the compilation.)
    """
    return private_api.COMPILED_FRAME.present() and frame_of(private_api.COMPILED_FRAME) is None


def arguments() -> dict[str, str] | None:
    """Return the arguments of ``torch.compile`` for the frame being compiled that are not at their default.

    ``None`` where they are not known.
    """
    known, names = variables_of(private_api.COMPILE_ARGUMENTS), private_api.COMPILE_ARGUMENTS.key.split(", ")
    if any(name not in known for name in names):
        return None
    from .compiled_callables import compile_arguments

    return compile_arguments(*(known[name] for name in names))


def name_of_graph(gm: Any = None) -> str:
    """Return torch's name of a captured graph, or of that which this thread's backend compiles; ``""`` if unknown."""
    gm = variables_of(private_api.CAPTURED_GRAPH).get("gm") if gm is None else gm
    meta = getattr(gm, "meta", None)
    name = meta.get(private_api.BACKEND_ID.key) if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


class Piece(NamedTuple):
    """A piece of a captured graph that its backend split, while the backend compiles it."""

    name: str  # of the submodule in the split graph: `"submod_1"`
    module: Any  # its graph module
    # for each of its inputs the node of the split graph that is passed to it: the parameter of an input, the name of
    # another node, `""` for a constant
    arguments: tuple[str, ...]


def piece() -> Piece | None:
    """Return the piece of a captured graph that this thread is compiling; ``None`` where a whole graph is compiled.

    A backend that splits its graph (DDPOptimizer, vLLM) runs the split graph by a ``torch.fx.Interpreter``, which
    compiles each submodule when it reaches the node that calls it: ``Interpreter.run_node(node)`` is on the stack.
    """
    interpreter = getattr(sys.modules.get("torch.fx"), "Interpreter", None)
    backend = frame_of(private_api.CAPTURED_GRAPH)
    if interpreter is None or backend is None:
        return None
    outermost = None  # (compilers interpret graphs, too)
    for frame in takewhile(lambda each: each is not backend, frames(sys._getframe())):
        code = frame.f_code
        if code.co_name != "run_node" or code.co_argcount < 2:
            continue
        runner: Any = frame.f_locals.get(code.co_varnames[0])
        node: Any = frame.f_locals.get(code.co_varnames[1])
        if isinstance(runner, interpreter) and getattr(node, "op", "") == "call_module":
            with contextlib.suppress(AttributeError):
                called = runner.module.get_submodule(node.target)
                if hasattr(called, private_api.READABLE_GRAPH.attribute):  # (no plain module)
                    outermost = Piece(str(node.target), called, tuple(
                        str(getattr(each, "target" if getattr(each, "op", "") == "placeholder" else "name", ""))
                        for each in node.args))
    return outermost


def aot_number() -> int | None:
    """Return ``3`` while AOTAutograd compiles what it calls ``"3_backward"``; ``None`` while it compiles nothing."""
    try:
        names = private_api.AOT_CONTEXT.get()()[0]
        return int(str(names[0]).partition("_")[0]) if names else None
    except (private_api.MissingPrivateApi, TypeError, ValueError, LookupError):
        return None


def callers() -> list[SourceLocation]:
    """Return who called the frame that torch is about to compile, outermost first; none where that cannot be known.

    (Torch's own event leaves out the last ones.)
    """
    compiling = frame_of(private_api.COMPILED_FRAME)
    if compiling is None or not private_api.COMPILING_DECORATORS.present():
        return []
    module = _module(compiling)
    between = {module, private_api.COMPILING_DECORATORS.module, "contextlib"}
    own = takewhile(lambda frame: (name := _module(frame)) in between or name.partition(".")[0] == "depyf",
                    frames(compiling))
    *_, outermost = (frame for frame in own if _module(frame) == module)
    from ...records.model import SourceLocation

    _, *places = [SourceLocation(*_place(frame), frame.f_code.co_name) for frame in frames(outermost)]
    return places[::-1]


def is_called_as_compiled() -> bool:
    """Return whether the program had the frame that torch looks at compiled, and plain Python did not call it."""
    module = private_api.GENERATOR.module
    outside = dropwhile(lambda frame: _module(frame) != module, frames(sys._getframe()))
    return enters_compiled_code(frame.f_code.co_filename for frame in outside if _module(frame) != module)


#: The line of the program that called for gradients, by the code that compiled autograd made for that.
_backward_lines: weakref.WeakKeyDictionary[CodeType, int] = weakref.WeakKeyDictionary()


def backward_line(code: CodeType) -> int:
    """Return the line of the program for whose gradients compiled autograd made a code object; 0 for other code."""
    if not is_generated(code.co_filename):
        return 0
    if code not in _backward_lines:
        compiled = dropwhile(lambda frame: _module(frame) != private_api.COMPILED_AUTOGRAD, frames(sys._getframe()))
        _backward_lines[code] = next((frame.f_lineno or 0 for frame in compiled if _is_of_program(_module(frame))), 0)
    return _backward_lines[code]


# --- compilations without a Dynamo frame -------------------------------------------------------------
# Where line 12 of ``app.py`` calls ``compile_fx(gm, inputs)`` and no ``torch.compile`` is above that, :func:`current`
# is ``CompilerCall("compile_fx", "app.py", 12, ...)`` until it returns.
#: Modules between torch and its caller that belong to neither.
_BETWEEN = ("contextlib", "functools", "logging", "depyf")


class CompilerCall(NamedTuple):
    """A call of a compiler, or of what shows a graph while no compiler is at work."""

    function: str  # what was called: `"compile_fx"`; without a compiler the caller's own function
    filename: str  # of its caller
    line: int
    by_compiler: bool = False  # whether that function is a compiler's
    # takes marks that live as long as the call; `None` without a compiler
    marks: MutableMapping[str, Any] | None = None
    # the number that AOTAutograd gave to what it compiles; a backward graph that is compiled later has the same
    aot: int | None = None


#: The calls of ``torch.export`` that this thread is in, as ``calls``, the innermost last.
_exporting = threading.local()


def begin_export() -> CompilerCall:
    """Make the call of ``torch.export`` that this thread is in the present one: what it has compiled belongs to it."""
    calls = getattr(_exporting, "calls", ())
    if calls:  # (it calls itself)
        call = calls[-1]
    else:
        stack = list(frames(sys._getframe()))
        at = next((number for number, frame in enumerate(stack) if _is_of_program(_module(frame))), len(stack) - 1)
        called = next((frame for frame in stack[:at][::-1] if _is_of_torch(_module(frame))), stack[at])
        call = CompilerCall(_name(called), *_place(stack[at]), True, {})
    _exporting.calls = (*calls, call)
    return call


def end_export() -> None:
    """End the present call of ``torch.export``."""
    _exporting.calls = _exporting.calls[:-1]


def current() -> CompilerCall:
    """Return the outermost call of a compiler of torch's, or of what has Dynamo trace, on the stack of this thread."""
    if exports := getattr(_exporting, "calls", ()):
        return exports[-1]._replace(aot=aot_number())
    tracer = private_api.CAPTURED_GRAPH.module if private_api.CAPTURED_GRAPH.present() else ""
    stack = list(frames(sys._getframe()))
    modules = list(map(_module, stack))
    outermost = max((number for number, module in enumerate(modules) if module == tracer or module.startswith(
        private_api.COMPILING_MODULES) and not module.startswith(private_api.RUNNING_MODULES)), default=-1)
    caller = next((frame for frame in stack[max(outermost, 0) :] if _is_of_program(_module(frame))), None)
    if outermost < 0:
        return CompilerCall(_name(caller) if caller is not None else "program", *_place(caller))
    called = stack[outermost]
    for frame in takewhile(lambda each: each is not caller, stack[outermost:]):
        if _is_of_torch(_module(frame)) and is_public(_name(frame)):
            called = frame
    return CompilerCall(_name(called), *_place(caller), True, stack[outermost].f_locals, aot_number())


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _is_of_torch(module: str) -> bool:
    return module == "torch" or module.startswith(("torch.", "functorch."))


def _is_of_program(module: str) -> bool:
    return not _is_of_torch(module) and module.partition(".")[0] not in _BETWEEN


def _name(frame: FrameType) -> str:
    """Return the name of the public function that a frame is of: ``aot_function`` for what that returned."""
    name = str(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
    maker = name.partition(".<locals>")[0].removesuffix(".__call__").rpartition(".")[2].replace("<module>", "module")
    own = name.rpartition(".")[2]
    return own if maker.startswith("_") and own.isidentifier() and is_public(own) else maker


def _place(frame: FrameType | None) -> tuple[str, int]:
    return (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("", 0)
