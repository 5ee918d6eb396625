"""The compilation that this thread is in, found on its stack."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from . import private_api


def compile_id() -> tuple[int, int, int] | None:
    """Return ``(frame, recompile, attempt)`` of the compilation that this thread is in."""
    try:
        trace_id = private_api.COMPILE_ID.get()()
        current = trace_id.compile_id
        return int(current.frame_id), int(current.frame_compile_id), int(trace_id.attempt)
    except (AttributeError, TypeError):
        return None


@dataclass(frozen=True)
class CompiledFrame:
    """The frame that torch compiles: its code, its local variables (captured ones included) and its globals."""

    code: CodeType
    values: dict[str, Any]
    namespace: dict[str, Any]


def compiled_frame() -> CompiledFrame | None:
    """Return the frame being compiled, from inside a hook: torch's ``_compile`` is on the stack meanwhile."""
    known = _given_to_compile(private_api.COMPILED_FRAME)
    code, values, namespace = (known.get(each) for each in ("code", "locals", "globals"))
    if not isinstance(code, CodeType):
        return None
    return CompiledFrame(
        code, values if isinstance(values, dict) else {},
        namespace if type(namespace) is dict and "__builtins__" in namespace else {})


def last_unique_id() -> int:
    """Return the number in the name that Dynamo gave last."""
    return int(repr(private_api.UNIQUE_IDS.get()).strip("count()")) - 1


def arguments() -> dict[str, str] | None:
    """Return the arguments of ``torch.compile`` for the frame being compiled that are not at their default.

    ``None`` where they are not known.
    """
    known, names = _given_to_compile(private_api.COMPILE_ARGUMENTS), private_api.COMPILE_ARGUMENTS.key.split(", ")
    if any(name not in known for name in names):
        return None
    from .compile_arguments import of_compilation

    return of_compilation(*(known[name] for name in names))


def _given_to_compile(api: private_api.PrivateApi) -> Mapping[str, Any]:
    """Return arguments and variables of a function of torch's that this thread is in; nothing where it is in none."""
    try:
        module, function = api.module, api.attribute
    except private_api.MissingPrivateApi:
        return {}
    frame: Any = sys._getframe(1)
    for _ in range(200):
        if frame is None:
            break
        if frame.f_code.co_name == function and frame.f_globals.get("__name__") == module:
            variables: Mapping[str, Any] = frame.f_locals
            return variables
        frame = frame.f_back
    return {}


def graph_name() -> str:
    """Return torch's name of the graph that its backend is compiling in this thread, ``""`` where that is not known."""
    return name_of_graph(_given_to_compile(private_api.CAPTURED_GRAPH).get("gm"))


def name_of_graph(gm: Any) -> str:
    """Return the name under which torch calls a captured graph, ``""`` where that is not known."""
    meta = getattr(gm, "meta", None)
    name = meta.get(private_api.BACKEND_ID.key) if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


def callers() -> list[tuple[str, int, str]]:
    """Return ``(file, line, function)`` of who called the frame that torch is about to compile, outermost first.

    Empty where that cannot be known. (Torch's own event leaves out the last ones.)
    """
    try:
        module, function = private_api.COMPILED_FRAME.module, private_api.COMPILED_FRAME.attribute
        between = {module, private_api.COMPILING_DECORATORS.module, "contextlib"}
    except private_api.MissingPrivateApi:
        return []
    frame: Any = sys._getframe(1)
    for _ in range(40):
        if frame is None or frame.f_code.co_name == function and frame.f_globals.get("__name__") == module:
            break
        frame = frame.f_back
    caller = frame
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name not in between and name.partition(".")[0] != "depyf":
            break
        if name == module:
            caller = frame
        frame = frame.f_back
    places = []
    frame = caller.f_back if caller is not None else None
    while frame is not None:
        places.append((frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name))
        frame = frame.f_back
    return places[::-1]
