"""The file of a graph: its head, the imports that its names need, and the view of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...records.model import GraphInput, GraphStage
from ...records.stages import title
from ...torch_text import wrapping
from ...torch_text.size_names import symbols_in
from ..remembered import once
from .graph_view import GraphView, graph_view, plain_view

_IMPORTS = "import torch\nfrom torch import device, inf, nan\n\n"


@dataclass(frozen=True)
class GraphFile:
    """A file of a graph.

    Attributes:
        title: of the graph.
        view: of its text.
        text: the file.
        first_line: at which the view begins.
    """

    title: str
    view: GraphView
    text: str
    first_line: int

    def line(self, line: int) -> int:
        """Return the line of the file for a line of torch's text; 0 where there is none."""
        number = self.view.line(line)
        return number and number + self.first_line - 1


def graph_file(
    graph: str, stage: GraphStage, inputs: tuple[GraphInput, ...] = (), failed: Sequence[str] = (),
) -> GraphFile:
    """Return the file of one stage of a graph.

    Args:
        graph: its name.
        stage: the stage.
        inputs: of the captured graph.
        failed: sentences on the error with which its compilation failed (:func:`.formatting.never_called`).
    """
    ids = f", compilation {stage.compile_id}" if stage.compile_id else ""
    name = f"{graph}: {title(stage)}{ids}"
    view = stage_view(stage, inputs)
    errors = [line for sentence in failed for line in wrapping.comment(sentence, 0, 2)]
    tables = [*_symbols_table(view), *sizes_table(view), *files_table(view), _IMPORTS] if stage.is_python else ["", ""]
    head = "\n".join([f"# {name}", *errors, *tables])
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
        lines += wrapping.comment(f"  {text}", 0)
    return lines


def _symbols_table(view: GraphView) -> list[str]:
    """Return the open sizes that explain the names of others, as comments; the parameters have all of them.

    (Their values are decided after the graph is captured: the full code has them.)
    """
    used = {symbol for _, size in view.sizes for symbol in symbols_in(size)}
    return [line for symbol, words in view.symbols if symbol in used
            for line in wrapping.comment(f"{symbol}: {words}", 0)]


def sizes_table(view: GraphView) -> list[str]:
    """Return the meanings of the names of sizes, as comments."""
    return [line for name, size in view.sizes for line in wrapping.comment(f"{name}: {size}", 0)]
