"""``full_code_for_<function>_<n>.py``: everything about one compiled function, top-down.

For the function and each of its resume functions: the original, and for each cache entry its guards, the
graph and the transformed code; then the dispatching function, which does what torch does when the
function is called.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence

from ..capture.records import CacheEntry, CompiledFunction, CompiledGraph, Frame
from ..capture.resumes import resumed_function
from .graph_file import files_table, stage_view
from .guards_view import guard_function
from .naming import legal_identifier
from .words import after_break, called_through

PREAMBLE = '''\
"""What torch.compile did with {name}.

Read from the top: the original function, then for each compiled version its guards, its graph and the
transformed code, and at the end of each section the function that chooses between them. Functions called
__resume_at_... continue behind a graph break; their sections follow.

Guards: L are the local variables, G the globals.
  check_tensor(t, dtype=..., device=..., size=..., stride=..., requires_grad=...)  None: any size
  check_type(x, name), check_same_object(x, ...)  the type, or the very object, seen when compiling
  has_no_marks(t, ...)  nobody called mark_dynamic, mark_static, ... on the tensor
  check_no_aliasing(a, b, ...)  no two are the same tensor
  check_global_state()  grad mode, autocast, default dtype, ... as when compiling
"""

from __future__ import annotations

import math

import torch
import torch.utils._device as utils_device
from torch import device, inf, nan


def check_tensor(t, *, dtype, device, size, stride, requires_grad, cls=None):
    return (isinstance(t, torch.Tensor) and t.dtype == dtype and t.requires_grad == requires_grad
            and (str(t.device) == device or t.device.type == device) and len(t.shape) == len(size)
            and all(b is None or a == b for a, b in zip(t.shape, size))
            and all(b is None or a == b for a, b in zip(t.stride(), stride)))


def has_no_marks(t, *marks):
    return not any(hasattr(t, mark) for mark in marks)


def check_type(x, name):
    return f"{{type(x).__module__}}.{{type(x).__qualname__}}".removeprefix("builtins.") == name


def _checked_by_torch(*args, **kwargs):
    """Conditions that only torch can test."""
    return True


check_same_object = check_no_aliasing = check_global_state = check_torch_function_mode_stack = _checked_by_torch
check_obj_id = check_type_id = dict_contains = check_dict_contains = torch_guard = _checked_by_torch
'''


def full_code(function: CompiledFunction, graphs: Mapping[str, CompiledGraph]) -> str:
    """The text for one compiled function.

    Args:
        function: its record.
        graphs: all graphs by shown name.
    """
    title = function.frames[0].title or function.name
    parts = [PREAMBLE.format(name=title.replace("\\", "\\\\").replace('"', "'"))]
    shown: set[str] = set()
    for frame in function.frames:
        parts.append(_frame(frame, graphs, shown))
    return "\n\n".join(parts).rstrip() + "\n"


def _frame(frame: Frame, graphs: Mapping[str, CompiledGraph], shown: set[str]) -> str:
    name = legal_identifier(frame.name)
    resumed = resumed_function(frame.code_name)
    parts = [_heading(f"{frame.name} continues {frame.title or resumed[0]} {after_break(resumed[1])}"
                      if resumed else frame.title or frame.name)]
    place = f"# {frame.location.filename}:{frame.location.line}\n" if frame.location else ""
    place += "".join(f"# {line}\n" for line in called_through(frame.wrappers))
    if frame.original_is_user_text:
        parts.append(f"{place}# the original function, as its author wrote it\n{_original(frame)}")
    else:
        head = [f"# decompiled: {frame.original.fidelity}", *_notes(frame.original.note)]
        parts.append(place + "\n".join([*head, frame.original.text.rstrip()]))
    if not frame.entries:
        parts.append(f"# {frame.name} was never compiled.")
        return "\n\n\n".join(parts)
    for number, entry in enumerate(frame.entries):
        before = frame.entries[number - 1].guards if number else None
        parts.append(guard_function(guard_name(name, number), entry.guards, before).rstrip())
        for graph_name in entry.graph_names:
            if graph_name not in shown:
                shown.add(graph_name)
                parts.append(_graph(graph_name, graphs.get(graph_name)))
        parts.append(_transformed(entry))
    parts.append(_dispatching(frame, name))
    return "\n\n\n".join(parts)


def guard_name(name: str, number: int) -> str:
    return f"guard_{number}_for_{name}"


def _heading(title: str) -> str:
    rule = "# " + "=" * 78
    return f"{rule}\n# {title}\n{rule}"


def _original(frame: Frame) -> str:
    """The user's own text. Decorators become comments, and so does text that is not a function (a lambda)."""
    text = textwrap.dedent(frame.original.text).rstrip()
    function = _function_in(text)
    if function is not None:
        lines = text.splitlines()
        above = function.lineno - 1  # the line of ``def``, below all decorators
        return "\n".join([*(f"# {line}" for line in lines[:above]), *lines[above:]])
    commented = "\n".join(f"# {line}" for line in text.splitlines())
    return f"{commented}\ndef {_called(frame)}({frame.signature}):\n    ...  # see the text above"


def _called(frame: Frame) -> str:
    """The name of the original function in the full code: what its text defines."""
    text = textwrap.dedent(frame.original.text)
    function = _function_in(text) if frame.original_is_user_text else None
    return function.name if function is not None else legal_identifier(frame.name)


def _function_in(text: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function that a text begins with, if it does."""
    try:
        first = ast.parse(text).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
    return first if isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _graph(name: str, graph: CompiledGraph | None) -> str:
    captured = next((s for s in graph.stages if s.stage == "Captured_Graph"), None) if graph else None
    if captured is None:
        return (f"def {legal_identifier(name)}(*args):\n"
                f"    ...  # the captured graph is not available")
    stages = [f"{legal_identifier(name)}.{s.stage}.{s.index}.py" for s in graph.stages if not s.internal]  # type: ignore[union-attr]
    stages += [f"{legal_identifier(name)}.kernel_{k.index}.py" for k in graph.kernels]  # type: ignore[union-attr]
    backend = graph.backend  # type: ignore[union-attr]
    head = [f"# the graph {name}" + f", compiled by {backend}" * bool(backend), *(f"#   {s}" for s in stages)]
    view = stage_view(captured, graph.inputs)  # type: ignore[union-attr]
    return "\n".join([*head, *files_table(view), graph_as_function(name, view.text)])


_COMMENT = re.compile(r"(?m)#.*$")


def graph_as_function(name: str, text: str) -> str:
    """``class GraphModule: def forward(self, ...)`` -> ``def __compiled_fn_1(...)``; ``text`` is a view."""
    lines = text.strip("\n").splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip().startswith("def forward(")), None)
    if start is None:
        return "\n".join(f"# {line}" for line in lines)
    indent = len(lines[start]) - len(lines[start].lstrip())
    body = []
    for line in lines[start:]:
        if line.strip() and not line.lstrip().startswith("#") and len(line) - len(line.lstrip()) < indent:
            break
        body.append(line[indent:] if line[:indent].strip() == "" else line.lstrip())
    nested = "\n".join(lines[start + len(body) :]).strip("\n")
    function = "\n".join(body).rstrip()
    function = function.replace("def forward(", f"def {legal_identifier(name)}(", 1)
    if len(re.findall(r"\bself\b", _COMMENT.sub("", function))) == 1:
        function = re.sub(r"\((\s*)self(?:,\s*)?", r"(\1", function, count=1)
    if nested:
        function += "\n\n\n" + textwrap.dedent(nested)
    return function


def _transformed(entry: CacheEntry) -> str:
    code = entry.transformed
    head = [f"# transformed code of compilation {entry.compile_id}: {code.source.fidelity}"]
    return "\n".join([*head, *_notes(code.source.note), code.source.text.rstrip()])


def _notes(note: str) -> list[str]:
    return [f"#   {part.strip()}" for part in note.replace("\n", " ").split(";") if part.strip()]


def _dispatching(frame: Frame, name: str) -> str:
    """What happens when the function is called."""
    arguments = ", ".join(re.sub(r"^\*+", "", a) for a in frame.arguments)
    known = ", ".join(f"{a!r}: {legal_identifier(a)}" for a in frame.arguments)
    lines = [f"def compiled_{name}({_with_defaults(frame) or frame.signature or arguments}):",
             f"    L, G = {{{known}}}, globals()"]
    for number, entry in enumerate(frame.entries):
        lines.append(f"    if {guard_name(name, number)}(L, G):")
        lines.append(f"        return {_definition(entry.transformed.source.text)}({_pass_on(frame)})")
    lines.append("    # No guard fits: torch compiles another version, or runs the original when there are too many.")
    lines.append(f"    return {_called(frame)}({_pass_on(frame)})")
    return "\n".join(lines)


def _with_defaults(frame: Frame) -> str:
    """The parameters as the author wrote them, without annotations. Defaults that only their module can compute
    become ``...``; empty if there is no such text, or if a wrapper with parameters of its own is called."""
    function = _function_in(textwrap.dedent(frame.original.text)) if frame.original_is_user_text else None
    if function is None or frame.wrappers:
        return ""
    arguments = function.args
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    arguments.defaults = [_literal(node) for node in arguments.defaults]
    arguments.kw_defaults = [None if node is None else _literal(node) for node in arguments.kw_defaults]
    return ast.unparse(arguments)


def _literal(node: ast.expr) -> ast.expr:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return ast.Constant(...)
    return node


def _definition(text: str) -> str:
    found = re.search(r"^(?:async )?def (\w+)", text, re.M)
    return found.group(1) if found else "transformed"


def _pass_on(frame: Frame) -> str:
    """Arguments of the same call, keyword-only and starred ones included."""
    parts: list[str] = []
    keyword_only = False
    for part in (frame.signature or ", ".join(frame.arguments)).split(", "):
        if part in ("/", ""):
            continue
        if part == "*":
            keyword_only = True
        elif part.startswith("*"):
            parts.append(part)
            keyword_only = not part.startswith("**")
        else:
            parts.append(f"{part}={part}" if keyword_only else part)
    return ", ".join(parts)


def all_graphs(graphs: Sequence[CompiledGraph]) -> dict[str, CompiledGraph]:
    return {graph.name: graph for graph in graphs}
