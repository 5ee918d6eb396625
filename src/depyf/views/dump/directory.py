"""The files that running code names: graphs (:func:`graph_file`), transformed code; the directory that has them."""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from ...records.model import Branch, GraphBreak, GraphInput, GraphStage, Kernel, TransformedCode, UserFunction
from ...records.naming import legal_identifier, title
from ...torch_text import global_names
from ...torch_text.global_names import operator_imports, resumed_function
from ...torch_text.size_names import symbols_in
from ...torch_text.wrapping import comment
from ...values import frozen, once
from ..causes import sentences
from ..formatting import COMPUTED, after_break, called_through, notes_of, on_stack
from .folder import Folder
from .graph_view import GraphView, graph_view, plain_view

_IMPORTS = "import torch\nfrom torch import device, inf, nan\n\n"
MEANINGS = {
    "exact": "compiles to the same program (proven)",
    "equivalent": "proven to do the same",
    "fallback": "a dispatch loop: right by construction, its structure was not recovered",
    "unproven": "not proven",
}


@frozen
class GraphFile:
    """A file of a graph."""

    title: str
    view: GraphView  # of its text
    text: str
    first_line: int  # at which the view begins

    def line(self, line: int) -> int:
        """Return the line of the file for a line of torch's text; 0 where there is none."""
        number = self.view.line(line)
        return number and number + self.first_line - 1


def graph_file(
    graph: str, stage: GraphStage, inputs: tuple[GraphInput, ...] = (), failed: Sequence[str] = (),
) -> GraphFile:
    """Return the file of a stage, with the ``inputs`` of the captured graph and why its compilation ``failed``."""
    ids = f", compilation {stage.compile_id}" if stage.compile_id else ""
    name = f"{graph}: {title(stage)}{ids}"
    view = stage_view(stage, inputs)
    # (Of open sizes those that explain names of others; the parameters have all. Their values are decided later.)
    used = {symbol for _, size in view.sizes for symbol in symbols_in(size)}
    symbols = [f"{symbol}: {words}" for symbol, words in view.symbols if symbol in used]
    tables = [*(line for text in symbols for line in comment(text, 0)), *sizes_table(view), *files_table(view),
              operator_imports(view.text) + _IMPORTS] if stage.is_python else ["", ""]
    head = "\n".join([
        f"# {name}", *(line for text in failed for line in comment(text, 0, 2)), *tables])
    return GraphFile(name, view, head + view.text, head.count("\n") + 1)


def stage_view(stage: GraphStage, inputs: tuple[GraphInput, ...] = ()) -> GraphView:
    """Return the view of a stage; arguments as of :func:`graph_file`."""
    if not stage.is_python:
        return plain_view(stage.text)
    captured = stage.stage == "Captured_Graph"
    return once(("view", stage.text, inputs, captured, stage.callers),
                lambda: graph_view(stage.text, inputs, captured, stage.callers))


def files_table(view: GraphView) -> list[str]:
    """Return the paths of the files that a view names, as comments."""
    if not view.files:
        return []
    lines = ["# files named below:"]
    for short, path in view.files:
        text = path if path == short or path.endswith((f"/{short}", f"\\{short}")) else f"{short}: {path}"
        lines += comment(f"  {text}", 0)
    return lines


def sizes_table(view: GraphView) -> list[str]:
    """Return the meanings of the names of sizes, as comments."""
    return [line for name, size in view.sizes for line in comment(f"{name}: {size}", 0)]


class Directory(Folder):
    """Writes the files of a run (the dump writer of a capture session)."""

    writes = True

    def graph(self, graph: str, stage: GraphStage, inputs: tuple[GraphInput, ...], failed: Sequence[str] = ()) -> None:
        """Write a stage; arguments as of :func:`graph_file`."""
        self.write(stage.file, graph_file(graph, stage, inputs, failed).text)

    def kernel(self, kernel: Kernel) -> None:
        """Write a module that Inductor generated."""
        self.write(kernel.file, kernel.text)

    def transformed(
        self, code: TransformedCode, function: UserFunction, breaks: Sequence[GraphBreak] = (),
        branch: Branch | None = None, failed: Sequence[str] = (), stack: tuple[str, ...] = (),
    ) -> tuple[str, int, str] | None:
        """Write transformed code; return ``(path, line of the file at which the text begins, text of the file)``.

        Args:
            failed: sentences on the error with which its compilation failed (:func:`.formatting.no_version`), and on
                wrong results.
            stack: the expressions of the values that it takes from the stack.
        """
        header = transformed_header(code, function, breaks, branch, failed, stack)
        text = header + code.source.text
        path = self.write(code.file, text)
        if code.exact is not None:
            exact = replace(code, source=code.exact, exact=None, file=code.file[: -len(".py")] + ".unsimplified.py")
            self.transformed(exact, function, breaks, branch, failed, stack)
        return None if path is None else (path, header.count("\n") + 1, text)

    def code_object(self, name: str, kind: str, code: CodeType) -> None:
        """Write a code object, marshalled, to ``NAME.KIND.bin`` (``kind``: ``original``, ``transformed``, ...)."""
        self.write(f"{legal_identifier(name.removesuffix('.py'))}.{kind}.bin", marshal.dumps(_portable(code)))


def _portable(value: Any) -> Any:
    """Return a constant as ``marshal`` can write it; objects that Dynamo puts into code become their ``repr``."""
    if isinstance(value, CodeType):
        return value.replace(co_consts=tuple(map(_portable, value.co_consts)))
    if type(value) in (tuple, frozenset):
        return type(value)(map(_portable, value))
    try:
        marshal.dumps(value)
    except (ValueError, TypeError):
        return repr(value)
    return value


def transformed_header(
    code: TransformedCode, function: UserFunction, breaks: Sequence[GraphBreak], branch: Branch | None,
    failed: Sequence[str] = (), stack: tuple[str, ...] = (),
) -> str:
    """Return the text above transformed code: comments and an empty line."""
    location = function.location
    resumed = resumed_function(location.function) if location else None
    lines = [f"what torch.compile made of {code.function_name if resumed else function.name}, "
             f"compilation {code.compile_id}", *failed]
    if location is not None and resumed:
        lines.append(f"continues {function.name} {after_break(location.filename, resumed[1], branch)}")
    computed = on_stack(stack, code.source.text)
    lines += [f"{COMPUTED}: {', '.join(computed)}"] if computed else []
    if location is not None:
        lines.append(f"original: {location.filename}:{location.line}")
    lines += called_through(function.wrappers)
    lines += sentences(breaks)
    notes = sorted(notes_of(code.source.note))
    conditions = [part.removeprefix("if ") for part in notes if part.startswith("if ")]
    lines.append(f"fidelity: {code.source.fidelity} - {MEANINGS.get(code.source.fidelity, '')}"
                 + f", if: {'; '.join(conditions)}" * bool(conditions))
    lines += filter(None, ["; ".join(part for part in notes if not part.startswith("if "))])
    lines += [f"{name}() {global_names.MEANING}" for name in global_names.random_values(code.source.text)]
    lines = [part for line in lines for part in comment(" ".join(line.split()), deeper=2)]
    return "\n".join(line.encode("ascii", "replace").decode() if not line.isprintable() else line
                     for line in lines) + "\n\n"
