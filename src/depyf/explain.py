"""What torch.compile did with one function, without a running session."""

from __future__ import annotations

from types import CodeType, ModuleType
from typing import Any

from .source import code_of


def dump_src(fn: Any, module: ModuleType | None = None) -> str:
    """The full code of a compiled function, as text.

    Works on any function that ``torch.compile`` returned and that has run, also outside
    :class:`depyf.prepare_debug`. Graphs are shown where the backend kept them (``eager``).

    Args:
        fn: the function, as ``torch.compile`` returned it or the original; or its code object.
        module: where it was defined, which is needed for a code object: resume functions and graphs are found
            among the globals of the module.

    Raises:
        TypeError: ``fn`` is nothing that can be compiled.
        ValueError: it has not been compiled (call it first).
    """
    from .capture.live import capture_of
    from .capture.torch_private import hooks
    from .output.full_code import all_graphs, full_code

    inner = hooks.innermost_function(fn)
    if not hasattr(inner, "__code__") and not isinstance(inner, CodeType):
        forward = getattr(inner, "forward", None)
        inner = getattr(forward, "__func__", forward if forward is not None else inner)
    inner = hooks.innermost_function(inner)
    namespace = vars(module) if module is not None else getattr(inner, "__globals__", {})
    capture = capture_of(code_of(inner), namespace)
    if not capture.functions or not capture.functions[0].frames[0].entries:
        raise ValueError(
            f"{getattr(inner, '__qualname__', inner)!r} has no compiled version. Compile it with torch.compile, "
            "call it, and then call dump_src.")
    return full_code(capture.functions[0], all_graphs(capture.graphs))
